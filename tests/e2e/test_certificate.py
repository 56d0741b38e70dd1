"""Reports about a certificate: by `gatepost check`, gatepostd -t, the metric and the status."""

import datetime
import json
import re
import signal
import ssl
import subprocess

import pytest

import http_client
import waiting
from authority import Authority
from daemon import ENVIRONMENT, assert_no_sanitizer_report
from installation import BUILD
from signing import Delivery

EX_TEMPFAIL, EX_CONFIG = 75, 78
METRIC = "gatepost_tls_certificate_expiry_timestamp_seconds"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def check(offline):
    """Check a configuration with a certificate with the daemon and the command line, which must agree on errors; the command
    line may warn as well. Returns the exit status, the messages of the daemon, and the output of the command line."""
    def run(certificate, key):
        path = offline.config().tls(certificate, key).write()
        line = path.read_text().splitlines().index(f"tls_certificate_file = {certificate}") + 1
        outcomes = []
        for command in ([BUILD / "gatepostd", "-t", "-c", path], [BUILD / "gatepost", "-c", path, "check"]):
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30,
                                  env=ENVIRONMENT)
            assert_no_sanitizer_report(done.stderr)
            text = re.sub(r"here: warning: \S+ has one certificate, .*\n  remedy: .*\n", "", done.stderr.replace(f"{path}:{line}: ", "here: "))
            outcomes.append((done.returncode, text))
        errors = [(status, [line for line in text.splitlines() if line.startswith("here: tls")]) for status, text in outcomes]
        assert errors[0] == errors[1]
        return *outcomes[0], done.stdout
    return run


def for_days(days):
    """Begin and end of a certificate that is valid for this many days and a half."""
    now = datetime.datetime.now(datetime.timezone.utc)
    begin, end = now - datetime.timedelta(hours=1), now + datetime.timedelta(days=days, hours=12)
    return {"begin": begin.strftime("%Y%m%d%H%M%SZ"), "end": end.strftime("%Y%m%d%H%M%SZ")}


def test_check_prints_days_until_expiry(check, authority):
    status, errors, output = check(*authority.issue("long", **for_days(80)))
    assert (status, errors) == (0, "")
    assert re.search(", certificate valid for 80 days", output)


def test_check_warns_of_a_certificate_that_expires_soon(check, authority):
    status, errors, output = check(*authority.issue("short", **for_days(20)))
    assert status == 0 and re.search(", certificate valid for 20 days", output)
    assert re.fullmatch(r"here: warning: tls_certificate_file: .* expires at \S+\n  remedy: renew it, .*\n", errors)


@pytest.mark.parametrize("begin, end, words", [
    ("20200101000000Z", "20200102000000Z", "expired at 2020-01-02T00:00:00Z"),
    ("20990101000000Z", "20990102000000Z", "not valid before 2099-01-01T00:00:00Z")])
def test_check_refuses_a_certificate_not_currently_valid(check, authority, begin, end, words):
    status, errors, output = check(*authority.issue("other", begin=begin, end=end))
    assert (status, output) == (EX_CONFIG, "")
    assert errors.startswith("here: tls_certificate_file: ") and words in errors


def test_check_refuses_a_weak_key(check, authority):
    status, errors, _ = check(*authority.issue("weak", algorithm=("rsa:1024",)))
    assert status == EX_CONFIG
    assert errors.startswith("here: tls_certificate_file: ") and "too small" in errors


def on_curve(name):
    return "ec", "-pkeyopt", f"ec_paramgen_curve:{name}"


@pytest.mark.parametrize("curve", ["secp256k1", "secp224r1", "brainpoolP256r1"])
def test_check_refuses_a_key_on_a_curve_that_clients_do_not_offer(check, authority, curve):
    status, errors, _ = check(*authority.issue("curve", algorithm=on_curve(curve)))
    assert status == EX_CONFIG
    assert errors.startswith(f"here: tls_certificate_file: its key is on the curve {curve}, which TLS clients do not offer; get ")


@pytest.mark.parametrize("algorithm", [on_curve("P-384"), on_curve("P-521"), ("rsa:2048",), ("ed25519",)])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_clients_connect_to_a_certificate_with_another_key(offline, authority, algorithm, version):
    daemon = offline.daemon(offline.config("receiver").tls(*authority.issue("other", algorithm=algorithm))).start()
    with http_client.connect(daemon.address) as plain:
        with authority.client(version=version).wrap_socket(plain, server_hostname="localhost") as connection:
            assert connection.version() == version.name.replace("_", ".")


def test_daemon_does_not_start_with_a_weak_key(offline, authority):
    daemon = offline.daemon(offline.config("receiver").tls(*authority.issue("weak", algorithm=("rsa:1024",)))).launch()
    daemon.wait_for_exit(EX_CONFIG)
    assert "too small" in daemon.log


def test_daemon_starts_with_an_expired_certificate(installation, authority):
    """A restart must not stop routing; SIGHUP then loads the renewed certificate."""
    config = installation.config().tls(*authority.issue("late", begin="20200101000000Z", end="20200102000000Z"))
    installation.create_topics(config)
    daemon = installation.start(config)
    assert re.search(r" error certificate problem file=\S+late.pem\S* reason=\"the certificate, or one in its chain, expired", daemon.log)
    tls = authority.client()
    with pytest.raises(ssl.SSLCertVerificationError):
        http_client.connect(daemon.address, tls=tls)
    assert daemon.metric(METRIC) == datetime.datetime(2020, 1, 2, tzinfo=datetime.timezone.utc).timestamp()
    assert re.search(r"^certificate +expired$", installation.gatepost("status", config=at_address(daemon)).stdout, re.M)
    config.tls(*authority.issue("renewed")).write(f"{daemon.name}.conf")
    daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_for_log("configuration reloaded")
    daemon.accept(tls=tls)
    assert daemon.metric(METRIC) > Delivery().timestamp


def at_address(daemon):
    """The daemon's configuration, with the admin endpoint's real port."""
    path = daemon.config.directory / "status.conf"
    address = daemon._addresses("admin")[0]
    path.write_text(daemon.config.text.replace("[admin]\nlisten = 127.0.0.1:0", f"[admin]\nlisten = {address}"))
    path.chmod(0o600)
    return path


def test_metric_and_status_show_the_expiry_time(offline, authority):
    certificate, key = authority.issue("gateway", days=80)
    daemon = offline.daemon(offline.config("receiver").tls(certificate, key)).start()
    end = subprocess.run(["openssl", "x509", "-in", certificate, "-noout", "-enddate"], check=True, capture_output=True,
                         text=True).stdout.strip().partition("=")[2]
    assert daemon.metric(METRIC) == ssl.cert_time_to_seconds(end)
    status = at_address(daemon)
    assert re.search(r"^certificate +expires in (79|80) d \d+ h$", offline.gatepost("status", config=status).stdout, re.M)
    report = json.loads(offline.gatepost("status", "--json", config=status).stdout)
    assert report["certificateExpirySeconds"] == ssl.cert_time_to_seconds(end)


def test_expiry_metric_is_absent_without_tls(offline):
    daemon = offline.daemon(offline.config("receiver")).start()
    waiting.until(lambda: daemon.metrics("process_start_time_seconds"), 30, "metrics")
    assert not daemon.metrics(METRIC)


def test_admin_endpoint_does_not_use_tls(offline, authority):
    daemon = offline.daemon(offline.config("receiver").tls(*authority.issue("gateway"))).start()
    assert daemon.admin("/healthz").status == 200


@pytest.mark.parametrize("listen", ["address", "socket"])
def test_send_reaches_its_own_receiver_over_tls(installation, authority, listen):
    config = installation.config("receiver").tls(*authority.issue("gateway.example", names="DNS:gateway.example"))
    path = config.directory / "receiver.sock"
    if listen == "socket":
        config["receiver"]["listen"] = f"unix:{path}"
    installation.create_topics(config)
    daemon = installation.start(config)
    config["receiver"]["listen"] = f"unix:{path}" if listen == "socket" else daemon.address
    done = installation.gatepost("send", "--kind", "invoice.accepted", config=config)
    assert done.returncode == 0 and done.stdout.startswith("200 "), done.stderr
    config.tls(*authority.issue("other.example", names="DNS:gateway.example"))
    done = installation.gatepost("send", "--kind", "invoice.accepted", config=config)
    assert done.returncode == EX_TEMPFAIL and "certificate" in done.stderr
