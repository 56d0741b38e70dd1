"""gatepost completion bash: what bash offers for a line that is being typed."""

import shlex
import subprocess

import pytest

from installation import BUILD
from signing import KINDS, event_topic

EX_USAGE = 64
OFFER = """
source "$1"
COMP_WORDS=("${@:2}")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_gatepost
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def script(offline, tmp_path):
    done = offline.gatepost("completion", "bash", config=False)
    assert (done.returncode, done.stderr) == (0, "")
    path = tmp_path / "completion"
    path.write_text(done.stdout)
    return path


@pytest.fixture
def offer(script, tmp_path):
    """What is offered for the last of the words."""
    (tmp_path / "files").mkdir()
    for name in ("body.json", "big file"):
        (tmp_path / "files" / name).touch()

    def run(line, last):
        words = [each for word in shlex.split(line) for each in
                 (word.partition("=") if word.startswith("--") and "=" in word else [word]) if each]
        done = subprocess.run(["bash", "--norc", "-u", "-c", OFFER, "bash", script, *words, last], capture_output=True,
                              text=True, timeout=30, cwd=tmp_path / "files")
        assert (done.returncode, done.stderr) == (0, "")
        return set(done.stdout.splitlines()) - {""}
    return run


def listed(offline):
    help_text = offline.gatepost("--help", config=False).stdout.partition("commands:\n")[2]
    return [line.strip().partition("  ")[0] for line in help_text.splitlines()]


def test_every_command_is_offered(offline, offer):
    names = listed(offline)
    assert offer("gatepost", "") == {name.split()[0] for name in names}
    assert offer("gatepost", "ch") == {"check"}
    for group in {name.split()[0] for name in names if " " in name}:
        assert offer(f"gatepost {group}", "") == {name.split()[1] for name in names if name.startswith(group + " ")}
    assert offer("gatepost topics", "c") == {"create"}
    assert offer("gatepost nonsense", "") == set()


def test_options_of_the_command_are_offered(offline, offer):
    for name in listed(offline):
        text = offline.gatepost(*name.split(), "--help", config=False).stdout
        options = {line.split()[0] for line in text.splitlines() if line.startswith("  --")}
        assert offer(f"gatepost {name}", "-") == options | {"--help"}, name
    assert offer("gatepost", "-") == {"--config", "--help", "--version"}
    assert offer("gatepost send --forge", "--de") == {"--delivery-id"}


@pytest.mark.parametrize("before", ["-c some.conf", "--config some.conf", "--config=some.conf", "-c tail"])
def test_command_after_global_options_is_completed(offer, before):
    assert offer(f"gatepost {before}", "ver") == {"verify"}
    assert offer(f"gatepost {before} topics create", "--pa") == {"--partitions"}


@pytest.mark.parametrize("line", ["gatepost -c", "gatepost --config", "gatepost --config=", "gatepost sign --secret-file",
                                  "gatepost sign --secret-file=", "gatepost sign", "gatepost send --forge",
                                  "gatepost verify body.json", "gatepost secret new"])
def test_files_are_offered_for_file_arguments(offer, line):
    assert offer(line, "b") == {"body.json", "big file"}


def test_known_values_are_offered(offer):
    kinds = {event_topic(kind) for kind in KINDS} - {"reporting_batch"} | {"reporting_batch.*"}
    assert offer("gatepost send --kind", "") == kinds
    assert offer("gatepost tail", "") == kinds
    assert offer("gatepost tail --json invoice.accepted", "invoice.re") == {"invoice.rejected", "invoice.received"}
    assert offer("gatepost tail --from", "") == offer("gatepost tail --from=", "") == {"beginning", "end"}
    assert offer("gatepost tail --from=", "b") == {"beginning"}
    assert "unknown-kind" in offer("gatepost quarantine list --reason", "")


@pytest.mark.parametrize("line", ["gatepost send --delivery-id", "gatepost status", "gatepost check", "gatepost audit --since",
                                  "gatepost subscriptions add", "gatepost quarantine list"])
def test_nothing_is_offered_for_free_form_arguments(offer, line):
    assert offer(line, "") == set()


def test_wrong_usage_exits_64(offline):
    for arguments in (["bash", "more"], ["bash", "--nonsense"], ["zsh"], []):
        done = offline.gatepost("completion", *arguments, config=False)
        assert (done.returncode, done.stdout) == (EX_USAGE, "") and done.stderr


def test_make_install_puts_the_script_into_the_bash_completion_directory(script, tmp_path):
    done = subprocess.run(["make", "-s", "-C", BUILD, "install-bashcompletionDATA", f"DESTDIR={tmp_path}/root"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (installed,) = (tmp_path / "root").rglob("bash-completion/completions/gatepost")
    assert installed.read_text() == script.read_text()
