"""Wrong and doubtful configurations: what gatepost check and gatepostd -t say about each, and on which line."""

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile

import pytest

import waiting
from daemon import ENVIRONMENT, assert_no_sanitizer_report
from installation import BUILD

EX_OSERR, EX_CONFIG = 71, 78
GOOD = {
    "gatepost": [],
    "receiver": ["listen = 127.0.0.1:0"],
    "router": [],
    "source invoicing": ["path = /webhooks/invoicing", "header_prefix = x-invoicing", "secret = 7d8f0c1b2a3e4f5061728394a5b6c7d8"],
    "topics": ["prefix = t"],
    "kafka": ["bootstrap.servers = kafka1:9092"],
    "admin": ["listen = off"],
}
SASL = "security.protocol = SASL_SSL"
SCRAM = f"{SASL}|sasl.mechanism = SCRAM-SHA-512"

# section, lines that are added or replace the options of their names, words of the error
ERRORS = [
    ("gatepost", "log_level", "expected [section] or option = value"),
    ("gatepost", "log_level = debug # for now", "line of its own"),
    ("gatepost", 'log_level = "debug', "no closing quote"),
    ("gatepost", "loglevel = debug", "did you mean log_level?"),
    ("gatepost", "threads = 2", "it belongs in [receiver]"),
    ("gatepost", "roles = both", "is not a role"),
    ("reciever", "threads = 2", "did you mean [receiver]?"),
    ("receiver", "listen = 127.0.0.1:80800", "does not end with a port, 0 to 65535; write 127.0.0.1:8080"),
    ("receiver", "listen = 0.0.0.0:8080|listen=127.0.0.1:8080", "127.0.0.1:8080 is in conflict with 0.0.0.0:8080"),
    ("admin", "listen = 127.0.0.1:9464|[receiver]|listen=*:9464", "give the admin endpoint another port"),
    ("admin", "listen = 0.0.0.0:9464", "has no authentication"),
    ("receiver", "proxy_protocol = required", "needs a trusted_proxy"),
    ("receiver", "listen = unix:/nonexistent/gatepost.sock", "/nonexistent: No such file or directory"),
    ("receiver", "listen = unix:/etc/passwd", "exists and is not a socket"),
    ("receiver", "spool = ~/spool", "is not an absolute path"),
    ("receiver", "spool = /nonexistent/spool", "/nonexistent: No such file or directory"),
    ("receiver", "spool = /dev/shm/gatepost-spool|spool_max = 1MiB", "a reboot loses what is in memory"),
    ("router", "state = /etc/passwd/state", "Not a directory"),
    ("router", "state = /var/tmp/gatepost-spool|[receiver]|spool = /var/tmp/gatepost-spool", "is the directory of the spool, too"),
    ("receiver", "max_body = 10MB", "did you mean 10MiB?"),
    ("receiver", "max_in_flight = 100KiB", "max_in_flight"),
    ("router", "dedup_window = 5min", "shorter than twice the tolerance"),
    ("source invoicing", "path = /webhooks/<tenant>", "is not the path of a URL"),
    ("source invoicing", 'path = /webhooks/a"b', "is not the path of a URL"),
    ("source invoicing", "path = /webhooks/{id}", "is not the path of a URL"),
    ("source invoicing", "secret_file = /nonexistent/secret", "No such file or directory"),
    ("source second", "path = /webhooks/invoicing|secret = 8d8f0c1b2a3e4f5061728394a5b6c7d8", "already has this path"),
    ("kafka", "acks = 1", "may not be set: a delivery is answered 200 only when all in-sync replicas have it"),
    ("kafka", "metadata.broker.list = kafka1:9092", "write bootstrap.servers instead"),
    ("kafka", "linger.ms = 9000", "answered 503 after ack_timeout"),
    ("kafka", "socket.timeout.ms = 30s", "is not a number without a unit"),
    ("kafka", "soket.timeout.ms = 3000", "no such property"),
    ("kafka", f"{SASL}|sasl.username = u|sasl.password = p", "GSSAPI, also by default"),
    ("kafka", f"{SCRAM}|sasl.username = u", "sasl.username and sasl.password must be set"),
    ("kafka", "sasl.username = u|sasl.password = p", "without security.protocol; security.protocol = SASL_SSL"),
]

# These pass: only the warning says that they are probably not intended.
WARNINGS = [
    ("receiver", "listen = 0.0.0.0:8080", "without TLS"),
    ("admin", "listen = 0.0.0.0:9464|allow_remote = on", "neither TLS nor authentication"),
    ("source invoicing", "secret = at least sixteen bytes that nobody can guess", "placeholder"),
    ("source invoicing", "secret = 7d8f0c1b2a3e4f50\u200b61728394a5b6c7d8", "beyond printable ASCII"),
    ("source invoicing", "secret = 7d8f0c1b2a3e4f50\u00a061728394a5b6c7d8", "beyond printable ASCII"),
    ("source invoicing", 'secret = "7d8f0c1b2a3e4f5061728394a5b6c7d8 "', "begins or ends with a blank"),
    ("receiver", "max_connections_per_address = 50", "there is no trusted_proxy; trusted_proxy = 127.0.0.1"),
    ("receiver", "listen = 127.0.0.1:0|max_refusals_per_address = 5", "max_refusals_per_address counts the clients of a proxy as one"),
    ("source invoicing", "tolerance = 5s", "when clocks differ"),
    ("source invoicing", "tolerance = 30h", "send it again for that long"),
    ("router", "dedup_window = 10min", "published again"),
    ("receiver", "spool = /var/tmp/gatepost-spool|spool_max = 1024GiB", "larger than the file system"),
    ("source second", "path = /second|secret = 7d8f0c1b2a3e4f5061728394a5b6c7d8", "have a secret in common"),
    ("kafka", "bootstrap.servers = embedded", "forgets all records"),
]

# These pass without a warning, although they are close to one.
FINE = [
    ("receiver", "listen = 0.0.0.0:8080|trusted_proxy = 192.0.2.1"),
    ("receiver", "listen = unix:/run/gatepost-nonexistent/r.sock"),
    ("receiver", "listen = 127.0.0.1:8080|trusted_proxy = 127.0.0.1|max_connections_per_address = 50"),
    ("receiver", "spool = /var/tmp/gatepost-spool|spool_max = 1MiB"),
    ("kafka", "bootstrap.servers = kafka1, kafka2:9093 ,[::1]:9092"),
    ("kafka", "linger.ms = 100|session.timeout.ms = 30000|heartbeat.interval.ms = 10000|transaction.timeout.ms = 60000"),
    ("gatepost", "roles = receiver|[kafka]|heartbeat.interval.ms = 60000|transaction.timeout.ms = 1000"),
    ("source invoicing", "secret = 7d8f0c1b#2a3e4f50;61728394a5b6c7d8"),
    ("source invoicing", "path = /hook/%41/~x"),
    ("events", "payment.* = t.payments|invoice.pending = none"),
    ("topics", "prefix = a-b_c.d"),
]


def startable(text, directory):
    """The same configuration on free ports, and with the spool in this directory."""
    text = re.sub(r"(?m)^(listen ?= ?\S+):(?:80|94)\d\d$", r"\1:0", text)
    return re.sub(r"/(?:var/tmp|dev/shm)/gatepost-spool", f"{directory}/spool", text)


def written(section, added):
    """The text of a good configuration with these lines."""
    sections = {name: list(lines) for name, lines in GOOD.items()}
    lines = sections.setdefault(section, [])
    for line in added.split("|"):
        name = line.partition(" =")[0]
        same = [i for i, each in enumerate(lines) if each.startswith(f"{name} =")]
        lines[same[0] if same else len(lines):same[0] + 1 if same else len(lines)] = [line]
    text = "".join(f"[{name}]\n" + "".join(f"{line}\n" for line in lines) for name, lines in sections.items())
    return text


@pytest.fixture
def check(tmp_path):
    """Have the daemon and the command line check a text; both must say the same. Returns the exit status and the problems."""
    def run(text, directory=tmp_path, mode=0o600):
        path = directory / "gatepost.conf"
        path.write_text(text)
        path.chmod(mode)
        outcomes = []
        for command in ([BUILD / "gatepostd", "-t", "-c", path], [BUILD / "gatepost", "-c", path, "check"]):
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, env=ENVIRONMENT)
            assert_no_sanitizer_report(done.stderr)
            problems = [line for line in done.stderr.replace(str(path), "FILE").replace("\n  remedy: ", "; ").splitlines() if line.startswith("FILE")]
            outcomes.append((done.returncode, problems))
        assert outcomes[0] == outcomes[1]
        return outcomes[0]
    return run


def lines_with(text, section, added):
    """The possible lines of a problem: of the section's header, and of each added option."""
    return [number for number, line in enumerate(text.splitlines(), 1) if line in (f"[{section}]", *added)]


def assert_short(found):
    """A reason and a remedy can each be read at a glance."""
    for _, text in found:
        assert all(len(part) <= 200 for part in text.split("; ")), text


def test_good_configuration_passes_without_a_warning(check):
    assert check(written("gatepost", "log_level = info")) == (0, [])


@pytest.mark.parametrize("section, added, words", ERRORS)
def test_mistake_is_refused_on_its_line(check, section, added, words):
    text = written(section, added)
    status, problems = check(text)
    errors = "\n".join(problems)
    found = re.findall(r"^FILE:(\d+): (?!warning: )(.*)$", errors, re.M)
    assert status == EX_CONFIG and len(found) == 1, errors
    assert words in found[0][1], errors
    assert int(found[0][0]) in lines_with(text, section, added.split("|")), (text, errors)
    assert "7d8f" not in errors
    assert_short(found)


@pytest.mark.parametrize("section, added", FINE)
def test_unusual_configuration_passes_without_a_warning(check, section, added):
    assert check(written(section, added)) == (0, [])


@pytest.mark.parametrize("section, added, words", WARNINGS)
def test_doubtful_configuration_passes_with_a_warning(check, section, added, words):
    text = written(section, added)
    status, problems = check(text)
    errors = "\n".join(problems)
    found = re.findall(r"^FILE:(\d+): warning: (.*)$", errors, re.M)
    assert status == 0 and len(found) == 1, errors
    assert words in found[0][1], errors
    assert int(found[0][0]) in lines_with(text, section, added.split("|")), (text, errors)
    assert "7d8f" not in errors
    assert_short(found)


def test_strict_check_fails_on_a_warning(check, tmp_path):
    check(written("receiver", "listen = 0.0.0.0:8080"))
    strict = [BUILD / "gatepost", "-c", tmp_path / "gatepost.conf", "check", "--strict"]
    assert subprocess.run(strict, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, env=ENVIRONMENT).returncode == EX_CONFIG
    check(written("gatepost", "log_level = info"))
    assert subprocess.run(strict, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, env=ENVIRONMENT).returncode == 0


@pytest.fixture
def check_json(tmp_path):
    """Check a text with --json and with these options. Returns the exit status and the document."""
    def run(text, *options):
        path = tmp_path / "gatepost.conf"
        path.write_text(text)
        path.chmod(0o600)
        done = subprocess.run([BUILD / "gatepost", "-c", path, "check", "--json", *options], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, env=ENVIRONMENT)
        assert done.stderr == ""
        document = json.loads(done.stdout)
        assert document.pop("file") == str(path)
        return done.returncode, document
    return run


def test_json_has_every_finding_with_its_line_and_remedy(check_json):
    assert check_json(written("receiver", "threads = 2")) == (0, {"ok": True, "errors": 0, "warnings": 0, "findings": []})
    status, document = check_json(written("receiver", "listen = 0.0.0.0:8080"))
    (finding,) = document.pop("findings")
    assert (status, document) == (0, {"ok": True, "errors": 0, "warnings": 1})
    assert (finding["line"], finding["level"]) == (3, "warning") and "tls_certificate_file" in finding["remedy"]
    status, document = check_json("stray\n[source invoicing]\npath = x\nacks\n[kafka]\nacks = 1\n")
    assert (status, document["ok"], document["errors"]) == (EX_CONFIG, False, len(document["findings"]))
    assert {1, 3, 4, 6} <= {each["line"] for each in document["findings"]}


def test_check_ends_with_a_summary(check, tmp_path):
    def last_line(text, *options):
        check(text)
        done = subprocess.run([BUILD / "gatepost", "-c", tmp_path / "gatepost.conf", "check", *options], capture_output=True, text=True, timeout=60)
        return (done.stdout or done.stderr).replace(str(tmp_path / "gatepost.conf"), "FILE").splitlines()[-1]
    doubtful = written("receiver", "listen = 0.0.0.0:8080")
    assert last_line(written("receiver", "threads = 2")) == "FILE: ok, 1 source, 9 event topics"
    assert last_line(doubtful) == "FILE: ok, 1 source, 9 event topics, 1 warning"
    assert last_line(written("events", "payment.* = t.payments|invoice.pending = none")) == "FILE: ok, 1 source, 9 event topics"
    assert last_line(doubtful, "--strict") == "gatepost check: FILE is refused because of --strict: 0 errors, 1 warning"
    assert last_line(written("kafka", "acks = 1")) == "gatepost check: FILE is refused: 1 error, 0 warnings"


# The start


@pytest.mark.parametrize("section, added", [*(row for row in FINE if "nonexistent" not in row[1]), *(row[:2] for row in WARNINGS)])
def test_what_check_accepts_starts(tmp_path, section, added):
    path, log = tmp_path / "gatepost.conf", tmp_path / "log"
    path.write_text(startable(written(section, added), tmp_path))
    path.chmod(0o600)
    with open(log, "wb") as out:
        daemon = subprocess.Popen([BUILD / "gatepostd", "-c", path], stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=ENVIRONMENT)
    try:
        waiting.until(lambda: "waiting for it" in log.read_text() or " ready" in log.read_text() or daemon.poll() is not None, 60, "the start")
        assert daemon.poll() is None, log.read_text()
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(60) == 0, log.read_text()
    finally:
        daemon.kill()
        daemon.wait()
    assert_no_sanitizer_report(log.read_text())


UNPRIVILEGED = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"] if os.getuid() == 0 else []


@pytest.fixture
def unprivileged(tmp_path):
    """Run a program with a text as a user without privileges. Returns the exit status and what it printed."""
    def run(text, program, *arguments):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "gatepost.conf"
            path.write_text(text.replace("DIRECTORY", directory))
            path.chmod(0o600)
            if UNPRIVILEGED:
                os.chown(path, 65534, 65534)
                os.chmod(directory, 0o755)
            else:
                os.chmod(directory, 0o555)
            done = subprocess.run([*UNPRIVILEGED, BUILD / program, "-c", path, *arguments], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=60, env=ENVIRONMENT)
            os.chmod(directory, 0o755)
        return done.returncode, done.stderr.replace(str(path), "FILE")
    return run


@pytest.mark.skipif(int(pathlib.Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text()) <= 443, reason="every user may bind port 443")
@pytest.mark.parametrize("section", ["receiver", "admin"])
def test_port_that_needs_a_privilege_is_a_warning_and_not_a_restart_loop(unprivileged, section):
    text = written(section, "listen = 127.0.0.1:443")
    status, errors = unprivileged(text, "gatepost", "check")
    assert status == 0 and re.search(r"^FILE:\d+: warning: listen: 127.0.0.1:443: the port needs a privilege", errors, re.M)
    status, log = unprivileged(text, "gatepostd")
    assert status == EX_CONFIG and f"[{section}] listen = 127.0.0.1:443: the port needs a privilege" in log


def test_directory_that_is_not_writable_is_a_warning_and_not_a_restart_loop(unprivileged):
    text = written("receiver", "listen = unix:DIRECTORY/r.sock")
    status, errors = unprivileged(text, "gatepost", "check")
    assert status == 0 and re.search(r"^FILE:3: warning: listen: .*: cannot make a socket in .*: Permission denied", errors, re.M), errors
    status, log = unprivileged(text, "gatepostd")
    assert status == EX_CONFIG and "Permission denied" in log


@pytest.mark.skipif(not UNPRIVILEGED, reason="only root becomes another user")
@pytest.mark.parametrize("program, arguments", [("gatepost", ["check", "--user", "nobody"]), ("gatepostd", ["-t", "--user", "nobody"])])
def test_check_of_root_opens_the_files_as_the_user_of_the_daemon(program, arguments):
    """Access is not simulated: what the user may not read or write is found by trying."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        path, secret = pathlib.Path(directory) / "gatepost.conf", pathlib.Path(directory) / "secret"
        secret.write_text("7d8f0c1b2a3e4f5061728394a5b6c7d8")
        path.write_text(written("receiver", f"spool = {directory}/spool|spool_max = 1MiB").replace("secret = 7d8f0c1b2a3e4f5061728394a5b6c7d8", f"secret_file = {secret}"))

        def run():
            return subprocess.run([BUILD / program, "-c", path, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, env=ENVIRONMENT)
        secret.chmod(0o600)
        done = run()
        assert done.returncode == EX_CONFIG and "user nobody" in done.stderr, done.stderr
        assert f"secret_file: cannot open {secret}: Permission denied" in done.stderr, done.stderr
        os.chown(secret, 65534, 65534)
        done = run()
        assert done.returncode == 0 and f"cannot write to {directory}: Permission denied" in done.stderr, done.stderr


def test_missing_directory_of_a_socket_ends_the_start_with_78(unprivileged):
    status, log = unprivileged(written("receiver", "listen = unix:/run/gatepost-nonexistent/r.sock"), "gatepostd")
    assert status == EX_CONFIG and "/run/gatepost-nonexistent: No such file or directory" in log


def test_address_that_may_come_later_ends_the_start_with_a_status_for_a_restart(unprivileged):
    status, log = unprivileged(written("receiver", "listen = 192.0.2.55:8080"), "gatepostd")
    assert status == EX_OSERR and "Cannot assign requested address" in log
