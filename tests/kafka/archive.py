"""The classes of a broker as a JVM has loaded them once: with this archive others start a third quicker. Made by the first
that asks, by running a broker for nothing else, and kept in build/kafka beside the jars."""

import fcntl
import pathlib

import jars


def making(path):
    """Options for a JVM that writes an archive when it ends."""
    return [f"-XX:ArchiveClassesAtExit={path}"]


def _path():
    return pathlib.Path(jars.class_path()).parent.with_suffix(".jsa")


def options():
    """Options for a JVM; none before there is an archive. Java ignores an archive that does not fit."""
    path = _path()
    return [f"-XX:SharedArchiveFile={path}", "-Xshare:auto"] if path.exists() else []


def ensure(make):
    """Have an archive: make(path) makes it."""
    path = _path()
    with open(jars.CACHE / "archive-lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            scratch = path.with_suffix(".new")
            make(scratch)
            scratch.rename(path)
