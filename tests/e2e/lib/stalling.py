"""Stops a process, or single threads of it, as a debugger does."""

import contextlib
import ctypes
import os
import pathlib
import signal

import waiting

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
SECONDS = 30
_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


def _ptrace(request, thread):
    if _libc.ptrace(request, thread, None, None) == -1:
        raise OSError(ctypes.get_errno(), f"ptrace({request:#x}, {thread})")


def threads(pid):
    """The process's threads: {name: id}."""
    return {(task / "comm").read_text().strip(): int(task.name) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()}


def _state(pid, thread):
    return pathlib.Path(f"/proc/{pid}/task/{thread}/stat").read_text().rpartition(")")[2].split()[0]


def stop(pid):
    """Stop all threads by SIGSTOP, until SIGCONT. A busy machine takes a while to do so."""
    os.kill(pid, signal.SIGSTOP)
    waiting.until(lambda: {_state(pid, task.name) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()} == {"T"}, SECONDS,
                  "all threads to stop")


@contextlib.contextmanager
def stalled_thread(pid, name):
    """Stop the thread with this name for the duration of the block."""
    thread = threads(pid)[name]
    _ptrace(PTRACE_SEIZE, thread)
    _ptrace(PTRACE_INTERRUPT, thread)
    waiting.until(lambda: _state(pid, thread) == "t", SECONDS, f"{name} to stop")
    try:
        yield
    finally:
        _ptrace(PTRACE_DETACH, thread)
