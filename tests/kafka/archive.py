"""A class data sharing archive of the broker's classes, with which a JVM starts a third faster. The first cluster makes it
by running a broker once, and keeps it in build/kafka beside the jars."""

import fcntl
import pathlib

import jars


def making(path):
    """Options for a JVM that writes an archive when it exits."""
    return [f"-XX:ArchiveClassesAtExit={path}"]


def _path():
    return pathlib.Path(jars.class_path()).parent.with_suffix(".jsa")


def options():
    """Options for a JVM; none if there is no archive. Java ignores an archive that does not match."""
    path = _path()
    return [f"-XX:SharedArchiveFile={path}", "-Xshare:auto"] if path.exists() else []


def ensure(make):
    """Make the archive with make(path), unless it exists."""
    path = _path()
    with open(jars.CACHE / "archive-lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            scratch = path.with_suffix(".new")
            make(scratch)
            scratch.rename(path)
