"""Carries out the instructions of a Containerfile on directories, in order, where no container engine runs: FROM copies a
Debian that debootstrap has made, and RUN uses chroot. It needs root, and Debian's archive."""

import io
import json
import pathlib
import re
import shutil
import subprocess
import tarfile

from dockerfile_parse import DockerfileParser

SECONDS = 1800
# The Debian of an image by its name.
SUITES = {"docker.io/library/debian:12-slim": "bookworm"}
# Arguments: root, user, working directory, command. The mounts end with the namespace.
ENTER = ('mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && user=$1 directory=$2 && shift 2 && '
         'exec chroot --userspec="$user" --groups= "$0" env -C "$directory" "$@"')


def stages(text):
    """Each stage: a list of (instruction, value), of which the first is FROM."""
    each = []
    for part in DockerfileParser(fileobj=io.BytesIO(text.encode())).structure:
        if part["instruction"] == "FROM":
            each.append([])
        if part["instruction"] != "COMMENT":
            each[-1].append((part["instruction"], part["value"]))
    return each


def packages(stage):
    """The packages that a stage installs."""
    commands = " ".join(value for instruction, value in stage if instruction == "RUN")
    return set(re.search(r"apt-get install -y --no-install-recommends +(.+?) *(?:&&|$)", commands)[1].split())


def archive():
    """The address of Debian's archive, from this machine's own lists."""
    done = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)", "Created-By: Packages"],
                          check=True, capture_output=True, text=True)
    return next(uri for uri, suite, component in map(str.split, done.stdout.splitlines())
                if component == "main" and "-" not in suite)


class Stage:
    def __init__(self, base, root):
        subprocess.run(["cp", "-a", base, root], check=True)
        shutil.copy("/etc/resolv.conf", root / "etc" / "resolv.conf")
        self.root = root
        self.directory = "/"
        self.user = "0:0"
        self.arguments = {}
        self.settings = {}  # values of the other instructions, by name

    def path(self, inside):
        return self.root / str(pathlib.PurePosixPath(self.directory) / inside).lstrip("/")

    def command(self, *words):
        """The command that runs these words inside."""
        return [*map(str, ("unshare", "--mount", "--propagation", "private", "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                           *(f"{name}={value}" for name, value in self.arguments.items()),
                           "sh", "-c", ENTER, self.root, self.user, self.directory)), *words]

    def run(self, *words):
        done = subprocess.run(self.command(*words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=SECONDS)
        assert done.returncode == 0, (words, done.stdout[-4000:])
        return done.stdout

    def words(self, setting):
        """The words of an instruction in exec form."""
        return json.loads(re.sub(r"^[^\[]*CMD ", "", self.settings[setting]))


class Image:
    def __init__(self, text, context, arguments, directory):
        """Build in this directory, with arguments for ARG."""
        self.context = context
        self.arguments = arguments
        self.directory = directory
        self.stages = {}
        for stage in stages(text):
            for instruction, value in stage:
                self._carry_out(instruction, value)
        self.last = self.stage

    def _carry_out(self, instruction, value):
        action = getattr(self, f"_{instruction.lower()}", None)
        if action:
            # In RUN, the shell replaces variables.
            action(value if instruction in ("FROM", "RUN") else
                   re.sub(r"\$\{(\w+)\}", lambda match: self.stage.arguments[match[1]], value))
        else:
            self.stage.settings[instruction] = value

    def _from(self, value):
        image, *name = re.split(r"\s+AS\s+", value)
        base = self.directory / SUITES[image]
        if not base.exists():
            subprocess.run(["debootstrap", "--variant=minbase", SUITES[image], base, archive()], check=True,
                           stdout=subprocess.DEVNULL, timeout=SECONDS)
        self.stage = Stage(base, self.directory / f"stage{len(self.stages)}")
        self.stages[name[0] if name else ""] = self.stage

    def _arg(self, value):
        self.stage.arguments[value] = self.arguments[value]

    def _run(self, value):
        self.stage.run("sh", "-c", value)

    def _workdir(self, value):
        self.stage.directory = value
        self.stage.path(".").mkdir(parents=True, exist_ok=True)

    def _add(self, value):
        source, target = value.split()
        with tarfile.open(self.context / source) as release:
            safely = {"filter": "tar"} if hasattr(tarfile, "tar_filter") else {}  # since Python 3.11.4
            release.extractall(self.stage.path(target), **safely)

    def _copy(self, value):
        stage, source, target = value.removeprefix("--from=").split()
        shutil.copytree(self.stages[stage].path(source), self.stage.path(target), symlinks=True, dirs_exist_ok=True)

    def _user(self, value):
        self.stage.user = value
