"""gatepost completion: what bash offers for a line that is being typed."""

import os
import re
import shlex
import subprocess

import pytest

from installation import BUILD

EX_USAGE = 64
BASH = """
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
    path = tmp_path / "completion.bash"
    path.write_text(done.stdout)
    return path


@pytest.fixture
def offer(script):
    """What is offered after LINE for the word that begins with LAST. The script asks the program, by its name."""
    def offer(line, last):
        words = [each for word in shlex.split(line) for each in
                 (word.partition("=") if word.startswith("--") and "=" in word else [word]) if each]
        done = subprocess.run(["bash", "--norc", "-u", "-c", BASH, "bash", script, *words, last], capture_output=True, text=True,
                              timeout=30, env=os.environ | {"PATH": f"{BUILD}:{os.environ['PATH']}"})
        assert (done.returncode, done.stderr) == (0, "")
        return set(done.stdout.splitlines()) - {""}
    return offer


def listed(offline):
    help_text = offline.gatepost("--help", config=False).stdout.partition("commands:\n")[2]
    return [line.strip().partition("  ")[0] for line in help_text.splitlines()]


def test_script_is_well_formed(script):
    done = subprocess.run(["bash", "-n", script], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_every_command_is_offered(offline, offer):
    names = listed(offline)
    assert offer("gatepost", "") == {name.split()[0] for name in names}
    assert offer("gatepost", "ch") == {"check"}
    for group in {name.split()[0] for name in names if " " in name}:
        assert offer(f"gatepost {group}", "") == {name.split()[1] for name in names if name.startswith(group + " ")}
    assert offer("gatepost topics", "c") == {"create"}
    assert offer("gatepost help", "ch") == {"check"} and offer("gatepost help topics", "c") == {"create"}


def test_options_of_the_command_are_offered(offline, offer):
    for name in listed(offline):
        text = offline.gatepost(*name.split(), "--help", config=False).stdout
        assert offer(f"gatepost {name}", "-") == set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, re.M)), name
    assert offer("gatepost", "-") == {"--config", "--help", "--version"}
    assert offer("gatepost send --forge", "--de") == {"--delivery-id"}


@pytest.mark.parametrize("before", ["-c some.conf", "--config some.conf", "--config=some.conf", "-c tail"])
def test_command_after_global_options_is_completed(offer, before):
    assert offer(f"gatepost {before}", "ver") == {"verify"}
    assert offer(f"gatepost {before} topics create", "--pa") == {"--partitions"}


def test_files_are_left_to_bash_where_there_is_no_word(offer):
    assert offer("gatepost sign --secret-file", "b") == offer("gatepost verify body.json", "b") == set()


def test_wrong_usage_exits_64(offline):
    for arguments in (["bash", "more"], ["bash", "--nonsense"], ["ksh"], []):
        done = offline.gatepost("completion", *arguments, config=False)
        assert (done.returncode, done.stdout) == (EX_USAGE, "") and done.stderr


def test_make_install_puts_it_where_bash_looks(script, tmp_path):
    done = subprocess.run(["make", "-s", "-C", BUILD, "install-bashcompletionDATA", f"DESTDIR={tmp_path}/root"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (installed,) = (tmp_path / "root").rglob("bash-completion/completions/gatepost")
    assert installed.read_text() == script.read_text()
