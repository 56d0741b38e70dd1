"""A substitute for systemd on a machine that does not run it: answers `systemctl` calls according to the installed units,
as far as the package's scripts and these tests need it, and records the calls."""

import fnmatch
import os
import shlex
import signal
import socket
import subprocess
import threading

SYSTEMCTL = """#!/bin/bash
exec 9>/run/systemctl.lock
flock 9
echo "$*" >/run/systemctl.calls
{ read -r status text; more=$(cat); } </run/systemctl.answers
[ -z "$text" ] || printf '%s\n' "$text" ${more:+"$more"}
exit "$status"
"""
STOP_SECONDS = 60
# The environment of a daemon with passed sockets (sd_listen_fds(3)): its own process ID, and sockets from 3 on.
PASS_SOCKETS = 'exec 3<&"$LISTEN_FROM"; LISTEN_PID=$$ exec "$@"'


class Systemd:
    def __init__(self, machine):
        self.machine, self.calls, self.sockets, self.processes, self.statuses = machine, [], {}, {}, {}
        run = machine.root / "run"
        (run / "systemd/system").mkdir(parents=True)  # indicates that systemd runs: sd_booted(3)
        systemctl = machine.root / "usr/bin/systemctl"
        systemctl.unlink()
        systemctl.write_text(SYSTEMCTL)
        systemctl.chmod(0o755)
        self.pipes = [run / "systemctl.calls", run / "systemctl.answers"]
        for pipe in self.pipes:
            os.mkfifo(pipe)
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def close(self):
        self.pipes[0].write_text("\n")
        self.thread.join()
        for unit in (*self.sockets, *self.processes):
            self._stop(unit)

    def _serve(self):
        while (call := self.pipes[0].read_text().strip()):
            self.calls.append(call)
            try:
                answer = self._answer([word for word in shlex.split(call)
                                       if word not in ("--", "--system", "--quiet", "--no-block", "--plain", "--no-legend")])
            except Exception as error:  # the caller must get an answer
                answer = f"1 {error!r}"
            self.pipes[1].write_text(f"{answer}\n")

    def _answer(self, words):
        """The exit status and the output of systemctl."""
        action, units = words[0], words[1:]
        if action in ("is-enabled", "is-active"):
            fits = self.enabled(units[0]) if action == "is-enabled" else self.active(units[0])
            return f"{0 if fits else 1} {action[3:] if fits else 'disabled' if action == 'is-enabled' else 'inactive'}"
        if action == "show":
            assert units[:2] == ["-p", "ExecStart"]
            return f"0 ExecStart={{ argv[]={self.settings(units[2])['ExecStart'][0]} ; ignore_errors=no }}"
        if action == "enable":
            now, units = "--now" in units, [unit for unit in units if unit != "--now"]
            units = [unit if "." in unit else f"{unit}.service" for unit in units]
            subprocess.run(["systemctl", f"--root={self.machine.root}", "enable", *units], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            action = "start" if now else "daemon-reload"
        loaded = [*self.sockets, *self.processes]
        units = [each for unit in units for each in (fnmatch.filter(loaded, unit) if "*" in unit else [unit])]
        if action == "list-units":
            return "0 " + "\n".join(f"{unit} loaded active running" for unit in units if self.active(unit))
        for unit in units if action in ("start", "stop", "restart", "try-restart") else []:
            active = self.active(unit)
            if active and action != "start":
                self._stop(unit)
            if action in ("start", "restart") and not (action == "start" and active) or action == "try-restart" and active:
                self._start(unit)
        return "0"

    def enabled(self, unit):
        wanted = (self.machine.root / "etc/systemd/system").glob("*.wants")
        return any(os.path.lexists(directory / unit) for directory in wanted)  # the link points into the machine's root

    def active(self, unit):
        return unit in self.sockets or unit in self.processes and self.processes[unit].poll() is None

    def settings(self, unit):
        """The settings of an installed unit, each with a list of values."""
        found = {}
        name, at, instance = unit.removesuffix(".service").partition("@")
        path = self.machine.root / "lib/systemd/system" / (f"{name}@.service" if at else unit)
        for line in path.read_text().replace("%i", instance).splitlines():
            name, equals, value = line.partition("=")
            if equals and not line.startswith("#"):
                found.setdefault(name.strip(), []).append(value.strip())
        return found

    def _start(self, unit):
        settings = self.settings(unit)
        if unit.endswith(".socket"):
            address, _, port = settings["ListenStream"][0].rpartition(":")
            self.sockets[unit] = socket.create_server((address, int(port)), backlog=int(settings["Backlog"][0]))
            return
        environment, keep = {"PATH": "/usr/sbin:/usr/bin"}, ()
        command = ["chroot", self.machine.root, "setpriv", f"--reuid={settings['User'][0]}",
                   f"--regid={settings['User'][0]}", "--init-groups", "--"]
        opener = unit.replace(".service", ".socket")
        if opener in self.sockets:
            keep = (self.sockets[opener].fileno(),)
            environment |= {"LISTEN_FDS": "1", "LISTEN_FDNAMES": self.settings(opener)["FileDescriptorName"][0],
                            "LISTEN_FROM": str(keep[0])}
            command += ["bash", "-c", PASS_SOCKETS, "bash"]
        with open(self.log, "ab") as log:
            self.processes[unit] = subprocess.Popen([*command, *shlex.split(settings["ExecStart"][0])], stderr=log,
                                                    stdin=subprocess.DEVNULL, env=environment, pass_fds=keep, cwd="/")

    @property
    def log(self):
        return self.machine.layers / "journal"

    def _stop(self, unit):
        if unit in self.sockets:
            self.sockets.pop(unit).close()
        elif unit in self.processes:
            process = self.processes[unit]
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            self.statuses[unit] = process.wait(STOP_SECONDS)
