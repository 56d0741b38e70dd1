"""gatepost status: the report on a running daemon."""

import http.server
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time

import pytest

import waiting
from daemon import ENVIRONMENT
from installation import BUILD
from signing import Delivery, event_body

EX_USAGE, EX_UNAVAILABLE, EX_TEMPFAIL, EX_NOPERM, EX_CONFIG = 64, 69, 75, 77, 78
THREE_DAYS = 3 * 86400


@pytest.fixture(scope="module")
def daemon(shared):
    """A daemon with two sources, of which the other has its secret in the configuration."""
    config = shared.config().source("other")
    del config["source other"]["secret_file"]
    config["source other"]["secret"] = "the secret of the other source"
    config["admin"]["listen"] = f"unix:{config.directory}/admin.sock"
    old = time.time() - THREE_DAYS
    os.utime(config["source invoicing"]["secret_file"], (old, old))
    shared.create_topics(config)
    return shared.start(config)


@pytest.fixture
def status(shared, daemon):
    """What `gatepost status --json` says."""
    def run():
        done = shared.gatepost("status", "--json", config=daemon.config)
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)
    return run


@pytest.fixture
def impostor(offline):
    """Something else at the admin endpoint: gives a configuration and takes what to answer."""
    pages = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            code, text = pages[self.path]
            self.send_response(code)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = offline.config()
    config["admin"]["listen"] = f"127.0.0.1:{server.server_port}"

    def run(*arguments, status=(200, b'{"startTimeSeconds":0,"ready":true}')):
        pages["/status"] = status
        return offline.gatepost("status", *arguments, config=config)
    yield run
    server.shutdown()
    server.server_close()


def test_json_counts_deliveries_by_result(shared, daemon, status):
    before = status()
    repeated = daemon.accept()
    daemon.accept(repeated.signed_again())
    daemon.accept(Delivery(event_body("no.such.kind")))
    assert daemon.post(Delivery(secret=b"not the secret of the tests")).status == 401

    def is_told(now):
        return (now["duplicates"] > before["duplicates"] and now["rememberedIds"] >= 2 and now["lagRecords"] == 0 and
                now["quarantined"]["unknown-kind"] > before["quarantined"]["unknown-kind"])
    waiting.until(lambda: is_told(status()), 30, "the routed deliveries in the status")
    after = status()

    def more(*path):
        one, other = after, before
        for name in path:
            one, other = one[name], other[name]
        return one - other
    assert more("requests", "invoicing", "accepted") == 3 and more("requests", "invoicing", "forged") == 1
    assert more("requests", "other", "accepted") == 0 and "" in after["requests"]
    assert more("events", "invoice.accepted") == 1 and more("duplicates") == 1
    assert more("quarantined", "unknown-kind") == 1 and more("quarantined", "malformed-json") == 0
    assert more("transactions", "committed") >= 1
    assert (after["ready"], after["kafkaReachable"]) == (True, True)
    assert after["oldestRecordSeconds"] is None
    for name in ("ackSeconds", "deliverySeconds", "commitSeconds"):
        assert 0 < after[name]["p50"] <= after[name]["p99"] < 300, name
    assert after["roles"] == {"receiver": "ready", "router": "ready"}
    assert after["findings"][0]["subject"] == "[source invoicing]" and " refused as forged, " in after["findings"][0]["text"]


def value(text, label):
    """What a line of the text says after this label, or None."""
    found = re.search(rf"^{re.escape(label)} +(.*)$", text, re.M)
    return found and found[1]


def test_text_shows_the_same_figures(shared, daemon):
    daemon.accept()

    def nothing_waits():
        done = shared.gatepost("status", config=daemon.config)
        return done if value(done.stdout, "waiting to be published") == "0" and value(done.stdout, "events") != "0" else None
    done = waiting.until(nothing_waits, 30, "no lag")
    assert (done.returncode, done.stderr) == (0, "")
    text = done.stdout
    assert text.startswith("ready\n") and (value(text, "receiver"), value(text, "router")) == ("ready", "ready")
    assert re.fullmatch(r"\d+ s|\d+ min \d+ s", value(text, "running for"))
    assert int(value(text, "events")) >= 1 and int(value(text, "remembered delivery-ids")) >= 1
    assert re.search(r"^source invoicing: accepted \d+", text, re.M) and "\nsource other: no request\n" in text
    for label in ("answered within, median", "published within, 99 %"):
        waiting.until(lambda: value(shared.gatepost("status", config=daemon.config).stdout, label), 30, label)


def test_error_elsewhere_in_the_file_does_not_hinder(shared, daemon):
    """The daemon runs on the file that it has loaded."""
    path = pathlib.Path(daemon.config.write("mistakes.conf"))
    path.write_text(path.read_text() + "\n[receiver]\nlisten = nowhere\nmax_bdy = 1\nno line\n[kafkaa]\n")
    assert shared.gatepost("check", config=path).returncode == EX_CONFIG
    done = shared.gatepost("status", config=path)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("ready\n")


def test_file_without_an_admin_section_means_the_default(offline):
    path = offline.directory / "short.conf"
    path.write_text("[router]\n")
    done = offline.gatepost("status", config=path)
    assert (done.returncode in (0, EX_TEMPFAIL) or "127.0.0.1:9464" in done.stderr), done.stderr


def test_test_deliveries_of_doctor_are_no_accepted_ones(installation):
    config = installation.config()
    config["admin"]["listen"] = f"unix:{config.directory}/admin.sock"
    config["receiver"]["listen"] = f"127.0.0.1:{installation.port()}"
    installation.create_topics(config)
    daemon = installation.start(config).wait_until_ready()
    assert installation.gatepost("doctor", config=config.directory / f"{daemon.name}.conf").returncode == 0
    waiting.until(lambda: daemon.metric("gatepost_test_deliveries_total") >= 1, 30, "the test delivery to be dropped")
    status = daemon.admin("/status").json
    assert status["requests"]["invoicing"]["accepted"] == 0 and status["lastAcceptedSeconds"] == {"invoicing": None}
    daemon.accept()
    status = daemon.admin("/status").json
    assert status["requests"]["invoicing"]["accepted"] == 1 and abs(status["lastAcceptedSeconds"]["invoicing"] - time.time()) < 60


def test_missing_event_topic_is_a_finding_with_the_partition_that_waits(installation):
    config = installation.config("router")
    config["admin"]["listen"] = f"unix:{config.directory}/admin.sock"
    installation.create_topics(config, partitions=1)
    kafka, topic = installation.kafka, f"{installation.kafka.prefix}.invoice.pending"
    installation.start(config)
    kafka.delete(topic)
    kafka.append([Delivery(event_body("invoice.pending"))])
    expected = re.compile(rf"^partition 0: warning: waiting: .*{re.escape(topic)}.* missing.*\n  remedy: gatepost topics list; gatepost topics create", re.M)
    shown = []
    waiting.until(lambda: shown.append(installation.gatepost("status", config=config).stdout) or
                  expected.search(shown[-1]) and re.search(r"^router +.* missing", shown[-1], re.M), 60, lambda: shown[-1])
    assert value(shown[-1], "waiting to be published") != "0"


def test_metrics_for_the_status_are_exported(daemon):
    waiting.until(lambda: daemon.metrics("gatepost_kafka_broker_up"), 20, "the broker in the metrics")
    for name in ("process_start_time_seconds", "gatepost_kafka_reachable", "gatepost_secret_timestamp_seconds",
                 "gatepost_kafka_broker_up"):
        assert daemon.metrics(name), name
    assert abs(daemon.metric("process_start_time_seconds") - time.time()) < 600


def test_json_output_is_accepted_by_jq(shared, daemon):
    done = shared.gatepost("status", "--json", config=daemon.config)
    read = subprocess.run(["jq", "-er", ".requests.invoicing.accepted"], input=done.stdout, capture_output=True, text=True)
    assert (read.returncode, read.stderr) == (0, "") and int(read.stdout) >= 0


def test_daemon_not_ready_exits_75_with_the_reason(offline):
    config = offline.config()
    config["admin"]["listen"] = f"unix:{config.directory}/admin.sock"
    offline.daemon(config).start()
    done = offline.gatepost("status", config=config)
    assert (done.returncode, done.stderr) == (EX_TEMPFAIL, "")
    assert done.stdout.startswith("not ready\n") and value(done.stdout, "receiver") not in (None, "ready")
    assert value(done.stdout, "waiting to be published") == "0 known; this router has no partition"
    done = offline.gatepost("status", "--json", config=config)
    assert done.returncode == EX_TEMPFAIL and json.loads(done.stdout)["ready"] is False


def test_absent_daemon_exits_69_and_says_how_to_start_it(offline):
    config = offline.config()
    for listen in (f"unix:{config.directory}/nobody.sock", "127.0.0.1:1"):
        config["admin"]["listen"] = listen
        path = config.write("absent.conf")
        done = offline.gatepost("status", config=str(path))
        assert (done.returncode, done.stdout) == (EX_UNAVAILABLE, "") and "curl" not in done.stderr
        first, *remedies = done.stderr.splitlines()
        assert first.startswith(f"gatepost status: gatepostd is not running: nobody listens at {listen} (")
        text = "\n".join(remedies)
        for remedy in ("systemctl start gatepostd", f"gatepostd -c {path}", "systemctl status gatepostd", "journalctl -u gatepostd"):
            assert remedy in text, remedy


def test_name_of_the_file_is_printed_without_control_characters(offline):
    config = offline.config()
    config["admin"]["listen"] = f"unix:{config.directory}/nobody.sock"
    path = os.fsencode(config.write("control.conf").rename(config.directory / os.fsdecode(b"a\x1b[31mb\nc\xff.conf")))
    escaped = f"{config.directory}/a\\x1b[31mb\\x0ac\\xff.conf"
    done = offline.gatepost("status", config=path)
    first, *remedies = done.stderr.splitlines()
    assert done.returncode == EX_UNAVAILABLE and "not running" in first
    assert f"    or in the foreground: gatepostd -c '{escaped}'" in remedies and len(remedies) == 3
    os.unlink(path)
    done = offline.gatepost("status", config=path)
    assert done.returncode == EX_CONFIG and escaped in done.stderr and done.stderr.count("\n") == 1 and "\x1b" not in done.stderr


def test_unusable_admin_address_exits_78(offline):
    config = offline.config()
    for listen, told in (("off", "is off"), ("127.0.0.1:0", "only gatepostd knows")):
        config["admin"]["listen"] = listen
        done = offline.gatepost("status", config=config)
        assert (done.returncode, done.stdout) == (EX_CONFIG, "")
        assert told in done.stderr and "9464" in done.stderr and "gw1" in done.stderr


def test_admin_socket_of_another_user_exits_77(offline):
    """Only root can become another user to try this."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        listen = f"{directory}/admin.sock"
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(listen)
            server.listen()
            os.chmod(listen, 0o600)
            config = offline.config()
            config["admin"]["listen"] = f"unix:{listen}"
            readable = pathlib.Path(directory, "gatepost.conf")
            shutil.copy(config.write("gatepost.conf"), readable)
            secret = pathlib.Path(directory, "secret")
            secret.write_bytes(config["source invoicing"]["secret_file"].read_bytes())
            readable.write_text(readable.read_text().replace(str(config["source invoicing"]["secret_file"]), str(secret)))
            for each in (readable, secret):
                os.chown(each, 65534, 65534)
                os.chmod(each, 0o600)
            program = shutil.copy(BUILD / "gatepost", directory)
            done = subprocess.run([program, "-c", readable, "status"], capture_output=True, text=True, env=ENVIRONMENT,
                                  user=65534, group=65534, extra_groups=[], timeout=60, cwd=directory)
    assert (done.returncode, done.stdout) == (EX_NOPERM, ""), done.stderr
    assert f"may not connect to unix:{listen}" in done.stderr and "sudo -u gatepost" in done.stderr


@pytest.fixture
def silent():
    """The address of a server that accepts connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_silent_daemon_is_waited_for_ten_seconds(offline, silent):
    config = offline.config()
    config["admin"]["listen"] = silent
    begin = time.monotonic()
    done = offline.gatepost("status", config=config)
    assert done.returncode == EX_UNAVAILABLE and 10 <= time.monotonic() - begin
    assert done.stderr.startswith(f"gatepost status: gatepostd does not answer at {silent} within 10 s")


@pytest.mark.parametrize("answer", [
    (200, b""), (200, b"<html>"), (200, b"{}"), (200, b"[]"), (200, b"7"), (200, b'{"startTimeSeconds":0'),
    (500, b'{"startTimeSeconds":0}'), (200, b'{"\xc2\x9b31m":\xff,"startTimeSeconds":0}'),
    (200, b'{"startTimeSeconds":0,"ready":true,"ready":false}')])
def test_answers_of_other_servers_are_refused(impostor, answer):
    done = impostor(status=answer)
    assert (done.returncode, done.stdout) == (EX_UNAVAILABLE, "") and "/status: the server is not gatepostd" in done.stderr


def test_older_daemon_is_recognised(impostor):
    done = impostor(status=(404, b"not found; paths are /metrics, /healthz and /readyz"))
    assert (done.returncode, done.stdout) == (EX_UNAVAILABLE, "") and "an older gatepostd" in done.stderr


def test_endless_report_is_refused(impostor):
    done = impostor(status=(200, b'{"startTimeSeconds":0,"events":{' + b'"a":1,' * 1000000))
    assert done.returncode == EX_UNAVAILABLE and "longer than" in done.stderr


@pytest.mark.parametrize("partitions, told", [
    ([], "0 known; this router has no partition"),
    ([("standby", None, 0)], "0 known; this router has no partition"),
    ([("routing", 7, 3), ("waiting", None, 0), ("standby", None, 0)], "3 known; not known in 1 of 2 partitions"),
    ([("routing", 7, 0), ("routing", 0, 3)], "3"),
    ([("routing", 7, 0), ("unassigned", None, 3)], "3"),
])
def test_lag_is_said_only_where_it_is_known(impostor, partitions, told):
    """lagRecords is 0 also before the router has a position."""
    report = {"startTimeSeconds": 0, "ready": True, "lagRecords": sum(lag for _, _, lag in partitions), "partitions": [
        {"partition": n, "state": state, "cause": "", "lagRecords": lag, "restoreRecords": 0, "committedOffset": offset}
        for n, (state, offset, lag) in enumerate(partitions)]}
    assert value(impostor(status=(200, json.dumps(report).encode())).stdout, "waiting to be published") == told


ODD = [b"1e400", b"-1e300", b"1e300", b"null", b'"\\u001b[31m"', b'"\xc2\x9b31m"', b"[]", b"[[],7]", b"{}", b'{"\xc2\x9b":{}}', b"true",
       b'[{"source":1,"partition":"a","broker":{},"state":[],"file":"\xc2\x9b","detail":"\xc2\x9b","outcome":7,"client":"\xc2\x9b"}]', b'{"\\u001b":{"accepted":"x","\xc2\x9b":1}}']


@pytest.mark.parametrize("odd", ODD)
def test_extreme_values_and_control_characters_are_tolerated(impostor, odd):
    names = ("startTimeSeconds", "roles", "brokers", "requests", "events", "duplicates", "quarantined", "transactions",
             "lagRecords", "oldestRecordSeconds", "partitions", "ackSeconds", "secrets", "certificateExpirySeconds", "refusals",
             "recentlyQuarantined", "kafkaProblem", "kafkaUnreachableSinceSeconds", "spool", "versions", "misconfiguredTopics",
             "embeddedBroker", "kafkaClients", "deletedBeforeRouting", "logTruncations", "partitionsAdded")
    report = (b"{" + b"".join(b'"%b":%b,' % (name.encode(), odd) for name in names) +
              b'"configuration":{"awaitingRestart":%b},"ready":true}' % odd)
    for option in ([], ["--json"]):
        done = impostor(*option, status=(200, report))
        assert (done.returncode, done.stderr) == (0, "") and "\x1b" not in done.stdout and "\x9b" not in done.stdout
        assert not option or json.loads(done.stdout)["ready"] is True


@pytest.mark.parametrize("arguments, told", [
    (["all"], "unexpected argument 'all'"), (["--nonsense"], "unknown option"),
])
def test_wrong_usage_exits_64(offline, arguments, told):
    done = offline.gatepost("status", *arguments, config="/nonexistent")
    assert (done.returncode, done.stdout) == (EX_USAGE, "") and told in done.stderr
