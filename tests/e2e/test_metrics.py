"""/metrics: the counters of a running daemon, in the format of Prometheus and as gatepostd(8) documents them."""

import pathlib
import re
import signal
import subprocess
import time

import pytest

import http_client
import waiting
from authority import Authority
from signing import SECRET, Delivery, event_body

ROOT = pathlib.Path(__file__).parents[2]
HISTOGRAMS = ("gatepost_ack_seconds", "gatepost_verify_seconds", "gatepost_batch_records", "gatepost_commit_seconds",
              "gatepost_delivery_seconds")
PARTS_OF_A_HISTOGRAM = re.compile(r"_(bucket|sum|count)$")


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def daemon(shared, authority):
    """A daemon that exports every metric, after some traffic."""
    config = shared.config().tls(*authority.issue("gateway"))
    config["receiver"]["spool"] = config.directory / "spool"
    config["receiver"]["ack_timeout"] = "8s"  # the first connection may take long; what is spooled is not in every histogram
    shared.create_topics(config)
    daemon = shared.start(config).wait_until_ready()  # earlier, deliveries go to the spool
    tls = authority.client()
    repeated = daemon.accept(tls=tls)
    daemon.accept(repeated.signed_again(), tls=tls)
    daemon.accept(Delivery(event_body("no.such.kind")), tls=tls)
    assert daemon.post(Delivery(secret=b"not the secret of the tests"), tls=tls).status == 401
    shared.kafka.wait_until_routed()
    waiting.until(lambda: daemon.metric("gatepost_duplicates_total") == 1 and
                  daemon.metric("gatepost_quarantined_total") == 1, 30, "the routed deliveries in the metrics")
    waiting.until(lambda: daemon.metrics("gatepost_kafka_broker_rtt_seconds"), 60, "the broker in the metrics")
    return daemon


def text_of(daemon):
    return daemon.admin("/metrics").body.decode()


def names_in(text):
    """The names of metrics by their TYPE lines, and of their samples without a histogram's suffixes."""
    declared = set(re.findall(r"^# TYPE (\w+) ", text, re.M))
    samples = {match[1] for match in re.finditer(r"^(\w+)[{ ]", text, re.M)}
    return declared, {PARTS_OF_A_HISTOGRAM.sub("", name) if PARTS_OF_A_HISTOGRAM.sub("", name) in declared else name
                  for name in samples}


def test_metrics_pass_promtool(daemon):
    done = subprocess.run(["promtool", "check", "metrics"], input=text_of(daemon), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_every_metric_has_one_help_and_one_type_line(daemon):
    text = text_of(daemon)
    declared, sampled = names_in(text)
    assert sampled <= declared
    for name in declared:
        assert len(re.findall(rf"^# TYPE {name} ", text, re.M)) == len(re.findall(rf"^# HELP {name} .", text, re.M)) == 1


def test_gatepostd_8_lists_exactly_the_metrics_and_labels(daemon):
    page = (ROOT / "man" / "gatepostd.8").read_text()
    section = page.partition(".Ss Metrics")[2].partition(".Ss ")[0]
    known = {name: set(labels.split(",")) - {""} for name, labels in
             re.findall(r"(?:^\.It|,) Li ((?:gatepost|process)_\w+)(?:\{([\w,]+)\})?", section, re.M)}
    text = text_of(daemon)
    declared, _ = names_in(text)
    labels = {name: set() for name in declared}
    for name, pairs in re.findall(r"^(\w+?)(?:_bucket)?\{(.*)\} \S+$", text, re.M):
        labels[name] |= {label for label, _ in re.findall(r'(\w+)="([^"]*)"', pairs)} - {"le"}
    assert known == labels
    reasons = dict(re.findall(r"^\.It Li (gatepost_connections_closed_total).*\n((?:(?!\.It).*\n)*)", section, re.M))
    (described,) = reasons.values()
    for pairs in daemon.metrics("gatepost_connections_closed_total"):
        assert re.search(rf"\b{dict(pairs)['reason']}\b", described), pairs


def test_histograms_are_consistent(daemon):
    for name in HISTOGRAMS:
        buckets = [(float(dict(labels)["le"]), count) for labels, count in daemon.metrics(f"{name}_bucket").items()]
        counts = [count for _, count in sorted(buckets)]
        assert counts == sorted(counts) and buckets[-1][0] == float("inf"), name
        assert counts[-1] == daemon.metric(f"{name}_count") >= 1, name
        assert daemon.metric(f"{name}_sum") > 0, name


def test_every_histogram_counts_what_it_documents(daemon):
    """Four requests: one forged, two published or quarantined, one a repeat."""
    assert daemon.metric("gatepost_verify_seconds_count") == 4
    assert daemon.metric("gatepost_ack_seconds_count") == 3
    assert daemon.metric("gatepost_delivery_seconds_count") == 1
    assert daemon.metric("gatepost_batch_records_sum") == 3
    committed = daemon.metric("gatepost_transactions_total", result="committed")
    assert daemon.metric("gatepost_batch_records_count") == daemon.metric("gatepost_commit_seconds_count") == committed
    assert 0 < daemon.metric("gatepost_delivery_seconds_sum") < 60
    assert 0 < daemon.metric("gatepost_ack_seconds_sum") < 60


def test_process_metrics_match_proc(daemon):
    pid = daemon.process.pid
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    resident = int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024
    assert 0.5 * resident < daemon.metric("process_resident_memory_bytes") < 2 * resident
    open_fds = len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir()))
    assert abs(daemon.metric("process_open_fds") - open_fds) <= 8
    limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
    assert daemon.metric("process_max_fds") == int(re.search(r"Max open files\s+(\d+)", limits)[1])
    assert daemon.metric("process_cpu_seconds_total") > 0
    assert 0 <= time.time() - daemon.metric("process_start_time_seconds") < 3600
    assert not re.search(r"^gatepost_\w*(start_time|_age)_seconds ", text_of(daemon), re.M)


def test_build_info_has_the_versions(daemon, shared):
    (labels,) = daemon.metrics("gatepost_build_info")
    version = subprocess.run([shared.build / "gatepostd", "--version"], stdout=subprocess.PIPE, text=True).stdout
    assert version == f"gatepostd {dict(labels)['version']}\n"
    assert all(re.match(r"\d+\.\d+\.\d+", dict(labels)[name]) for name in ("librdkafka", "openssl", "libevent"))


def test_kafka_client_metrics_are_exported(daemon):
    waiting.until(lambda: all(daemon.metric("gatepost_kafka_requests_total", client=role) > 0
                              for role in ("receiver", "router")), 30, "requests of both roles")
    assert 0 < daemon.metric("gatepost_kafka_broker_rtt_seconds") < 10
    for name in ("queue_records", "queue_bytes"):
        waiting.until(lambda: daemon.metric(f"gatepost_kafka_{name}") == 0, 30, name)
    for name in ("request_timeouts_total", "request_retries_total"):
        assert daemon.metric(f"gatepost_kafka_{name}") == 0, name


@pytest.mark.parametrize("kind", ['in"voice', "in\\voice", "in\x85voice", 'x"} 1\\', "Größe"])
def test_kind_names_are_escaped(offline, kind):
    """Prometheus refuses the whole page for one malformed line."""
    config = offline.config()
    config["events"][kind] = f"{offline.prefix}.odd"
    daemon = offline.daemon(config).start()
    done = subprocess.run(["promtool", "check", "metrics"], input=daemon.admin("/metrics").body, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert (done.returncode, done.stdout) == (0, b"")
    assert len(daemon.metrics("gatepost_events_total")) == len(daemon.admin("/status").json["events"]) >= 1


def provoke(daemon, secret):
    """Send requests for each outcome that a client can cause. Returns {(source, outcome): number}."""
    genuine = Delivery(secret=secret)
    sent = [(genuine, "invoicing", "accepted", 200), (Delivery(secret=b"not the secret of the tests"), "invoicing", "forged", 401),
            (genuine.but(timestamp=genuine.timestamp - 4000, secret=b"not the secret of the tests"), "invoicing", "stale", 401),
            (genuine.but(timestamp=genuine.timestamp - 4000), "invoicing", "stale_genuine", 401),
            (genuine.but(webhook_id="another"), "invoicing", "forbidden", 403),
            (genuine.but(delivery_id="no/id"), "invoicing", "malformed", 400), (genuine, "nobody", "not_found", 404)]
    counts = {}
    for n, (delivery, source, outcome, status) in enumerate(sent, 1):
        for _ in range(n):
            assert daemon.post(delivery, source).status == status
        counts[source if source == "invoicing" else "", outcome] = n
    assert http_client.request(daemon.address, "GET", "/webhooks/invoicing").status == 405
    for chunked in (False, True):
        assert daemon.post(Delivery(b"x" * 70000), chunked=chunked).status == 413
    assert http_client.raw(daemon.address, b"GET / HTTP/1.1\r\n\r\n").status == 400
    return counts | {("invoicing", "method_not_allowed"): 1, ("", "too_large"): 2, ("", "bad_request"): 1}


def test_every_answer_is_counted_once_by_outcome_across_reloads(installation):
    config = installation.config()
    config["receiver"]["max_body"] = "64KiB"
    config["source invoicing"]["webhook_id"] = Delivery().webhook_id
    installation.create_topics(config)
    daemon = installation.start(config)
    first = provoke(daemon, SECRET)
    other = b"another secret, as long as that one"
    config["source invoicing"]["secret_file"] = config.secret_file("other", other)
    config.write(f"{daemon.name}.conf")
    daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_for_log("configuration reloaded")
    assert counted(daemon) == first
    again = provoke(daemon, other)
    assert counted(daemon) == {key: n + again[key] for key, n in first.items()}
    assert daemon.metric("gatepost_ack_seconds_count") == 2 and daemon.metric("gatepost_verify_seconds_count") == 2 * 3


def counted(daemon):
    """{(source, outcome): count}, without zeros."""
    samples = [(dict(labels), n) for labels, n in daemon.metrics("gatepost_requests_total").items()]
    return {(labels["source"], labels["outcome"]): n for labels, n in samples if n}


def test_answers_while_kafka_is_away_are_counted_as_unavailable(offline):
    daemon = offline.daemon().start()
    for _ in range(3):
        assert daemon.post().status == 503
    assert counted(daemon) == {("invoicing", "unavailable"): 3}
    assert daemon.metric("gatepost_ack_seconds_count") == 0


def test_requests_to_kafka_are_counted_once(daemon):
    """A client reports a running total; without deliveries, a producer sends nothing."""
    before, seen = daemon.metric("gatepost_kafka_requests_total", client="receiver"), set()
    waiting.until(lambda: seen.add(daemon.metric("gatepost_kafka_requests_total", client="router")) or len(seen) >= 4, 60,
                  "four reports of the router's client")
    assert before > 0 and daemon.metric("gatepost_kafka_requests_total", client="receiver") - before <= before / 2


def test_connections_are_counted_by_reason_for_closing(installation):
    config = installation.config()
    config["receiver"]["idle_timeout"] = "2s"
    installation.create_topics(config)
    daemon = installation.start(config)
    daemon.accept()
    with http_client.connect(daemon.address) as connection:
        waiting.until(lambda: daemon.metric("gatepost_connections_closed_total", reason="idle") == 1, 30, "an idle close")
        assert connection.recv(1) == b""
    assert http_client.raw(daemon.address, b"GET / HTTP/1.1\r\n\r\n").status == 400
    waiting.until(lambda: daemon.metric("gatepost_connections_closed_total", reason="refused") == 1, 30, "a refusal")
    assert daemon.metric("gatepost_connections_accepted_total") == 3
    waiting.until(lambda: daemon.metric("gatepost_connections_open") == 0, 30, "no connection")
