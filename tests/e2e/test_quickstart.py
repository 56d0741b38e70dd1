"""The demonstration: its results, the commands that it prints, and that nothing is left behind."""

import os
import pathlib
import re
import signal
import subprocess

import confluent_kafka.admin
import pytest

import waiting

ROOT = pathlib.Path(__file__).parents[2]
SECONDS = 900
RESULTS = ("published in invoicing.invoice.accepted", "published in invoicing.invoice.rejected",
           "published in invoicing.invoice.duplicate", "published in invoicing.reporting_batch",
           "refused: INVALID_SIGNATURE", "refused: STALE_TIMESTAMP", "dropped, a repeat", "quarantined: unknown-kind",
           "quarantined: conflicting-body")

RELEASED = "./gatepost tail --from beginning --until-end invoice.teleported"


def processes_in(directory):
    """The processes whose command line or working directory is in a directory."""
    found = []
    for each in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            told = (each / "cmdline").read_bytes().decode(errors="replace") + os.readlink(each / "cwd")
        except OSError:
            continue
        if str(directory) in told:
            found.append(told)
    return found


@pytest.fixture
def scratch(tmp_path):
    """A directory for temporary files, which must be empty in the end, and used by no process."""
    yield tmp_path
    waiting.until(lambda: not processes_in(tmp_path), 60, lambda: f"the end of {processes_in(tmp_path)}")
    assert list(tmp_path.iterdir()) == []


def start(scratch, *arguments):
    return subprocess.Popen([ROOT / "quickstart", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, env=os.environ | {"TMPDIR": str(scratch)},
                            start_new_session=True)


def finish(running):
    output, _ = running.communicate(timeout=SECONDS)
    assert running.returncode == 0, output
    table = output.partition("\nResults\n")[2]
    assert all(result in table for result in RESULTS), output
    return output


def test_quickstart_shows_the_result_of_each_delivery(scratch):
    output = finish(start(scratch))
    assert "Commands to try" not in output


@pytest.mark.parametrize("broker", [[], pytest.param(["--kafka"], marks=pytest.mark.slow)], ids=["embedded", "kafka"])
def test_every_printed_command_works(scratch, broker):
    output = finish(start(scratch, "--keep", *broker))
    printed = output.partition("\nCommands to try:\n")[2]
    commands = re.findall(r"^    (\S.*)$", printed, re.M)
    assert commands[0].startswith("cd ") and commands[-1] == "./stop" and len(commands) >= 20
    directory, shown = commands[0].split()[1], {}

    def run(command):
        done = subprocess.run(["bash", "-c", command], cwd=directory, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=120)
        expected = re.search(r"# .*exits (\d+)", command)
        assert done.returncode == (int(expected[1]) if expected else 0), (command, done.stdout, done.stderr)
        return done.stdout
    try:
        for command in commands[1:-1]:
            shown[command.partition("#")[0].strip()] = run(command)
            if command.startswith("kill "):
                log = pathlib.Path(directory, "gatepostd.log")
                waiting.until(lambda: "configuration reloaded" in log.read_text(), 60, "the reload")
            elif command == RELEASED:
                waiting.until(lambda: "invoice.teleported" in run(RELEASED), 60, "the released event")
        kinds = {line.split()[-1]: line.split()[4] for line in run("./gatepost quarantine list --all").splitlines() if "unknown-kind" in line}
        assert kinds == {"invoice.teleported": "yes", "invoice.acepted": "no"}
        page = re.search(r"The status page: (http://\S+)", output)[1]
        assert "<html" in subprocess.run(["curl", "-sSf", page], capture_output=True, text=True).stdout
        kafka = re.search(r"For consumers: Kafka is at (\S+),", output)[1]
        topics = confluent_kafka.admin.AdminClient({"bootstrap.servers": kafka}).list_topics(timeout=30).topics
        assert "invoicing.invoice.teleported" in topics
    finally:
        subprocess.run(["bash", "-c", commands[-1]], cwd=directory, timeout=120, check=True)
    assert shown["./gatepost status"].startswith("ready")
    assert shown["./gatepost audit"].splitlines()[-1].split()[3:6] == ["0", "0", "0"]
    assert "unknown-kind" in shown["./gatepost quarantine list"] and RELEASED in shown
    assert all('"ok":true' in text for command, text in shown.items() if command.startswith("curl "))


@pytest.mark.parametrize("moment", ["Building into", "Starting gatepost-sandbox", "Starting gatepostd", "Registering", "Sending other"])
def test_interrupt_leaves_nothing_behind(scratch, moment):
    running = start(scratch, "--keep")
    shown = ""
    while moment not in shown:
        line = running.stdout.readline()
        assert line, shown
        shown += line
    os.killpg(running.pid, signal.SIGINT)
    output, _ = running.communicate(timeout=SECONDS)
    assert running.returncode == 130 and "Results" not in output, output


def test_wrong_usage_exits_64(scratch):
    for arguments in (["--nonsense"], ["--keep", "more"]):
        running = start(scratch, *arguments)
        assert running.communicate(timeout=60)[0].startswith("usage: ./quickstart ") and running.returncode == 64
