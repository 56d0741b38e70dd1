"""Alert rules, dashboard and runbook: they agree, and use only metrics that a daemon exports."""

import json
import pathlib
import re
import subprocess

import pytest

import waiting
from authority import Authority

ROOT = pathlib.Path(__file__).parents[2]
RULES = ROOT / "etc" / "alerts.yml"
DASHBOARD = json.loads((ROOT / "etc" / "dashboard.json").read_text())
METRIC = re.compile(r"\b((?:gatepost|process)_\w+)(?![\w\"])")
SELECTOR = re.compile(r"\b((?:gatepost|process)_\w+)\{([^}]*)\}")
OF_PROMETHEUS = {"job", "instance", "le"}


def promtool(*arguments):
    done = subprocess.run(["promtool", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def alerts():
    return re.findall(r"- alert: (\w+)", RULES.read_text())


def expressions():
    """Each expression of the rules and of the dashboard."""
    exprs = re.findall(r"^ {8}expr: (?:>-\n)?(.*?)\n {8}\w", RULES.read_text(), re.M | re.S)
    assert len(exprs) == len(alerts())
    for panel in DASHBOARD["panels"]:
        exprs += [target["expr"] for target in panel.get("targets", [])]
    return exprs + [variable["query"]["query"] for variable in DASHBOARD["templating"]["list"]
                    if variable["type"] == "query"]


@pytest.fixture(scope="module")
def exported(shared, tmp_path_factory):
    """{name of a metric: names of its labels} of a daemon that exports every metric."""
    config = shared.config().tls(*Authority(tmp_path_factory.mktemp("authority")).issue("gateway"))
    config["receiver"]["spool"] = config.directory / "spool"
    shared.create_topics(config)
    daemon = shared.start(config)
    waiting.until(lambda: daemon.metrics("gatepost_kafka_broker_rtt_seconds"), 60, "the broker in the metrics")
    series = {}
    for name, labels in re.findall(r"^(\w+)(?:\{(.*)\})? \S+$", daemon.admin("/metrics").body.decode(), re.M):
        series.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return series


def test_rules_are_valid():
    status, output = promtool("check", "rules", str(RULES))
    assert status == 0 and "SUCCESS" in output, output


def test_alerts_fire_as_specified():
    status, output = promtool("test", "rules", str(ROOT / "tests" / "ops" / "alerts_test.yml"))
    assert status == 0, output


def test_every_alert_is_tested_both_firing_and_silent():
    cases = re.findall(r"alertname: (\w+)\n\s+exp_alerts:( \[\])?", (ROOT / "tests" / "ops" / "alerts_test.yml").read_text())
    fired = {name for name, nothing in cases if not nothing}
    assert fired == set(alerts())
    quiet = {name for name, nothing in cases if nothing}
    # Alerts without a case in which they must not fire.
    assert set(alerts()) - quiet <= {"GatepostReceiverNotReady", "GatepostKafkaAway", "GatepostCertificateExpiring"}


def test_every_alert_has_a_summary_a_description_and_a_runbook(tmp_path):
    """The runbook is gatepostd(8); mandoc makes an anchor of each entry, so that a published page can be linked."""
    html = subprocess.run(["mandoc", "-T", "html", ROOT / "man" / "gatepostd.8"], stdout=subprocess.PIPE, text=True, check=True).stdout
    blocks = re.split(r"- alert: ", RULES.read_text())[1:]
    for name, block in zip(alerts(), blocks, strict=True):
        texts = dict(re.findall(r"^ {10}(summary|description|runbook_url): (.*)$", block, re.M))
        assert texts["runbook_url"] == f"man:gatepostd(8)#{name}" and f'id="{name}"' in html, name
        assert len(texts["description"]) > len(texts["summary"]) / 2 and texts["summary"] != texts["description"], name
        # Rules about states have no value worth showing.
        comparison = re.search(r"== [01]$|increase\(gatepost_log_t", re.search(r"expr: (.*)", block)[1])
        assert comparison or "absent" in block or "{{ $value" in texts["description"], name


def test_every_panel_has_a_description():
    for panel in DASHBOARD["panels"]:
        assert panel["type"] == "row" or panel["description"].strip(), panel["title"]


def test_rules_and_dashboard_use_existing_metrics_and_labels(exported):
    asked = set()
    for expr in expressions():
        outside = re.sub(r"\b(by|on|without) \([^)]*\)", "", expr)
        asked |= set(METRIC.findall(outside))
        for name, selector in SELECTOR.findall(expr):
            labels = set(re.findall(r"(\w+)\s*(?:=|!)", selector)) - OF_PROMETHEUS
            assert labels <= exported.get(name, set()), (name, labels)
    assert asked and asked <= set(exported), asked - set(exported)


def test_grouping_labels_exist(exported):
    for expr in expressions():
        labels = {label.strip() for group in re.findall(r"\bby \(([^)]*)\)", expr) for label in group.split(",")}
        there = set().union(*(exported.get(name, set()) for name in METRIC.findall(expr)))
        assert labels - OF_PROMETHEUS <= there, expr


def test_dashboard_selects_the_chosen_job_and_instances_only():
    """Instances of another job may have the same name; `All` means all instances of the job."""
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", []):
            metrics, selectors = METRIC.findall(target["expr"]), SELECTOR.findall(target["expr"])
            assert metrics == [name for name, _ in selectors], target["expr"]
            assert all(selector.startswith('job="$job",instance=~"$instance"') for _, selector in selectors), target["expr"]


def test_dashboard_data_source_is_a_variable():
    for panel in DASHBOARD["panels"]:
        for each in [panel, *panel.get("targets", [])]:
            assert panel["type"] == "row" or each["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    assert DASHBOARD["schemaVersion"] >= 39
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))


def test_panels_do_not_overlap():
    taken = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken and at["x"] + at["w"] <= 24, panel["title"]
        taken |= cells


def test_runbook_covers_exactly_the_alerts():
    page = (ROOT / "man" / "gatepostd.8").read_text()
    runbook = page.partition(".Sh RUNBOOK\n")[2].partition("\n.Sh ")[0]
    items = re.findall(r"^\.It Sy (\w+)\n(?!\.It)", runbook, re.M)
    assert items == alerts()
    assert set(re.findall(r"\bGatepost[A-Z]\w+", runbook)) == set(items)
