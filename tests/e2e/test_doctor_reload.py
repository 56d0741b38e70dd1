"""gatepost doctor: after a refused reload it says why, and advises no other reload where only a restart helps."""

import json
import pathlib
import re
import time

import pytest

import waiting
from checkup import by_sockets, examine, file_of, status_of
from reloading import refused, reload, send_sighup
from signing import SECRET, Delivery

KEY = b"another secret, which is long enough"
TOLERANCE = "the tolerance of [source invoicing] exceeds half of dedup_window, which needs a restart to change"
MEMORY = "max_in_flight is below max_body, which needs a restart to change"
SEE = "its last reload was refused, see `daemon configuration` above for what to do"


@pytest.fixture
def daemon(installation):
    config = by_sockets(installation)
    installation.create_topics(config)
    return installation.start(config)


def configuration_line(checkup):
    (line,) = [line for line in checkup.lines if " daemon configuration: " in line]
    return line


@pytest.mark.parametrize("reason, options", [
    (TOLERANCE, {"source invoicing": {"tolerance": "2d"}, "router": {"dedup_window": "4d"}}),
    (MEMORY, {"receiver": {"max_body": "64KiB", "max_in_flight": "256KiB"}}),
], ids=["tolerance", "memory"])
def test_edit_that_only_a_restart_applies(installation, daemon, reason, options):
    """`gatepost check` accepts it, and each reload refuses it."""
    for section, changed in options.items():
        daemon.config[section].update(changed)
    daemon.config["source invoicing"]["secret_file"] = daemon.config.secret_file("new", KEY)
    assert status_of(daemon)["configuration"]["refusedReload"] is None
    refused(daemon)
    assert status_of(daemon)["configuration"]["refusedReload"].items() >= {"reason": reason, "needsRestart": True}.items()
    file = file_of(daemon)
    checkup = examine(installation, file)
    assert configuration_line(checkup) == (
        f"! daemon configuration: gatepostd has not loaded {file} as it is now: the last reload was refused: {reason}; only a restart applies it: "
        "systemctl restart gatepostd")
    assert "remedy: gatepostd runs with other secrets than the file names (" in checkup.lines[-1]
    assert checkup.lines[-1].endswith(f"Changing a secret): {SEE}")
    shown = " ".join(installation.gatepost("status", config=file).stdout.split())
    assert re.search(rf" the last reload was refused, \d+ s ago {re.escape(reason)} ", shown), shown
    daemon.stop()
    daemon.start().wait_until_ready()
    daemon.accept(Delivery(secret=KEY))
    assert examine(installation, file, "--no-send").status == 0


def test_restart_after_a_refused_reload_is_guarded(installation, daemon):
    """The reload has applied nothing, so that it does not say which options await a restart."""
    daemon.config["source invoicing"]["tolerance"] = "2d"
    daemon.config["router"]["dedup_window"] = "4d"
    daemon.config["topics"]["prefix"] = f"{installation.prefix}n"
    installation.create_topics(daemon.config)
    refused(daemon)
    assert f"only a restart applies it: a restart reads {installation.prefix}n.deliveries, and leaves in {installation.prefix}.deliveries" in (
        configuration_line(examine(installation, file_of(daemon), "--no-send")))


def test_edit_that_a_reload_can_apply_once_it_is_corrected(installation, daemon):
    daemon.config["events"]["invoice.*"] = topic = f"{installation.prefix}.missing"
    refused(daemon)
    line = configuration_line(examine(installation, file_of(daemon), "--no-send"))
    assert f": the last reload was refused: topic {topic}: " in line and line.endswith("; when that is corrected: systemctl reload gatepostd"), line
    refusal = json.loads(installation.gatepost("status", "--json", config=file_of(daemon)).stdout)["configuration"]["refusedReload"]
    assert topic in refusal["reason"] and refusal["needsRestart"] is False
    installation.create_topics(daemon.config)
    reload(daemon)
    assert status_of(daemon)["configuration"]["refusedReload"] is None
    assert configuration_line(examine(installation, file_of(daemon), "--no-send")).endswith("gatepostd has loaded the newest files")


def test_link_to_another_file_than_the_refused_one(installation, daemon):
    """It was written before the refusal, which therefore is not of it although it is not newer."""
    file = pathlib.Path(file_of(daemon))
    good, bad = file.with_suffix(".good"), file.with_suffix(".bad")
    good.write_text(file.read_text() + "# changed\n")
    bad.write_text(file.read_text().replace("[source invoicing]\n", "[source invoicing]\ntolerance = 2d\n").replace(
        "[router]\n", "[router]\ndedup_window = 4d\n"))
    for target, told in ((bad, f"the last reload was refused: {TOLERANCE}; only a restart applies it: systemctl restart gatepostd"),
                         (good, f"gatepostd has not loaded {file} as it is now: systemctl reload gatepostd")):
        file.unlink()
        file.symlink_to(target)
        if target == bad:
            now = int(time.time())
            waiting.until(lambda: time.time() >= now + 1, 5, "a later second than that of the files")
            assert "reload failed" in send_sighup(daemon)
        assert configuration_line(examine(installation, str(file), "--no-send")).endswith(told)
    assert "configuration reloaded" in send_sighup(daemon)


def test_first_error_of_a_refused_file(installation, daemon):
    daemon.config["source invoicing"]["tolerance"] = "soon"
    daemon.config["topics"]["prefixx"] = "x"
    refused(daemon)
    lines = open(file_of(daemon), encoding="utf-8").read().splitlines()
    first = min(lines.index("tolerance = soon"), lines.index("prefixx = x")) + 1
    refusal = status_of(daemon)["configuration"]["refusedReload"]
    assert refusal["reason"].startswith(f"{file_of(daemon)}:{first}: ") and refusal["hasErrors"], refusal
    shown = installation.gatepost("check", config=file_of(daemon)).stderr.splitlines()
    assert shown[0] == refusal["reason"]


@pytest.mark.parametrize("has_spool", [False, True])
def test_admin_endpoint_that_has_moved(installation, has_spool):
    """A reload accepts another `listen` of [admin], and only a restart applies it. The receiver answers all the same."""
    config = by_sockets(installation)
    if has_spool:
        config["receiver"]["spool"] = str(config.directory / "spool")
    installation.create_topics(config)
    daemon = installation.start(config)
    config["admin"]["listen"] += "2"
    reload(daemon)
    file = file_of(daemon)
    checkup = examine(installation, file)
    assert f"✓ listen {config['receiver']['listen']}: gatepostd answers" in checkup.lines
    assert checkup.lines[-1].partition("nothing listens there; ")[2] == (
        "gatepostd runs, but not with this `listen` of [admin], which only a restart applies, or a socket unit has another address, or the socket was "
        "deleted; remedy: if gatepostd-admin.socket is enabled, give its ListenStream the address of `listen` in [admin] (systemctl edit "
        "gatepostd-admin.socket); then: systemctl restart gatepostd" + has_spool * f"; if `spool` was changed before, then drain the old directory: gatepost -c {file} spool drain DIR")
    daemon.stop()
    assert "remedy: start it: systemctl start gatepostd" in examine(installation, file).lines[-1]


def test_replaced_secret_is_said_before_and_after_the_reload(installation, daemon):
    """While the service signs with the previous secret, the remedy is not a reload, which would refuse its deliveries."""
    config = daemon.config
    file = pathlib.Path(config["source invoicing"]["secret_file"])
    file.write_bytes(KEY)
    advice = ("as it is now: systemctl reload gatepostd, but first see that the service signs with the secret of [source invoicing], or keep the "
              "previous one as another secret_file: what is signed with that is refused otherwise")
    checkup = examine(installation, file_of(daemon))
    assert configuration_line(checkup).endswith(f"gatepostd has not loaded {file} {advice}")
    assert "(if it accepts deliveries of the service, first add their secret as another secret_file; if it is lost, " in checkup.lines[-1]
    file.write_bytes(SECRET)
    config["source invoicing"]["secret_file"] = config.secret_file("other", KEY)
    config.write(f"{daemon.name}.conf")
    assert configuration_line(examine(installation, file_of(daemon), "--no-send")).endswith(f"gatepostd has not loaded {file_of(daemon)} {advice}")
    late = Delivery()
    assert "all secrets of a source were replaced" in reload(daemon)
    assert daemon.post(late).status == 401
    (line,) = [line for line in examine(installation, file_of(daemon)).lines if line.startswith("! secrets ")]
    assert " replaced all secrets: " in line and "; if it does, add that one again as another secret_file, and then: systemctl reload " in line
    config["source invoicing"]["secret_file"] = [config["source invoicing"]["secret_file"], str(file)]
    config.write(f"{daemon.name}.conf")
    assert configuration_line(examine(installation, file_of(daemon), "--no-send")).endswith("as it is now: systemctl reload gatepostd")
    assert "secrets of a source" not in reload(daemon)
    daemon.accept(late)
    assert not any(line.startswith("! secrets ") for line in examine(installation, file_of(daemon)).lines)


RENAMED = "[source {}] is the one that was {}, give it that name: otherwise repeats of its deliveries are published again"


def renames(log):
    return re.findall(r"source has another name; .* source=(\S+) previous=(\S+)", log)


@pytest.mark.parametrize("changes", [{}, {"path": "/webhooks/einvoices"}], ids=["same-path", "another-path"])
def test_source_with_another_name_is_said_before_and_after_the_reload(installation, daemon, changes):
    source = daemon.config.sections.pop("source invoicing")
    daemon.config.sections["source einvoices"] = source | {"header_prefix": "x-invoicing"} | changes
    daemon.config.write(f"{daemon.name}.conf")
    line = configuration_line(examine(installation, file_of(daemon), "--no-send"))
    assert line.endswith(f"systemctl reload gatepostd, but first if {RENAMED.format('einvoices', 'invoicing')}")
    assert renames(reload(daemon)) == [("einvoices", "invoicing")]


def test_names_of_several_sources_are_followed(installation, daemon):
    """Renamed together, exchanged, and passed on to a new source, whose secret is new and replaces none."""
    config = daemon.config.source("reports", KEY)
    config["source invoicing"]["header_prefix"] = "x-invoicing"
    reload(daemon)
    first, second = (config.sections.pop(f"source {name}") for name in ("invoicing", "reports"))
    for names, expected in ((("a", "b"), [("a", "invoicing"), ("b", "reports")]), (("b", "a"), [("b", "a"), ("a", "b")]),
                            (("eu", "a"), [("eu", "b")])):
        for name in [name for name in config.sections if name.startswith("source ")]:
            del config.sections[name]
        config.sections |= {f"source {names[0]}": first, f"source {names[1]}": second}
        if names[0] == "eu":
            config.source("b", b"the secret of a new source")
        config.write(f"{daemon.name}.conf")
        line = configuration_line(examine(installation, file_of(daemon), "--no-send"))
        for pair in expected:
            assert RENAMED.format(*pair) in line, line
        log = reload(daemon)
        assert (renames(log), "secrets of a source" in log) == (expected, False), log
    config.source("c", b"the secret of a new source")  # that of b, too, which check warns of
    log = reload(daemon)
    assert (renames(log), "secrets of a source" in log) == ([], False), log


def test_source_with_another_name_is_said_after_a_restart(installation, daemon):
    daemon.accept()
    installation.kafka.wait_until_routed()
    source = daemon.config.sections.pop("source invoicing")
    daemon.config.sections["source einvoices"] = source | {"header_prefix": "x-invoicing"}
    daemon.stop()
    daemon.restart()
    daemon.wait_for_log("deliveries within dedup_window have a source that is not configured")


def test_secret_of_a_router_that_does_not_verify_is_no_matter(installation):
    """A router with verify = on quarantines what it is then wrong for."""
    installation.create_topics()
    router = installation.start(by_sockets(installation).roles("router"))
    secret_file = router.config.secret_file("new", KEY)
    for verify in ("off", "on"):
        router.config["router"]["verify"] = verify
        router.stop()
        router.restart()
        router.config["source invoicing"]["secret_file"] = secret_file
        router.config.write(f"{router.name}.conf")
        line = configuration_line(examine(installation, file_of(router), "--no-send"))
        assert ("what is signed with that is quarantined otherwise" in line) == (verify == "on"), line
        assert ("all secrets of a source were replaced" in reload(router)) == (verify == "on")
        lines = [line for line in examine(installation, file_of(router), "--no-send").lines if line.startswith("! secrets ")]
        assert [" are quarantined; " in line for line in lines] == [True] * (verify == "on")
        secret_file = router.config.secret_file("newer", b"one more secret, long enough")


def exchange(daemon, option):
    """Exchange an option of two sources in the file."""
    config = daemon.config.source("reports", KEY)
    reload(daemon)
    first, second = config["source invoicing"], config["source reports"]
    first[option], second[option] = second[option], first[option]
    config.write(f"{daemon.name}.conf")


def test_exchanged_secrets_are_no_other_names(installation, daemon):
    exchange(daemon, "secret_file")
    line = configuration_line(examine(installation, file_of(daemon), "--no-send"))
    assert "the secret of [source invoicing], or" in line and "the secret of [source reports], or" in line and "is the one that was" not in line
    log = reload(daemon)
    assert (renames(log), log.count("all secrets of a source were replaced")) == ([], 2), log


def test_exchanged_paths_are_no_other_names(installation, daemon):
    exchange(daemon, "path")
    line = configuration_line(examine(installation, file_of(daemon), "--no-send"))
    cause = examine(installation, file_of(daemon)).lines[-1]
    assert "remedy: gatepostd has the path /webhooks/" in cause and "correct the file; only if it is right, see" in cause and "add their secret" not in cause
    for name, other in (("invoicing", "reports"), ("reports", "invoicing")):
        assert f"see whether [source {name}] is to have the path that [source {other}] has now" in line, line
    log = reload(daemon)
    assert (renames(log), log.count("source has the path that another source had")) == ([], 2), log
