"""The daemon's system calls, compared with those that its unit allows, because the tests run without systemd."""

import pathlib
import re
import signal
import subprocess

import pytest

from installation import PLAIN_BUILD

SERVICE = pathlib.Path(__file__).parents[2] / "systemd" / "service.inc"
# Calls that start the program or are made by strace itself.
OF_OTHERS = {"execve", "exit_group", "restart_syscall"}


def members(group):
    """The system calls of a group such as @system-service, including nested groups."""
    output = subprocess.run(["systemd-analyze", "syscall-filter", group], stdout=subprocess.PIPE, text=True,
                            check=True).stdout
    found = set()
    for name in re.findall(r"^    ([@\w-]+)$", output, re.M):
        found |= members(name) if name.startswith("@") else {name}
    return found


def allowed():
    """Evaluate the lines of SystemCallFilter: each adds the calls it names, or removes them if it begins with ~."""
    calls = set()
    for line in re.findall(r"^SystemCallFilter=(.*)$", SERVICE.read_text(), re.M):
        named = {call for name in line.lstrip("~").split()
                 for call in (members(name) if name.startswith("@") else {name})}
        calls = calls - named if line.startswith("~") else calls | named
    return calls


@pytest.fixture
def traced(installation, tmp_path):
    """A daemon whose system calls are written to a file."""
    program = tmp_path / "traced"
    program.write_text(f'#!/bin/sh\nexec strace -D -f -qq -o {tmp_path}/calls {PLAIN_BUILD}/gatepostd "$@"\n')
    program.chmod(0o755)
    installation.create_topics()
    daemon = installation.daemon()
    daemon.program = program
    return daemon


def test_unit_allows_every_system_call_of_the_daemon(traced, tmp_path):
    traced.start().wait_until_ready()
    for _ in range(20):
        traced.accept()
    traced.process.send_signal(signal.SIGHUP)
    traced.wait_for_log("configuration reloaded")
    traced.stop()
    calls = set(re.findall(r"^\d+ +(\w+)\(", (tmp_path / "calls").read_text(), re.M))
    assert {"epoll_wait", "accept4", "sendmsg"} <= calls  # strace worked
    assert "prctl(PR_SET_DUMPABLE, SUID_DUMP_DISABLE" in (tmp_path / "calls").read_text()  # no core dumps with secrets
    assert calls - allowed() - OF_OTHERS == set()


def test_main_threads_of_librdkafka_may_wake_late(installation):
    """Otherwise they are busy for up to a millisecond before each of their timers: two thirds of an idle daemon's time."""
    def slack(thread):
        return int(pathlib.Path(f"/proc/{thread}/timerslack_ns").read_text())

    installation.create_topics()
    daemon = installation.start()
    tasks = pathlib.Path(f"/proc/{daemon.process.pid}/task")
    found = {(task / "comm").read_text().strip(): slack(task.name) for task in tasks.iterdir()}
    assert found["rdk:main"] == 1_000_000 and found["gatepostd"] < 1_000_000, found
