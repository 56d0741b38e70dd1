"""Deliveries whose timestamp is outside the tolerance: refused with the same answer, genuine ones counted and logged separately."""

import re
import time

import pytest

import http_client
import waiting
from installation import BUILD
from sandbox import Sandbox
from signing import Delivery, event_body, now

FORGED = b"another secret, long enough as well"
HASHED_PER_SECOND = 8 << 20


@pytest.fixture(scope="module")
def daemon(shared):
    config = shared.config("receiver")
    config["source invoicing"]["tolerance"] = "10s"
    shared.create_topics(config)
    return shared.start(config)


def count(daemon, outcome):
    return daemon.metric("gatepost_requests_total", source="invoicing", outcome=outcome)


def counts(daemon):
    return {outcome: count(daemon, outcome) for outcome in ("stale", "stale_genuine", "stale_unchecked")}


def logged_values(daemon, delivery):
    """The values of a log line about the delivery; lines are written once a second."""
    def line():
        daemon.post(delivery)
        return re.search(rf" refused source=invoicing outcome=stale_genuine .* delivery_id={delivery.delivery_id} .*",
                         daemon.log)
    return dict(re.findall(r" (\w+)=(\S+)", waiting.until(line, 20, "a line about the delivery")[0]))


@pytest.mark.parametrize("seconds", [-3600, 3600])
def test_stale_genuine_and_forged_deliveries_get_the_same_answer(shared, daemon, seconds):
    before, ages = counts(daemon), daemon.metric("gatepost_stale_genuine_age_seconds_count")
    genuine = Delivery(timestamp=now() + seconds)
    replies = [daemon.post(genuine), daemon.post(genuine.but(secret=FORGED))]
    assert counts(daemon) == before | {"stale": before["stale"] + 1, "stale_genuine": before["stale_genuine"] + 1}
    assert daemon.metric("gatepost_stale_genuine_age_seconds_count") == ages + 1
    for reply in replies:
        assert (reply.status, reply.code) == (401, "STALE_TIMESTAMP")
    first, second = ((reply.status, reply.reason, reply.closed, reply.body.replace(reply.request_id.encode(), b""),
                      [name for name, _ in reply.headers.items()]) for reply in replies)
    assert first == second
    values = logged_values(daemon, genuine)
    assert abs(int(values["age_s"]) + seconds) < 60 and values["status"] == "401"
    assert daemon.ready()
    daemon.accept()
    assert genuine.delivery_id not in {record.key.decode() for record in shared.kafka.read(shared.kafka.deliveries)}


def test_stale_deliveries_count_as_refusals_of_their_address(shared):
    config = shared.config("receiver")
    config["receiver"]["max_refusals_per_address"] = "3"
    shared.create_topics(config)
    for secret in {}, {"secret": FORGED}:
        daemon = shared.start(config)
        client = http_client.Client(daemon.address)
        delivery = Delivery(timestamp=now() - 3600, **secret)

        def statuses():
            return [client.request("POST", "/webhooks/invoicing", delivery.headers(), delivery.body).status for _ in range(4)]
        waiting.until(lambda: statuses() == [401, 401, 401, 429], 30, "the fourth request within a second to be throttled")
        client.close()
        daemon.stop()


def test_hashing_of_stale_deliveries_is_rate_limited(daemon):
    """An attacker sends large stale bodies; afterwards genuine stale deliveries are reported again."""
    forged = Delivery(event_body(filler="x" * ((1 << 20) - 100)), timestamp=now() - 3600, secret=FORGED)
    before, begun = counts(daemon), time.monotonic()
    client = http_client.Client(daemon.address)
    for _ in range(60):
        assert client.request("POST", "/webhooks/invoicing", forged.headers(), forged.body).code == "STALE_TIMESTAMP"
    client.close()
    seconds = time.monotonic() - begun
    after = counts(daemon)
    checked, unchecked = (after[outcome] - before[outcome] for outcome in ("stale", "stale_unchecked"))
    assert checked + unchecked == 60 and checked >= 8
    assert checked * len(forged.body) <= (seconds + 1) * HASHED_PER_SECOND + 2 * len(forged.body)
    assert unchecked > 0 or seconds > 5, seconds

    def is_checked():
        daemon.post(Delivery(timestamp=now() - 3600))
        return count(daemon, "stale_genuine") > after["stale_genuine"]
    waiting.until(is_checked, 20, "a stale but genuine delivery to be checked again")


@pytest.mark.parametrize("options", [["--sign-once"], []], ids=["signed once", "each attempt signed"])
def test_retries_after_a_long_outage_are_stale_only_if_signed_once(installation, tmp_path, options):
    """If the service signs a delivery once, its retries are too late and logged as such; otherwise they are accepted."""
    config = installation.config()
    config["source invoicing"]["tolerance"] = "2s"
    installation.create_topics(config)
    secret = config["source invoicing"]["secret_file"].read_text().strip()
    daemon = installation.start(config)
    config["receiver"]["listen"] = daemon.address
    with Sandbox(BUILD, tmp_path, "--retry-base", "1s", *options) as sandbox:
        sandbox.subscribe(daemon.url, secret=secret)
        daemon.stop()
        (delivery_id,) = sandbox.fire("invoice.accepted").values()
        waiting.until(lambda: sandbox.log.count("no answer") >= 3, 60, "three failed attempts over three seconds")
        daemon.start()
        status = waiting.until(lambda: re.search('"HTTP status (200|401)"', sandbox.log), 120, "an answer")[1]
    assert status == ("401" if options else "200")
    assert count(daemon, "stale_genuine") == (1 if options else 0)
    assert count(daemon, "stale") == 0
    assert count(daemon, "accepted") == (0 if options else 1)
    if options:
        assert f" delivery_id={delivery_id} " in daemon.log
    daemon.wait_until_ready()
