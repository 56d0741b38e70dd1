"""The admin's command line: usage, secrets, topics, sending."""

import json
import os
import re
import socket
import stat
import subprocess
import threading

import pytest
from confluent_kafka.admin import NewTopic

import waiting
from cluster import Cluster
from installation import BUILD, Installation
from signing import KINDS, Delivery, event_body, event_topic

EX_USAGE, EX_DATAERR, EX_NOINPUT, EX_UNAVAILABLE, EX_TEMPFAIL, EX_CONFIG = 64, 65, 66, 69, 75, 78

@pytest.fixture(scope="module")
def daemon(shared):
    config = shared.config()
    config["source invoicing"]["subject"] = "/invoiceId"
    shared.create_topics(config)
    return shared.start(config)


@pytest.fixture(scope="module")
def reader(shared, daemon):
    reader = shared.kafka.reader()
    yield reader
    reader.close()


@pytest.fixture(scope="module")
def send(shared, daemon):
    """Run `gatepost send` to the daemon."""
    def run(*arguments, url=None, **options):
        return shared.gatepost("send", "--to", url or daemon.url, *arguments, config=daemon.config, **options)
    return run


def sent_id(done):
    """The delivery-id in the answer that `gatepost send` prints."""
    (delivery_id,) = set(re.findall(r'"deliveryId":"([^"]+)"', done.stdout))
    return delivery_id


# Usage

@pytest.mark.parametrize("program", ["gatepost", "gatepostd"])
def test_help_and_version_go_to_stdout(program):
    for option in ("--help", "--version"):
        done = subprocess.run([BUILD / program, option], capture_output=True, text=True, timeout=30)
        assert (done.returncode, done.stderr) == (0, "") and done.stdout


@pytest.fixture
def offline_gatepost(tmp_path):
    def run(*arguments):
        return subprocess.run([BUILD / "gatepost", *arguments], capture_output=True, text=True, timeout=30, cwd=tmp_path)
    return run


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["check", "--nonsense"], ["topics"], ["topics", "burn"],
                                       ["secret", "new"], ["--nonsense"],
                                       ["topics", "create", "--partitions", "many"], ["topics", "create", "--partitions"],
                                       ["check", "--json=yes"]])
def test_wrong_usage_exits_64(offline_gatepost, arguments):
    done = offline_gatepost(*arguments)
    assert (done.returncode, done.stdout) == (EX_USAGE, "") and done.stderr


@pytest.mark.parametrize("command", [["gatepostd"], ["gatepostd", "-t"], ["gatepost", "check"], ["gatepost", "status"]], ids=" ".join)
def test_configuration_as_an_argument_is_refused(command):
    done = subprocess.run([BUILD / command[0], *command[1:], "gw.conf"], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (EX_USAGE, "") and "unexpected argument 'gw.conf'" in done.stderr


def test_check_accepts_good_and_refuses_bad_configuration(shared, daemon):
    assert shared.gatepost("check", config=daemon.config).returncode == 0
    bad = shared.config()
    bad["receiver"]["max_body"] = "large"
    done = shared.gatepost("check", config=bad)
    assert done.returncode == EX_CONFIG and "max_body" in done.stderr and done.stdout == ""


def test_config_prints_json(shared, daemon):
    done = shared.gatepost("config", "--json", config=daemon.config)
    assert done.returncode == 0 and json.loads(done.stdout)
    assert "max_body" in done.stdout and shared.prefix in done.stdout


# Secrets

def test_new_secret_is_random_and_private_to_its_owner(shared, tmp_path):
    contents = []
    for name in ("one", "two"):
        done = shared.gatepost("secret", "new", str(tmp_path / name), config=False)
        assert done.returncode == 0, done.stderr
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
        contents.append((tmp_path / name).read_bytes().rstrip(b"\n"))
        assert len(contents[-1]) >= 32 and contents[-1].decode() not in done.stdout + done.stderr
    assert contents[0] != contents[1]


def test_new_secret_is_group_readable_in_a_setgid_directory(shared, tmp_path):
    groups = {os.getegid(), *os.getgroups()} - {os.getegid()} or {1}
    try:
        os.chown(tmp_path, -1, min(groups))
    except PermissionError:
        pytest.skip("needs a second group, or root")
    for mode, expected in ((0o2750, 0o640), (0o750, 0o600)):
        tmp_path.chmod(mode)
        path = tmp_path / f"{mode:o}"
        assert shared.gatepost("secret", "new", str(path), config=False).returncode == 0
        assert stat.S_IMODE(path.stat().st_mode) == expected


def test_new_secret_does_not_overwrite_an_existing_file(shared, tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(b"an old secret that is in use")
    assert shared.gatepost("secret", "new", str(path), config=False).returncode != 0
    assert path.read_bytes() == b"an old secret that is in use"


def test_deliveries_signed_with_new_secret_are_accepted(installation):
    config = installation.config()
    path = config.directory / "fresh"
    assert installation.gatepost("secret", "new", str(path), config=False).returncode == 0
    config["source invoicing"]["secret_file"] = path
    installation.create_topics(config)
    installation.start(config).accept(Delivery(secret=path.read_bytes().removesuffix(b"\n")))


# Topics

@pytest.mark.parametrize("brokers, fault", [
    ("user:hunter2@kafka1:9092", "without a user and a password"),
    ("embedded", "without it, gatepostd is asked"),
])
def test_misspelt_brokers_are_answered_without_waiting_for_them(installation, brokers, fault):
    for command in (["topics", "list"], ["topics", "create"], ["topics", "fix"], ["tail"], ["audit"], ["quarantine", "list"],
                    ["quarantine", "show", "0-0"], ["quarantine", "release", "0-0"]):
        done = installation.gatepost(*command, "--bootstrap", brokers)
        assert done.returncode == EX_USAGE and fault in done.stderr, (command, done.stderr)
        assert "hunter2" not in done.stdout + done.stderr


# Sending

@pytest.mark.parametrize("kind", KINDS)
def test_sent_body_is_published_unchanged(shared, daemon, send, reader, tmp_path, kind):
    path = tmp_path / "body.json"
    path.write_bytes(event_body(kind, text="Straße 5, 北京"))
    done = send(str(path))
    assert done.returncode == 0 and "200" in done.stdout, done.stdout + done.stderr
    (record,) = reader.wait_for(sent_id(done))
    assert record.topic == f"{shared.prefix}.{event_topic(kind)}"
    assert (record.value, record.key) == (path.read_bytes(), kind.encode())
    headers = dict(record.headers)
    assert headers.pop("ce_time").endswith(b"Z") and headers.pop("ce_webhookid")
    assert headers == {"content-type": b"application/json", "ce_specversion": b"1.0", "ce_id": sent_id(done).encode(),
                       "ce_type": kind.encode(), "ce_source": b"/invoicing",
                       "ce_subject": json.loads(record.value)["invoiceId"].encode()}


@pytest.mark.parametrize("kind", KINDS)
def test_body_is_generated_for_a_kind(shared, send, reader, kind):
    done = send("--kind", kind)
    assert done.returncode == 0, done.stdout + done.stderr
    (record,) = reader.wait_for(sent_id(done))
    assert record.topic == f"{shared.prefix}.{event_topic(kind)}"
    assert json.loads(record.value)["event"] == kind
    (original,) = [each for each in shared.kafka.read(shared.kafka.deliveries)
                   if each.key.decode() == sent_id(done)]
    assert original.value == record.value


def test_body_is_read_from_stdin(send, reader):
    done = send("-", input='{"event":"invoice.accepted","from":"stdin"}')
    (record,) = reader.wait_for(sent_id(done))
    assert record.value == b'{"event":"invoice.accepted","from":"stdin"}'


def test_repeated_delivery_is_published_as_one_event(shared, send, reader):
    done = send("--kind", "invoice.accepted", "--delivery-id", "chosen-id-1", "--repeat", "3")
    assert done.returncode == 0 and sent_id(done) == "chosen-id-1"
    assert done.stdout.count("200") >= 3
    reader.wait_for("chosen-id-1")
    shared.kafka.wait_until_routed()
    assert [record.delivery_id for record in shared.kafka.read()].count("chosen-id-1") == 1


def test_refused_deliveries_exit_65_and_print_the_answer(send):
    for arguments, code in ((["--forge"], "INVALID_SIGNATURE"), (["--age", "1h"], "STALE_TIMESTAMP"),
                            (["--delivery-id", "no good"], "VALIDATION_ERROR")):
        done = send("--kind", "invoice.accepted", *arguments)
        assert done.returncode == EX_DATAERR and code in done.stdout, done.stdout + done.stderr


def test_unreachable_receiver_exits_75(send):
    assert send("--kind", "invoice.accepted", url="http://127.0.0.1:9/webhooks/invoicing").returncode == EX_TEMPFAIL


def test_url_that_is_not_http_exits_64(send):
    done = send("--kind", "invoice.accepted", url="ftp://127.0.0.1/")
    assert (done.returncode, done.stdout) == (EX_USAGE, "") and "http://" in done.stderr


NO_URLS = ["", " ", "http://", "ftp://me:hunter2@127.0.0.1/", "http://me:hun/ter2@127.0.0.1/", "127.0.0.1:99999",
           "http://:24901", "http://me:hunter2@:24901", "http://me@"]


@pytest.mark.parametrize("command", [("send", "--kind", "invoice.accepted"), ("doctor",)], ids=["send", "doctor"])
def test_to_without_a_url_exits_64_and_shows_no_password(offline, command):
    for url in NO_URLS:
        done = offline.gatepost(*command, "--to", url)
        assert done.returncode == EX_USAGE and "--to: not a URL with http:// or https:// and a host" in done.stderr, (url, done)
        assert "hun" not in done.stdout + done.stderr


@pytest.mark.parametrize("to, url", [
    ("{}", "http://{}{path}"), ("{}/", "http://{}{path}"), ("http://{}", "http://{}{path}"), ("http://{}/", "http://{}{path}"),
    ("{}?to=http://x", "http://{}{path}?..."), ("{}/other", "http://{}/other"), ("HTTP://{}/other?a#b", "http://{}/other?..."),
    ("me:hunter2@{}", "http://***@{}{path}")])
def test_url_gets_the_path_of_the_source_unless_it_has_one(offline, to, url):
    with socket.socket() as reserved:  # bound, but not listening
        reserved.bind(("127.0.0.1", 0))
        address = "%s:%d" % reserved.getsockname()
        done = offline.gatepost("send", "--kind", "invoice.accepted", "--to", to.format(address))
    assert done.returncode == EX_TEMPFAIL and done.stderr.startswith(
        f"gatepost send: {url.format(address, path='/webhooks/invoicing')}: "), done.stderr


def test_https_to_a_port_without_tls_asks_for_the_scheme(shared, daemon):
    done = shared.gatepost("send", "--kind", "invoice.accepted", "--to", f"https://{daemon.address}")
    assert done.returncode == EX_TEMPFAIL and "; is this a port for http:// or for https://?" in done.stderr


@pytest.mark.parametrize("change", [{"proxy_protocol": "required", "trusted_proxy": "127.0.0.1"}, {"listen": "127.0.0.1:0"}], ids=["proxy", "port"])
def test_receiver_that_cannot_be_reached_from_here_is_refused_with_the_option(offline, change):
    config = offline.config()
    config["receiver"].update(change)
    done = offline.gatepost("send", "--kind", "invoice.accepted", config=config)
    assert (done.returncode, done.stdout) == (EX_USAGE, "") and "give --to" in done.stderr


def test_missing_body_file_exits_66(send):
    assert send("no-such-file.json").returncode == EX_NOINPUT


def test_control_characters_in_the_answer_are_escaped(offline, send_to):
    done = send_to(b"\x1b[31mred \x9b31m \xc2\x9b31m\nna\xc3\xafve")
    assert (done.returncode, done.stdout) == (0, "200 \\x1b[31mred \\x9b31m \\xc2\\x9b31m\\x0anaïve\n")


@pytest.fixture
def send_to(offline):
    """Run `gatepost send` to somebody who answers with a body."""
    def run(answer):
        with socket.create_server(("127.0.0.1", 0)) as server:
            def serve():
                connection, _ = server.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer)
            thread = threading.Thread(target=serve)
            thread.start()
            done = offline.gatepost("send", "--to", f"http://127.0.0.1:{server.getsockname()[1]}", "--kind", "invoice.accepted")
            thread.join()
        return done
    return run


def test_topics_create_creates_the_others_if_one_cannot_be_created(installation):
    """Kafka refuses names that differ from another topic's in . and _ only, whoever made that."""
    config = installation.config()
    config["events"].update({"a": f"{installation.prefix}.one", "b": f"{installation.prefix}.two"})
    other = installation.prefix + "_two"
    installation.kafka.admin.create_topics([NewTopic(other, 1, 1)])[other].result()
    done = installation.gatepost("topics", "create", config=config)
    assert done.returncode == EX_UNAVAILABLE and "collides" in done.stderr and done.stdout.count(" created\n") == 12
