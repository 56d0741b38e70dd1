"""gatepost doctor, where several webhooks of the service lead to one source."""

import re
import shlex

import pytest

from checkup import by_sockets, examine
from installation import BUILD
from sandbox import Sandbox
from signing import SECRET

URL = "https://gateway.example/webhooks/invoicing"


@pytest.fixture
def subscribed(offline, service):
    """A configuration with a service; the webhooks are checked without Kafka, too."""
    return with_service(offline, service.url, "the-api-key-of-the-tests")


def with_service(offline, url, key):
    config = by_sockets(offline)
    config["service"].update(base_url=url, api_key_file=config.secret_file("api-key", key.encode()))
    config["events"].update({event: f"{offline.prefix}.any" for event in ("invoice.*", "invoices.accepted", "held_unmapped_decision.*")})
    return config


def webhook_lines(offline, config):
    """Its commands name the configuration file, which is left out here."""
    lines = [line for line in examine(offline, config, "--no-send").lines if " webhook [source invoicing]" in line]
    assert not any(" gatepost subscriptions " in line for line in lines), lines
    return [re.sub(r"gatepost -c \S+ subscriptions", "gatepost subscriptions", line) for line in lines]


def doubled(offline, config):
    return [line for line in webhook_lines(offline, config) if "both deliver" in line]


@pytest.mark.parametrize("first, second, common, spare", [
    ("*", "*", "*", "w1"), ("*", "invoice.accepted", "invoice.accepted", "w2"), ("held_unmapped_decision.*", "*", "held_unmapped_decision.*", "w1"),
    ("invoice.*", "invoice.accepted", "invoice.accepted", "w2"), ("invoice.accepted", "invoice.accepted", "invoice.accepted", "w1"),
    ("invoice.accepted", "invoice.rejected", None, None), ("invoice.*", "invoices.accepted", None, None),
    ("reporting_batch.deadline", "reporting_batch.deadline.missed", None, None), ("invoice.*", "invoice.*", "invoice.*", "w1"),
    ("held_unmapped_decision.*", "held_unmapped_decision", None, None), ("held_unmapped_decision", "held_unmapped_decision.*", None, None)])
def test_events_that_two_webhooks_deliver_to_the_same_url(offline, service, subscribed, first, second, common, spare):
    """With two delivery-ids, by which neither the router nor a consumer recognises them."""
    service.add({"url": URL, "events": [first]})
    service.add({"url": URL.replace(".example", ".example:443"), "events": [second]})
    subscribed["source invoicing"]["webhook_id"] = ["w1", "w2"]
    kept = "w2" if spare == "w1" else "w1"
    found = doubled(offline, subscribed)
    assert [line.split(": gatepost")[0].split("; if not")[0] for line in found] == ([] if common is None else [
        f"! webhook [source invoicing]: webhooks w1 and w2 both deliver {common} to {URL.replace('.example', '.example:443')}: each such event is "
        f"published twice; {kept} has all events of {spare}: if it has the secret of the source, and all receivers with this source list its id, "
        f"gatepost subscriptions remove {spare}"])
    assert common is None or "then add webhook_id = ID, with the id that it prints, to [source invoicing] of " in found[0]
    subscribed["source invoicing"]["webhook_id"] = "w2"
    assert not doubled(offline, subscribed)


PAIRS = [(["*"], ["invoice.accepted"]), (["invoice.accepted", "invoice.rejected"], ["invoice.accepted", "invoice.pending"]),
         (["invoice.accepted"], ["invoice.accepted"]), (["reporting_batch.*", "invoice.accepted"], ["invoice.accepted", "invoice.received"]),
         (["invoice.accepted"], ["invoice.accepted", "invoice.received"], ["invoice.received", "invoice.pending"])]


@pytest.mark.parametrize("has_secret", [True, False])
@pytest.mark.parametrize("lists", PAIRS, ids=[str(number) for number in range(len(PAIRS))])
def test_advice_about_two_webhooks_loses_no_event(offline, tmp_path, lists, has_secret):
    """All of it is followed, command by command, and nothing is published twice then."""
    with Sandbox(BUILD, tmp_path) as sandbox:
        config = with_service(offline, sandbox.url, sandbox.key)
        for events in lists:
            sandbox.subscribe(URL, events, SECRET.decode() if has_secret else "another secret than that of the source")
        while warnings := doubled(offline, config):
            removal = re.search(r"if it has the secret of the source(?:, and all receivers with this source list its id)?, gatepost (subscriptions remove \S+); if not, gatepost", warnings[0])
            merging = re.search(r"gatepost (subscriptions ensure .*)$", warnings[0])
            done = offline.gatepost(*shlex.split((removal if removal and has_secret else merging)[1]), config=config)
            assert done.returncode == 0, done.stderr
        left = [event for each in sandbox.webhooks() for event in each["events"]]
        wanted = {event for events in lists for event in events}
        assert sorted(left) == (["*"] if "*" in wanted else sorted(wanted))
        if not has_secret:  # it was sent the one of the source
            assert len(sandbox.webhooks()) == 1 and "no [source]" not in done.stderr


def test_text_of_the_service_that_a_shell_would_run_is_in_no_command(offline, service, subscribed):
    for events in (["a';reboot;'", "invoice.accepted"], ["invoice.accepted", "invoice.pending"]):
        service.add({"url": URL + "?token=$(reboot)", "events": events})
    (warning,) = doubled(offline, subscribed)
    assert "gatepost subscriptions ensure --rotate --url URL --events 'LIST' --secret-file /" in warning, warning


@pytest.mark.parametrize("other", ["https://staging.example/webhooks/invoicing", "http://gateway.example/webhooks/invoicing", URL + "?from=2"])
def test_webhooks_of_two_urls_that_may_both_lead_here_are_a_note(offline, service, subscribed, other):
    for url in (URL, other, other.replace("example", "example:8443")):
        service.add({"url": url, "events": ["invoice.accepted"]})
    notes = [line for line in doubled(offline, subscribed) if line.startswith("• ")]
    assert len(notes) == 2 and "webhooks w1 and w2 both deliver invoice.accepted: to https://gateway.example/webhooks/invoicing and to " in notes[0], notes
    assert "if both lead here, each such event is published twice" in notes[0]


def test_webhooks_whose_events_the_service_does_not_show_are_a_note(offline, service, subscribed):
    for _ in range(2):
        service.add({"url": URL, "events": ["*"]})
    for each in service.webhooks:
        del each["events"]
    (note,) = doubled(offline, subscribed)
    assert note == (f"• webhook [source invoicing]: webhooks w1 and w2 both deliver to {URL}, and the service does not show the events of both: what "
                    "both have is published twice")


def test_webhook_without_events_is_a_warning(offline, service, subscribed):
    service.add({"url": URL, "events": []})
    (line,) = webhook_lines(offline, subscribed)
    assert line.startswith(f"! webhook [source invoicing]: {URL} has no events, so it delivers nothing; if it is needed, replace all webhooks at the URL: "), line


# Webhooks that no path of the configuration matches

ELSEWHERE = "https://gateway.example/hooks/invoices"


def test_webhook_is_advised_at_once_only_if_there_is_none(offline, service, subscribed):
    """A proxy may change the path of another one, and lead it here: then one more would publish each event twice."""
    (line,) = webhook_lines(offline, subscribed)
    assert line.startswith("! webhook [source invoicing]: this account of the service has no webhook, so it delivers nothing here: gatepost subscriptions ensure "), line
    for number in range(5):
        service.add({"url": f"{ELSEWHERE}/{number}?token=hunter2", "events": ["orders.*"]})
    (line,) = webhook_lines(offline, subscribed)
    assert line.startswith("! webhook [source invoicing]: no webhook of this account has a URL that ends with /webhooks/invoicing, and these lead to no source by "
                           f"their path: w1 at {ELSEWHERE}/0?..., w2 at {ELSEWHERE}/1?..., w3 at {ELSEWHERE}/2?... and 2 more; compare them with the proxy's "
                           "configuration: if it changes the path of one, and leads it here, register no other, or each event is published twice; only if none "
                           "leads here: gatepost subscriptions ensure "), line


def test_webhook_of_another_source_does_not_lead_here(offline, service, subscribed):
    subscribed.source("orders", b"the secret of the orders of the tests", key="delivery-id")
    service.add({"url": "https://gateway.example/webhooks/orders", "events": ["*"]})
    (line,) = webhook_lines(offline, subscribed)
    assert line.startswith("! webhook [source invoicing]: no webhook of this account has a URL that ends with /webhooks/invoicing; if no other account of the "
                           "service delivers here: gatepost subscriptions ensure "), line


@pytest.mark.parametrize("events, common", [(["*"], "invoice.accepted"), (["invoice.*", "orders.sent"], "invoice.accepted"), (["orders.sent"], None)])
def test_webhook_that_a_proxy_may_lead_here_as_well_is_a_note(offline, service, subscribed, events, common):
    service.add({"url": f"{ELSEWHERE}?token=hunter2", "events": events})
    service.add({"url": URL, "events": ["invoice.accepted"]})
    line = f"✓ webhook [source invoicing]: {URL} has the events invoice.accepted"
    note = (f"• webhook [source invoicing]: webhooks w2 and w1 both deliver {common}, and the path of {ELSEWHERE}?... leads to no source: if a proxy changes it, "
            "and leads that here, too, each such event is published twice")
    assert webhook_lines(offline, subscribed) == [line] + ([note] if common else [])
    subscribed["source invoicing"]["webhook_id"] = "w2"  # so that w1 is refused here
    assert webhook_lines(offline, subscribed) == [line]


def test_notes_of_such_webhooks_are_few(offline, service, subscribed):
    for number in range(5):
        service.add({"url": f"{ELSEWHERE}/{number}", "events": ["*"]})
    service.add({"url": URL, "events": ["*"]})
    subscribed["events"].update({event: f"{offline.prefix}.any" for event in ("held_unmapped_decision", "reporting_batch.*")})
    assert [line[0] for line in webhook_lines(offline, subscribed)] == list("✓•••")


# Families


DOCUMENTED = ["invoice.accepted", "invoice.rejected", "invoice.received", "invoice.duplicate", "invoice.pending", "invoice.amended", "invoice.cancelled",
              "held_unmapped_decision"]


@pytest.mark.parametrize("event, kinds, family", [
    ("invoice.*", DOCUMENTED[:-2], "invoice.*"), ("invoice.*", ["invoice.*"], None), ("invoice.*", DOCUMENTED, None), ("orders.*", ["orders.sent"], "orders.*"),
    ("reporting_batch.*", ["reporting_batch.overdue"], "reporting_batch.*"), ("reporting_batch.*", ["reporting_batch.*"], None),
    ("*", [*DOCUMENTED, "reporting_batch.overdue"], "reporting_batch.*"), ("*", [*DOCUMENTED, "reporting_batch.*"], None)])
def test_family_of_which_only_some_kinds_have_a_topic_is_a_note(offline, service, subscribed, event, kinds, family):
    subscribed["events"].clear()
    subscribed["events"].update({kind: f"{offline.prefix}.any" for kind in kinds})
    service.add({"url": URL, "events": [event]})
    (line,) = webhook_lines(offline, subscribed)
    assert line.startswith(f"✓ webhook [source invoicing]: {URL} has the events {event}" if family is None else
                           f"• webhook [source invoicing]: {URL} has families of events of which only some kinds have a topic ({family}): deliveries "
                           "of others go to quarantine as unknown-kind; "), line


# The certificate

def about_host(offline, config):
    """The lines about the host of a webhook."""
    return [line for line in webhook_lines(offline, config) if "leads to" in line]


def test_certificate_without_the_name_of_the_webhook(offline, service, subscribed, authority):
    """It was renewed with another name: gatepostd serves it, and the service refuses it."""
    service.add({"url": URL, "events": ["invoice.*"]})
    assert about_host(offline, subscribed) == []
    certificate, key = authority.issue("renewed", names="DNS:other.example,DNS:*.eu.example,IP:192.0.2.1")
    subscribed.tls(certificate, key)
    (warning,) = about_host(offline, subscribed)
    assert warning == (f"! webhook [source invoicing]: {URL} leads to gateway.example, but the certificate in {certificate} is for "
                       "other.example, *.eu.example, 192.0.2.1: unless a proxy before gatepostd ends TLS, the service refuses it; renew it "
                       "for this name, too, then: systemctl reload gatepostd")
    subscribed["receiver"]["trusted_proxy"] = "127.0.0.1"
    assert about_host(offline, subscribed) == [warning.replace("! ", "• ", 1)]
    subscribed["receiver"]["proxy_protocol"] = "required"
    assert about_host(offline, subscribed) == [warning]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_url_of_a_webhook_without_tls_at_a_listener_with_it(offline, service, subscribed, authority, host):
    port = offline.port()
    service.add({"url": f"http://{host}:{port}/webhooks/invoicing", "events": ["invoice.*"]})
    service.add({"url": f"http://{host}:{port + 1}/webhooks/invoicing", "events": ["invoice.*"]})  # of a proxy, say
    subscribed["receiver"]["listen"] = f"127.0.0.1:{port}"
    mistakes = [line for line in webhook_lines(offline, subscribed) if line.startswith("✗")]
    assert mistakes == []
    subscribed.tls(*authority.issue("scheme"))
    (mistake,) = [line for line in webhook_lines(offline, subscribed) if line.startswith("✗")]
    assert mistake.startswith(f"✗ webhook [source invoicing]: http://{host}:{port}/webhooks/invoicing begins with http://, but it leads to a listener "
                              "with TLS: all deliveries fail"), mistake


@pytest.mark.parametrize("url", ["http://gateway.example", "https://GATEWAY.eu.example.:8443", "https://user:word@other.example", "https://192.0.2.1",
                                 "https://[2001:db8::1]"])
def test_certificate_with_the_name_of_the_webhook(offline, service, subscribed, authority, url):
    service.add({"url": f"{url}/webhooks/invoicing", "events": ["invoice.*"]})
    subscribed.tls(*authority.issue("fitting", names="DNS:other.example,DNS:*.eu.example,IP:192.0.2.1,IP:2001:db8::1"))
    lines = webhook_lines(offline, subscribed)
    assert len(lines) == 1 and lines[0].startswith("✓ "), lines
