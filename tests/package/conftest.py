"""Fixtures: the release, which tests/package/run makes."""

import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "package"


@pytest.fixture(scope="session")
def tarball():
    found = sorted(WORK.glob("gatepost-*.tar.gz"))
    assert len(found) == 1, f"{WORK} has {found}; tests/package/run makes one"
    return found[0]
