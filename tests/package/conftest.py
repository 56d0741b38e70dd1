"""Fixtures: the release, the package, and a machine to install it on. tests/package/run creates the first two."""

import fcntl
import pathlib
import socket
import struct
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "e2e" / "lib")]

from machine import Machine

WORK = ROOT / "build" / "package"
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def pytest_sessionstart(session):
    """Set up the new network namespace: nothing outside is reachable, and all ports are free."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def only(pattern, directory=WORK):
    found = sorted(directory.glob(pattern))
    assert len(found) == 1, f"{directory} has {found} for {pattern}; tests/package/run creates it"
    return found[0]


@pytest.fixture(scope="session")
def tarball():
    return only("gatepost-*.tar.gz")


@pytest.fixture(scope="session")
def deb():
    return only("gatepost_*.deb", WORK / "first")


@pytest.fixture
def machine(tmp_path):
    with Machine(tmp_path) as machine:
        yield machine
