"""The status page at the root of the admin endpoint, and /status, which it shows."""

import contextlib
import datetime
import html.parser
import re
import time

import pytest

import http_client
import waiting
from chromium import Chromium
from reloading import reload
from signing import Delivery, event_body

VOID = {"meta", "link", "wbr", "br", "img", "input", "hr"}
SIZES = {"wide": (1400, 900), "narrow": (390, 844)}
IDLE_HEIGHT = {"wide": 1000, "narrow": 2100}
# The lowest contrast ratio (WCAG 2.2) of all visible texts, with its text.
LEAST_CONTRAST = """(() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const linear = (c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const ground = (e) => { for (; e; e = e.parentElement) {
    const [r, g, b, a = 1] = parse(getComputedStyle(e).backgroundColor); if (a > 0) return [r, g, b]; } return [255, 255, 255]; };
  let least = [99, ""];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement, text = walk.currentNode.data.trim();
    if (!text || !element.checkVisibility() || element.closest("script, style")) continue;
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(ground(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < least[0]) least = [contrast, text];
  }
  return least;
})()"""
# The cells whose text overflows and the width of the page, with counts that take years to reach.
LARGE_COUNTS = """(() => {
  document.querySelector("#pause").click();
  for (const data of document.querySelectorAll("td data")) data.textContent = "31,536,000,000";
  const beyond = [...document.querySelectorAll("td, th")].filter((cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    const text = range.getBoundingClientRect(), box = cell.getBoundingClientRect();
    return text.width > 0 && (text.right > box.right + 1 || text.left < box.left - 1);
  });
  return [beyond.map((cell) => cell.parentElement.textContent), document.documentElement.scrollWidth];
})()"""
# The texts of visible elements that reach below the window before anybody scrolls.
BELOW = """((selector) => [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility())
  .filter((e) => e.getBoundingClientRect().bottom > innerHeight).map((e) => e.textContent))"""
VISIBLE = """((selector) => [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility()).length)"""
MARKUP = "<img src=x onerror=alert(1)>&lt;b&gt;"
DRAWN = "[...document.querySelectorAll('figure path')].filter((path) => /L/.test(path.getAttribute('d'))).length"


class Page(html.parser.HTMLParser):
    """Reads HTML that closes what it opens; collects the numbers, the headings and what points elsewhere."""

    def __init__(self, text):
        super().__init__()
        self.open, self.counts, self.links, self.ids, self.texts = [], {}, [], [], {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag not in VOID:
            self.open.append(tag)
        if "data-key" in attributes:
            assert attributes["data-key"] not in self.counts
            self.counts[attributes["data-key"]] = float(attributes["value"]) if attributes["value"] else None  # not known
        self.links += [value for name, value in attributes.items() if name in ("src", "href", "action", "srcset")]
        self.ids += [attributes["id"]] if "id" in attributes else []
        assert "style" not in attributes and not [name for name in attributes if name.startswith("on")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, (tag, self.getpos())

    def handle_data(self, data):
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data.strip())


def status_of(daemon):
    reply = daemon.admin("/status")
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    return reply.json


@contextlib.contextmanager
def opened(browser, daemon, *size, **how):
    """A tab with the status page, once it shows numbers."""
    with browser.open(admin_url(daemon), *size, **how) as tab:
        tab.wait_for("document.querySelector('#now').textContent")
        yield tab


def page_in(tab):
    return Page("<!doctype html>\n" + tab.value("document.documentElement.outerHTML"))


def traffic(daemon):
    """Deliveries of each sort: accepted, repeated, quarantined, forged, to an unknown source."""
    repeated = daemon.accept()
    daemon.accept(repeated.signed_again())
    daemon.accept(Delivery(event_body("no.such.kind")))
    assert daemon.post(Delivery(secret=b"not the secret of the tests")).status == 401
    assert daemon.post(source="nobody").status == 404


def seconds_of(text):
    return datetime.datetime.strptime(text, "%Y-%m-%d %H:%M:%S UTC").timestamp()


def decided(daemon):
    return sum(daemon.metric(f"gatepost_{each}_total") for each in ("events", "duplicates", "quarantined"))


def clock_of(daemon):
    return datetime.datetime.fromisoformat(status_of(daemon)["time"]).timestamp()


def admin_url(daemon):
    return f"http://{daemon._addresses('admin')[0]}/"


@pytest.fixture(scope="module")
def daemon(shared):
    config = shared.config().source("orders")
    shared.create_topics(config)
    return shared.start(config)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Chromium(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


# As a client sees it

def test_headers_restrict_the_page(daemon):
    reply = daemon.admin("/")
    assert reply.headers["content-type"] == "text/html; charset=utf-8" and reply.headers["cache-control"] == "no-store"
    assert reply.headers["x-content-type-options"] == "nosniff" and reply.headers["referrer-policy"] == "no-referrer"
    policy = dict(part.strip().split(" ", 1) for part in reply.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == policy["frame-ancestors"] == "'none'"
    assert policy["connect-src"] == "'self'" and "unsafe" not in str(policy) and "*" not in str(policy)
    assert policy["script-src"] == policy["style-src"] == "'self'"


def test_page_is_served_for_get_and_head_only(daemon):
    address = daemon._addresses("admin")[0]
    head = http_client.request(address, "HEAD", "/")
    assert (head.status, head.body) == (200, b"") and int(head.headers["content-length"]) > 5000
    assert http_client.request(address, "GET", "/?anything").status == 200
    assert http_client.request(address, "POST", "/").status == 405
    assert http_client.request(address, "GET", "/index.html").status == 404


def test_page_is_well_formed_and_has_no_external_resources(daemon, browser):
    served = Page(daemon.admin("/").body.decode())
    with opened(browser, daemon) as tab:
        shown = page_in(tab)
    for page in (served, shown):
        assert len(page.ids) == len(set(page.ids))
        assert {link.partition(",")[0] for link in page.links} == {"data:image/svg+xml", "page.css", "page.js", "status", "metrics", "readyz"}
        assert page.texts["h1"][0] == "Gatepost" and page.texts["h2"][1:] == ["Refused", "Quarantined", "Receiver", "Spool", "Sources",
                                                                                   "Router", "Kafka", "Configuration"]


def test_numbers_agree_with_the_metrics(daemon, browser):
    before = decided(daemon)
    traffic(daemon)
    waiting.until(lambda: decided(daemon) == before + 3, 30, "the deliveries to be routed")
    waiting.until(lambda: status_of(daemon)["lagRecords"] == daemon.metric("gatepost_router_lag_records") == 0, 30, "no lag")
    new = daemon.metric("gatepost_events_total") + daemon.metric("gatepost_quarantined_total")
    waiting.until(lambda: status_of(daemon)["rememberedIds"] == daemon.metric("gatepost_remembered_ids") == new, 30, "ids")
    with opened(browser, daemon) as tab:
        counts = page_in(tab).counts
    status = status_of(daemon)

    def metric(name, **labels):
        return daemon.metric(f"gatepost_{name}", **labels)
    for labels, value in daemon.metrics("gatepost_requests_total").items():
        source, outcome = dict(labels)["source"], dict(labels)["outcome"]
        assert status["requests"][source][outcome] == value
        assert counts.get(f"outcome/{outcome}", 0) == metric("requests_total", outcome=outcome)
    for kind in {dict(labels)["kind"] for labels in daemon.metrics("gatepost_events_total")}:
        assert counts.get(f"event/{kind}", 0) == status["events"][kind] == metric("events_total", kind=kind)
    for reason in {dict(labels)["reason"] for labels in daemon.metrics("gatepost_quarantined_total")}:
        assert counts.get(f"reason/{reason}", 0) == status["quarantined"][reason] == metric("quarantined_total", reason=reason)
    assert counts["outcome/accepted"] > 0 and counts["outcome/forged"] > 0 and counts["outcome/not_found"] > 0
    assert counts["event/invoice.accepted"] > 0 and counts["reason/unknown-kind"] > 0
    assert all(count > 0 for count in counts.values()), "rows of zeros are hidden"
    assert counts["duplicates"] == metric("duplicates_total") > 0
    assert counts["committed"] == metric("transactions_total", result="committed") > 0
    assert counts["remembered"] == metric("remembered_ids") > 0


@pytest.mark.parametrize("role, other", [("receiver", "router"), ("router", "receiver")])
def test_single_role_shows_only_its_own_section(installation, browser, role, other):
    installation.create_topics()
    daemon = installation.start(installation.config(role))
    status = status_of(daemon)
    assert ("requests" in status) == (role == "receiver") and ("lagRecords" in status) == (role == "router")
    with opened(browser, daemon) as tab:
        assert tab.value(f"document.querySelector('#{role}').checkVisibility()") is True
        assert tab.value(f"document.querySelector('#{other}').checkVisibility()") is False
        assert tab.complaints() == []


def test_page_shows_why_the_daemon_is_not_ready(offline, browser):
    daemon = offline.daemon().start()
    waiting.until(lambda: status_of(daemon)["kafkaProblem"], 60, "the cause")
    with opened(browser, daemon) as tab:
        assert tab.value("document.title").startswith("Not ready · ")
        assert tab.value("document.querySelector('#kafka-state').parentElement.textContent") == "Kafka away"
        causes = tab.value("[...document.querySelectorAll('#causes li')].map((each) => each.textContent)")
        assert tab.value(f"{BELOW}('#state, #causes li, figure')") == []
        assert tab.value("document.querySelector('#work data[data-key=lag]').textContent") == "\N{EN DASH}", "the lag is not known yet"
    status = status_of(daemon)
    assert re.fullmatch(r"Kafka unreachable since \d{4}-.* UTC: .*Connection refused", causes[0], re.I) and status["ready"] is False
    assert len(causes) == 2 and "receiver" in causes[1] and "router" in causes[1] and "ready" not in causes[1]


def test_names_are_escaped(offline, browser):
    config = offline.config()
    config["events"]["<b>&amp\"'"] = f"{offline.prefix}.odd"
    daemon = offline.daemon(config).start()
    with opened(browser, daemon) as tab:
        kind = "<b>&amp\"'"
        assert kind in status_of(daemon)["events"]
        assert tab.value("document.querySelectorAll('td b, th b').length") == 0
        assert tab.complaints() == []


def test_markup_from_the_network_is_shown_as_text(installation, browser):
    installation.create_topics()
    daemon = installation.start()
    daemon.accept(Delivery(event_body(MARKUP)))
    assert http_client.request(daemon.address, "POST", "/'&lt;img%20src=x&gt;&amp;", Delivery().headers(), b"{}").status == 404
    headers = {"x-'wrong&lt;'-signature" if name == "x-invoicing-signature" else name: value for name, value in Delivery().headers().items()}
    headers |= {"x-invoicing-timestamp": MARKUP}
    assert http_client.request(daemon.address, "POST", "/webhooks/invoicing", headers, b"{}").status == 400
    waiting.until(lambda: status_of(daemon)["recentlyQuarantined"], 30, "the quarantined delivery")
    with opened(browser, daemon) as tab:
        tab.wait_for(f"{VISIBLE}('#refusals tr') >= 2 && {VISIBLE}('#recent tr') >= 1")
        assert MARKUP in tab.value("document.querySelector('#recent').textContent")
        assert "&lt;img%20src=x&gt;" in tab.value("document.querySelector('#refusals').textContent")
        assert tab.value("document.querySelectorAll('img, td b').length") == 0
        assert tab.complaints() == []


def test_configuration_is_shown_and_follows_a_reload(installation, browser):
    config = installation.config()
    installation.create_topics(config)
    daemon = installation.start(config)
    shown = status_of(daemon)["configuration"]
    assert shown["file"] == str(config.directory / f"{daemon.name}.conf") and abs(shown["loadedSeconds"] - time.time()) < 600
    assert shown["refusedReload"] is None and shown["awaitingRestart"] == []
    config.source("orders")
    reload(daemon)
    with opened(browser, daemon) as tab:
        assert tab.value("document.querySelector('#sources').textContent") == "invoicingnone yetordersnone yet"
        assert shown["file"] in tab.text


# What an operator sees at first

@pytest.mark.parametrize("size", SIZES)
def test_idle_page_is_short_and_has_no_rows_of_zeros(installation, browser, size):
    installation.create_topics()
    daemon = installation.start()
    with opened(browser, daemon, *SIZES[size]) as tab:
        assert tab.value(f"{VISIBLE}('td data')") == 0
        assert "Nothing has been refused" in tab.text and "Nothing has been quarantined" in tab.text
        assert tab.value("document.documentElement.scrollHeight") <= IDLE_HEIGHT[size]
        assert tab.value("document.documentElement.scrollWidth") <= SIZES[size][0]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_state_rates_and_last_refusals_need_no_scrolling(daemon, browser, size, dark):
    traffic(daemon)
    with opened(browser, daemon, *SIZES[size], dark=dark) as tab:
        tab.wait_for(f"{VISIBLE}('#refusals tr') > 0 && {VISIBLE}('#recent tr') > 0")
        first = "#state, #causes li, figure" + (", #refusals tr:first-child, #reasons tr:first-child" if size == "wide" else "")
        assert tab.value(f"{VISIBLE}('{first}')") >= (7 if size == "wide" else 5)
        assert tab.value(f"{BELOW}('{first}')") == []
        assert tab.value("[...document.querySelectorAll('td data')].every((each) => Number(each.value) > 0)")
        assert tab.value("document.documentElement.scrollWidth") <= SIZES[size][0]
        refusal = tab.value("document.querySelector('#refusals tr').textContent")
        assert re.search(r"\d+ s ago.*not_found.*404.*/webhooks/nobody.*from 127.0.0.1, request [0-9a-f]{16}", refusal), refusal
        cards = tab.value("[...document.querySelectorAll('.card')].filter((e) => e.checkVisibility()).map((e) => e.offsetLeft)")
        assert len(set(cards)) == (4 if size == "wide" else 1), "three columns below two; one on a telephone"


# As a browser sees it

@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_page_plots_traffic_and_fits_the_window(daemon, browser, size, dark, tmp_path):
    with opened(browser, daemon, *SIZES[size], dark=dark) as tab:
        accepted = "Number(document.querySelector('[data-key=\"outcome/accepted\"]')?.value ?? 0)"
        before = tab.value(accepted)
        drawn = tab.value("document.querySelectorAll('figure path').length")
        assert drawn == 7  # lines of three plots
        traffic(daemon)
        tab.wait_for(f"{accepted} >= {before + 3}")
        tab.wait_for("[...document.querySelectorAll('figure b')].some((o) => Number(o.textContent) > 0)")
        tab.wait_for(f"{DRAWN} >= 7")
        tab.screenshot(tmp_path / "page.png")
        assert tab.value("document.documentElement.scrollWidth") <= SIZES[size][0]
        contrast, text = tab.value(LEAST_CONTRAST)
        assert contrast >= 4.5, text
        ground = tab.computed("body", "background-color")[0]
        assert (sum(map(int, re.findall(r"\d+", ground))) < 3 * 128) == dark
        assert tab.complaints() == []
        assert set(tab.requested()) == {admin_url(daemon) + name for name in ("", "page.css", "page.js", "status")}


def test_every_plot_and_table_has_an_accessible_name(daemon, browser):
    traffic(daemon)
    with opened(browser, daemon) as tab:
        tab.wait_for("document.querySelectorAll('svg').length === 3")
        labels = tab.value("[...document.querySelectorAll('svg')].map((svg) => svg.getAttribute('role') + ' ' + svg.ariaLabel)")
        assert all(re.match(r"img \S.*last 5 minutes: highest \S+", label) for label in labels), labels
        assert len(set(labels)) == len(labels)
        assert tab.value("[...document.querySelectorAll('table')].every((table) => table.caption && table.tHead)")
        assert tab.value("[...document.querySelectorAll('section')].every((s) => document.getElementById(s.getAttribute('aria-labelledby')))")


@pytest.mark.parametrize("size", SIZES)
def test_large_counts_fit_their_columns(daemon, browser, size):
    traffic(daemon)
    with opened(browser, daemon, *SIZES[size]) as tab:
        tab.wait_for(f"{DRAWN} > 0 && {VISIBLE}('#reasons data') > 0")
        beyond, width = tab.value(LARGE_COUNTS)
        assert beyond == [] and width <= SIZES[size][0]


def test_only_the_state_is_a_live_region(daemon, browser):
    """A screen reader would read nothing else if a live region changed every two seconds."""
    with opened(browser, daemon) as tab:
        tab.wait_for(f"{DRAWN} > 0")
        tab.call("Accessibility.enable")
        nodes = tab.call("Accessibility.getFullAXTree")["nodes"]
        live = [node["backendDOMNodeId"] for node in nodes for each in node.get("properties", [])
                if each["name"] == "live" and each["value"]["value"] != "off"]
        described = [tab.call("DOM.describeNode", backendNodeId=node)["node"]["attributes"] for node in live]
        assert [dict(zip(each[::2], each[1::2]))["id"] for each in described] == ["state"]


def test_page_without_scripts_links_to_the_numbers(daemon, browser):
    with browser.open(admin_url(daemon), *SIZES["narrow"], scripts=False) as tab:
        text = tab.text
        assert "This page needs JavaScript" in text and "renewed" not in text and "Pause" not in text
        assert "the last 5 minutes" not in text
        assert "/status" in text and "/metrics" in text and "gatepost status" in text
        assert tab.value("document.documentElement.scrollWidth") <= SIZES["narrow"][0]
        assert tab.value(LEAST_CONTRAST)[0] >= 4.5
        assert tab.complaints() == []


def test_pause_stops_the_refresh_until_pressed_again(daemon, browser):
    moment = "document.querySelector('#now').textContent"
    with opened(browser, daemon) as tab:
        tab.value("document.querySelector('#pause').focus()")
        for kind in ("keyDown", "keyUp"):
            tab.call("Input.dispatchKeyEvent", type=kind, key=" ", code="Space", text=" ", windowsVirtualKeyCode=32)
        assert tab.value("document.querySelector('#pause').ariaPressed") == "true"
        held, asked = tab.value(moment), len(tab.requested())
        until = seconds_of(held) + 7  # three refresh intervals
        waiting.until(lambda: clock_of(daemon) >= until, 60, "time to pass")
        assert tab.value(moment) == held and len(tab.requested()) <= asked + 1
        tab.value("document.querySelector('#pause').click()")
        tab.wait_for(f"{moment} !== '{held}'")


def test_page_reports_a_stopped_daemon_and_recovers(installation, browser):
    installation.create_topics()
    config = installation.config()
    daemon = installation.start(config)
    config["admin"]["listen"] = daemon._addresses("admin")[0]  # to keep its address
    with opened(browser, daemon) as tab:
        traffic(daemon)
        tab.wait_for("Number(document.querySelector('[data-key=\"outcome/accepted\"]')?.value) === 3")
        daemon.stop()
        tab.wait_for("document.querySelector('#state').className === 'silent'")
        assert re.search(r"No answer since \d{4}-.* UTC", tab.text) and "the numbers below are from then" in tab.text
        assert tab.value("document.title").startswith("no answer · ") and "Ready" not in tab.text.split("\n")[:4]
        assert tab.value(LEAST_CONTRAST)[0] >= 4.5
        daemon.restart()
        tab.wait_for("document.querySelector('#state').className === 'ready'")
        tab.wait_for(f"{VISIBLE}('#outcomes data') === 0")
        assert "No answer" not in tab.text and "-" not in tab.value("document.querySelector('figure b').textContent")
