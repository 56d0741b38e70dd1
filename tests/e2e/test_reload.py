"""SIGHUP: sources, secrets and the certificate change without losing connections or deliveries."""

import itertools
import json
import os
import pathlib
import re
import signal
import threading
import time

import pytest

import http_client
import waiting
from authority import Authority
from load import Load
from reloading import send_sighup, refused, reload
from signing import SECRET, Delivery
from tally import assert_exactly_once

NEXT_SECRET = b"the secret that comes after it, as long"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def daemon(installation):
    config = installation.config()
    config["receiver"]["threads"] = 2
    installation.create_topics(config)
    return installation.start(config)


def common_name(daemon, tls):
    """The common name of the certificate served to a new connection."""
    with http_client.connect(daemon.address, tls=tls) as connection:
        return connection.getpeercert()["subject"][0][0][1]


# Certificates

class Files:
    """The certificate and key files of a daemon, which tests replace."""

    def __init__(self, config):
        self.certificate, self.key = config.directory / "certificate.pem", config.directory / "key.pem"
        config.tls(self.certificate, self.key)

    def put(self, certificate, key):
        self.certificate.write_bytes(certificate.read_bytes())
        self.key.write_bytes(key.read_bytes())
        self.key.chmod(0o600)


@pytest.fixture
def by_tls(installation, authority):
    """A daemon with TLS, and its files."""
    config = installation.config("receiver")
    config["receiver"]["threads"] = 2
    files = Files(config)
    files.put(*authority.issue("first"))
    installation.create_topics(config)
    return installation.start(config), files


def test_certificate_is_replaced_under_load(by_tls, authority):
    daemon, files = by_tls
    tls = authority.client()
    pairs = {name: authority.issue(name) for name in ("second", "third")}
    failed, n_fresh, done = [], itertools.count(), threading.Event()

    def connect_anew():
        while not done.is_set():
            try:
                daemon.accept(tls=tls)
                next(n_fresh)
            except Exception as error:
                failed.append(error)

    fresh = [threading.Thread(target=connect_anew) for _ in range(3)]
    kept = Load(lambda: [daemon.address], threads=4, once=True, tls=tls).start()
    for thread in fresh:
        thread.start()
    try:
        kept_before = http_client.connect(daemon.address, tls=tls)
        for name in ["second", "third"] * 4:
            files.put(*pairs[name])
            reload(daemon)
            assert common_name(daemon, tls) == name
            wanted = len(kept.accepted) + 20
            waiting.until(lambda: len(kept.accepted) >= wanted or kept.answers[200] != sum(kept.answers.values()), 30,
                          "more deliveries")
    finally:
        done.set()
        for thread in fresh:
            thread.join()
    kept.stop()
    assert not failed, failed[0]
    assert set(kept.answers) == {200}, kept.answers
    assert next(n_fresh) > 20
    delivery = Delivery()
    kept_before.sendall(b"\r\n".join([b"POST /webhooks/invoicing HTTP/1.1", b"host: a", *(
        f"{name}: {value}".encode() for name, value in delivery.headers().items()),
        f"content-length: {len(delivery.body)}".encode(), b"", delivery.body]))
    assert kept_before.recv(100).startswith(b"HTTP/1.1 200 ")
    kept_before.close()


def test_bad_certificate_is_refused_and_the_previous_one_kept(by_tls, authority):
    daemon, files = by_tls
    tls = authority.client()
    good = authority.issue("good")
    expired = authority.issue("expired", begin="20200101000000Z", end="20200102000000Z")
    future = authority.issue("future", begin="20990101000000Z", end="20990102000000Z")
    rare = authority.issue("rare", algorithm=("ec", "-pkeyopt", "ec_paramgen_curve:secp256k1"))
    for pair, words in (((good[0], expired[1]), "does not belong to the first certificate"), (expired, "expired at 2020-01-02"),
                        (future, "not valid before 2099-01-01"), (rare, "its key is on the curve secp256k1"), ((good[1], good[1]), "no certificate"),
                        ((good[0], good[0]), "no private key")):
        files.put(*pair)
        log = refused(daemon)
        assert words in log and (str(files.certificate) in log or str(files.key) in log), log
        assert common_name(daemon, tls) == "first"
    files.put(*good)
    files.key.chmod(0o604)
    assert "others can read it" in refused(daemon)
    files.key.chmod(0o600)
    reload(daemon)
    assert common_name(daemon, tls) == "good"
    names = ("tls_certificate_file", "tls_key_file")
    lines = {name: daemon.config["receiver"].pop(name) for name in names}
    reload(daemon)  # disabling TLS needs a restart
    assert common_name(daemon, tls) == "good"
    daemon.config["receiver"].update(lines)
    files.put(*expired)
    assert "expired at 2020-01-02" in refused(daemon)
    assert common_name(daemon, tls) == "good"
    files.put(*good)
    files.certificate.write_bytes(good[0].read_bytes() + expired[0].read_bytes())  # an untrusted chain
    assert "expired at 2020-01-02" in refused(daemon)
    assert "PRIVATE KEY" not in daemon.log


def test_client_ca_is_replaced_by_a_reload(by_tls, authority, tmp_path):
    daemon, _ = by_tls
    other = Authority(tmp_path)
    without, with_other = authority.client(), authority.client(*other.issue("client"))
    daemon.accept(tls=without)
    daemon.config["receiver"]["tls_client_ca_file"] = other.certificate
    reload(daemon)
    daemon.accept(tls=with_other)
    with pytest.raises(OSError):
        daemon.post(tls=without)
    daemon.config["receiver"]["tls_client_ca_file"] = authority.certificate
    reload(daemon)
    with pytest.raises(OSError):
        daemon.post(tls=with_other)
    daemon.accept(tls=authority.client(*authority.issue("client")))


# Secrets

def test_secret_is_rotated_under_load(installation, daemon):
    """As described in gatepostd(8): add the new secret, sign with it, remove the old one."""
    secret = [SECRET]
    deliveries = (Delivery(secret=secret[0]) for _ in itertools.count())
    load = Load(lambda: [daemon.address], deliveries=Locked(deliveries), threads=6, once=True).start()

    def accepted(wanted):
        waiting.until(lambda: len(load.accepted) >= wanted or set(load.answers) - {200}, 60, "deliveries")
        assert set(load.answers) == {200}, load.answers

    source = daemon.config["source invoicing"]
    old, new = source["secret_file"], daemon.config.secret_file("next", NEXT_SECRET)
    accepted(100)
    source["secret_file"] = [old, new]
    reload(daemon)
    secret[0] = NEXT_SECRET
    accepted(len(load.accepted) + 100)
    waiting.until(lambda: all(each in load.accepted for each, delivery in list(load.sent.items())
                              if delivery.secret == SECRET), 30, "deliveries signed with the old secret")
    source["secret_file"] = new
    reload(daemon)
    accepted(len(load.accepted) + 100)
    load.stop()
    assert set(load.answers) == {200}
    assert daemon.post(Delivery(secret=SECRET)).code == "INVALID_SIGNATURE"
    installation.kafka.wait_until_routed()
    assert len(installation.kafka.read()) == len(load.accepted)


class Locked:
    """A thread-safe iterator."""

    def __init__(self, iterator):
        self._iterator = iterator
        self._lock = threading.Lock()

    def __iter__(self):
        return self

    def __next__(self):
        with self._lock:
            return next(self._iterator)


def test_secret_file_is_reread(daemon):
    daemon.config.secret_file("secret", NEXT_SECRET)
    daemon.accept(Delivery(secret=SECRET))
    assert daemon.post(Delivery(secret=NEXT_SECRET)).status == 401
    reload(daemon)
    daemon.accept(Delivery(secret=NEXT_SECRET))
    assert daemon.post(Delivery(secret=SECRET)).status == 401
    assert time.time() - daemon.metric("gatepost_secret_timestamp_seconds", source="invoicing") < 60


def test_configuration_with_errors_changes_nothing(daemon):
    source = daemon.config["source invoicing"]
    good = dict(source)
    source["secret_file"] = daemon.config.secret_file("short", b"too short")
    source["tolerence"] = "1s"
    log = refused(daemon)
    path = daemon.config.directory / f"{daemon.name}.conf"
    assert len(re.findall(rf' configuration error file="{re.escape(str(path))}" line=[1-9]\d* ', log)) == 2, log
    assert daemon.metric("gatepost_config_last_reload_successful") == 0
    daemon.accept()
    path.write_text("")
    assert "is empty" in send_sighup(daemon)
    path.unlink()
    assert str(path) in send_sighup(daemon)
    daemon.accept()
    source.clear()
    source.update(good)
    before = daemon.metric("gatepost_config_last_reload_success_timestamp_seconds")
    reload(daemon)
    daemon.accept()
    assert daemon.metric("gatepost_config_last_reload_successful") == 1
    assert daemon.metric("gatepost_config_last_reload_success_timestamp_seconds") >= before


# Sources

def test_source_is_added_and_removed(installation, daemon):
    daemon.config.source("late", NEXT_SECRET, kind="/type", tolerance="10s")
    assert daemon.post(Delivery(secret=NEXT_SECRET), source="late").status == 404
    reload(daemon)
    assert daemon.metric("gatepost_requests_total", source="late") == 0
    delivery = Delivery(json.dumps({"type": "invoice.rejected", "event": "no.such"}).encode(), secret=NEXT_SECRET)
    daemon.accept(delivery, source="late")
    daemon.accept()
    stale = Delivery(secret=NEXT_SECRET).but(timestamp=Delivery().timestamp - 30)
    assert daemon.post(stale, source="late").code == "STALE_TIMESTAMP"
    installation.kafka.wait_until_routed()
    (record,) = [each for each in installation.kafka.read() if each.header("ce_source") == "/late"]
    assert record.topic == f"{installation.prefix}.invoice.rejected" and record.delivery_id == delivery.delivery_id
    del daemon.config.sections["source late"]
    reload(daemon)
    assert daemon.post(Delivery(secret=NEXT_SECRET), source="late").status == 404
    assert daemon.metric("gatepost_requests_total", source="late", outcome="accepted") == 1
    daemon.accept()


def test_repeats_after_a_reload_are_dropped(installation, daemon):
    sent = [daemon.accept() for _ in range(20)]
    installation.kafka.wait_until_routed()
    reload(daemon)
    for delivery in sent:
        daemon.accept(delivery)
    daemon.config.source("invoicing", NEXT_SECRET)
    reload(daemon)
    for delivery in sent:
        daemon.accept(delivery.but(secret=NEXT_SECRET).signed_again())
    installation.kafka.wait_until_routed()
    assert_exactly_once(installation.kafka, {delivery.delivery_id: delivery for delivery in sent})


def test_connections_stay_open(daemon):
    client = http_client.Client(daemon.address)
    for _ in range(5):
        delivery = Delivery()
        assert client.request("POST", "/webhooks/invoicing", delivery.headers(), delivery.body).status == 200
        socket = client.sock
        reload(daemon)
        assert client.sock is socket and socket is not None
    client.close()


def wait_until_signals_are_held(daemon):
    """Wait until the process blocks SIGHUP: gatepostd has executed its first statement."""
    def held():
        status = pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text()
        return int(re.search(r"^SigBlk:\s*(\w+)", status, re.M)[1], 16) >> (signal.SIGHUP - 1) & 1
    waiting.until(held, 30, "SIGHUP to be blocked")


def test_signals_during_startup_are_handled_afterwards(offline):
    daemon = offline.daemon(offline.config("receiver"))
    daemon.launch()
    wait_until_signals_are_held(daemon)
    daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_for_log("configuration reloaded")


@pytest.mark.parametrize("after", range(0, 8, 3))
def test_sigterm_during_startup_exits_0(offline, after):
    daemon = offline.daemon(offline.config("receiver"))
    daemon.launch()
    wait_until_signals_are_held(daemon)
    time.sleep(after * 0.02)
    daemon.process.send_signal(signal.SIGTERM)
    daemon.wait_for_exit(0)


def test_configuration_replaced_by_a_fifo_is_refused(daemon):
    file = daemon.config.directory / f"{daemon.name}.conf"
    file.unlink()
    os.mkfifo(file, 0o600)
    assert "is not a regular file" in send_sighup(daemon)
    daemon.accept()
