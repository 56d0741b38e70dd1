"""A machine to install the package on: an overlay of this machine's root with its own /run and a substitute for systemd.
Needs root and a mount namespace."""

import os
import pathlib
import subprocess

from systemd import Systemd

# Files that dpkg, systemd and creating accounts change on any machine.
BOOKKEEPING = ("var/lib/dpkg", "var/log", "var/cache", "var/tmp", "tmp", "run", "etc/passwd", "etc/group", "etc/shadow",
               "etc/gshadow", "etc/.pwd.lock", "etc/subuid", "etc/subgid")


class Machine:
    def __init__(self, directory):
        self.layers = directory / "layers"
        self.root = directory / "root"

    def __enter__(self):
        upper, work = self.layers / "upper", self.layers / "work"
        for each in (self.layers, self.root):
            each.mkdir()
        self._mount("-t", "tmpfs", "tmpfs", self.layers)
        for each in (upper, work):
            each.mkdir()
        self._mount("-t", "overlay", "overlay", "-o", f"lowerdir=/,upperdir={upper},workdir={work}", self.root)
        self._mount("-t", "tmpfs", "tmpfs", "-o", "mode=755", self.root / "run")
        self._mount("-t", "tmpfs", "tmpfs", "-o", "mode=1777", self.root / "tmp")
        for each in ("proc", "dev"):
            self._mount("--rbind", f"/{each}", self.root / each)
        (self.root / "usr/sbin/policy-rc.d").unlink(missing_ok=True)  # in containers, it forbids starting services
        (self.root / "var/lib/man-db/auto-update").unlink(missing_ok=True)  # slow and not needed here
        self.systemd = Systemd(self)
        self.before = self._changed()
        return self

    def __exit__(self, *_):
        self.systemd.close()
        subprocess.run(["umount", "--recursive", "--lazy", self.root], check=True)
        subprocess.run(["umount", self.layers], check=True)

    @staticmethod
    def _mount(*arguments):
        subprocess.run(["mount", *map(str, arguments)], check=True)

    def run(self, *command, check=True, **options):
        """Run a command on the machine as root. Returns the result of subprocess.run, with both outputs as one text."""
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run(["chroot", self.root, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, env=environment, cwd="/", **options)
        assert not check or done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}"
        return done

    def install(self, deb, *options):
        inside = pathlib.Path("tmp") / deb.name
        (self.root / inside).write_bytes(deb.read_bytes())
        return self.run("dpkg", "--force-unsafe-io", *options, "--install", f"/{inside}").stdout

    def _changed(self):
        """The files that differ from this machine's: paths without the leading slash."""
        upper, found = self.layers / "upper", set()
        for directory, names, files in os.walk(upper):
            inside = pathlib.Path(directory).relative_to(upper)
            found.update(str(inside / name) for name in files)
            found.update(str(inside / name) for name in names if not (pathlib.Path("/") / inside / name).exists())
        return found

    def left_behind(self):
        """The files added since the machine was created, except common bookkeeping."""
        return {path for path in self._changed() - self.before
                if not path.startswith(BOOKKEEPING) and os.path.lexists(self.root / path)}
