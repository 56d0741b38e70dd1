"""gatepost completion SHELL: what bash, zsh and fish offer for a line that is being typed."""

import os
import pty
import re
import shlex
import signal
import subprocess
import threading

import pytest

import waiting
from installation import BUILD

EX_USAGE = 64
WITH_PATH = {"PATH": f"{BUILD}:{os.environ['PATH']}"}  # the scripts ask the program
SHELLS = ["bash", "zsh", "fish"]
BASH = """
source "$1"
COMP_WORDS=("${@:2}")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_gatepost
printf '%s\\n' "${COMPREPLY[@]}"
"""
# zsh completes only at a terminal. Its .zshrc writes to a file what completion adds, and makes another file when the line
# editor begins, and when it reads ^G, with which it empties the line.
ZSH = """
autoload -Uz compinit && compinit -u -D && source "$SCRIPT"
compadd() {
        local -a added
        [[ ${@[1,(i)(-|--)]} == *-[OAD]\\ * ]] || { builtin compadd -A added "$@"; print -rl -- ${(Q)added} >>$OFFERED; }
        builtin compadd "$@"
}
be-ready() {
        BUFFER=''
        : >$READY
}
zle -N be-ready
zle -N zle-line-init be-ready
bindkey '^D' list-choices
bindkey '^G' be-ready
"""


class Bash:
    def __init__(self, script, directory):
        self.script, self.directory = script, directory

    def offer(self, line, last):
        """What is offered after LINE for the word that begins with LAST, one per line."""
        words = [each for word in shlex.split(line) for each in
                 (word.partition("=") if word.startswith("--") and "=" in word else [word]) if each]
        return self.run("bash", "--norc", "-u", "-c", BASH, "bash", self.script, *words, last)

    def run(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, cwd=self.directory,
                              env=os.environ | {"HOME": str(self.directory)} | WITH_PATH)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def close(self):
        pass


class Fish(Bash):
    def offer(self, line, last):
        before = line.split()[-1] if line.endswith("=") else ""
        output = self.run("fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]", self.script,
                          f"{line}{'' if before else ' '}{last}")
        return "".join(each.partition("\t")[0].removeprefix(before) + "\n" for each in output.splitlines())


class Zsh(Bash):
    def __init__(self, script, directory):
        super().__init__(script, directory)
        self.offered, self.ready = directory.parent / "offered", directory.parent / "ready"
        (directory.parent / ".zshrc").write_text(ZSH)
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.chdir(directory)
            os.execvpe("zsh", ["zsh", "-d", "-i"], os.environ | WITH_PATH | {"ZDOTDIR": str(directory.parent), "SCRIPT": str(script), "TERM": "dumb",
                                                                 "OFFERED": str(self.offered), "READY": str(self.ready)})
        threading.Thread(target=self.discard_output, daemon=True).start()
        self.wait()

    def discard_output(self):
        try:
            while os.read(self.terminal, 65536):
                pass
        except OSError:
            pass

    def wait(self):
        waiting.until(self.ready.exists, 60, "zsh to read what was typed")
        self.ready.unlink()

    def offer(self, line, last):
        self.offered.write_text("")
        os.write(self.terminal, f"{line}{'' if line.endswith('=') else ' '}{last}\x04\x07".encode())
        self.wait()
        offered = self.offered.read_text().splitlines()  # options, too, where nothing else is known
        return "\n".join(each for each in offered if last.startswith("-") or not each.startswith("-"))

    def close(self):
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self.terminal)


@pytest.fixture(params=SHELLS)
def script(request, offline, tmp_path):
    done = offline.gatepost("completion", request.param, config=False)
    assert (done.returncode, done.stderr) == (0, "")
    path = tmp_path / f"completion.{request.param}"
    path.write_text(done.stdout)
    return path


@pytest.fixture
def offer(script, tmp_path):
    """What is offered for the last of the words."""
    (tmp_path / "files").mkdir()
    for name in ("body.json", "big file"):
        (tmp_path / "files" / name).touch()
    shell = {".bash": Bash, ".zsh": Zsh, ".fish": Fish}[script.suffix](script, tmp_path / "files")
    yield lambda line, last: set(shell.offer(line, last).splitlines()) - {""}
    shell.close()


FILES = {"body.json", "big file"}  # bash itself adds these


def listed(offline):
    help_text = offline.gatepost("--help", config=False).stdout.partition("commands:\n")[2]
    return [line.strip().partition("  ")[0] for line in help_text.splitlines()]


def test_script_is_well_formed(script):
    done = subprocess.run([script.suffix[1:], "-n", script], capture_output=True, text=True, timeout=30)
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
    for name in set(listed(offline)) - {"help"}:  # which takes the words of the program
        text = offline.gatepost(*name.split(), "--help", config=False).stdout
        assert offer(f"gatepost {name}", "-") == set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, re.M)), name
    assert offer("gatepost", "-") == {"--config", "--help", "--version"}
    assert offer("gatepost send --forge", "--de") == {"--delivery-id"}


@pytest.mark.parametrize("before", ["-c some.conf", "--config some.conf", "--config=some.conf", "-c tail"])
def test_command_after_global_options_is_completed(offer, before):
    assert offer(f"gatepost {before}", "ver") == {"verify"}
    assert offer(f"gatepost {before} topics create", "--pa") == {"--partitions"}


@pytest.mark.parametrize("line", ["gatepost sign --secret-file", "gatepost sign", "gatepost verify body.json"])
def test_files_are_offered_where_there_is_no_word(offer, script, line):
    assert offer(line, "b") == (set() if script.suffix == ".bash" else FILES)


def test_wrong_usage_exits_64(offline):
    for arguments in (["bash", "more"], ["bash", "--nonsense"], ["ksh"], []):
        done = offline.gatepost("completion", *arguments, config=False)
        assert (done.returncode, done.stdout) == (EX_USAGE, "") and done.stderr


@pytest.mark.parametrize("shell, place", [("bash", "bash-completion/completions/gatepost"),
                                          ("zsh", "zsh/site-functions/_gatepost"),
                                          ("fish", "fish/vendor_completions.d/gatepost.fish")])
def test_make_install_puts_it_where_the_shell_looks(offline, tmp_path, shell, place):
    done = subprocess.run(["make", "-s", "-C", BUILD, f"install-{shell}completionDATA", f"DESTDIR={tmp_path}/root"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (installed,) = (tmp_path / "root").rglob(place)
    assert installed.read_text() == offline.gatepost("completion", shell, config=False).stdout
