"""Fixtures: a Kafka, and an installation of Gatepost on it."""

import pathlib
import sys

import pytest

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / name) for name in ("kafka", "e2e/lib", "bench")]

from cluster import Cluster
from installation import Installation


@pytest.fixture(scope="session")
def broker():
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def installation(broker, tmp_path):
    each = Installation(tmp_path, broker.bootstrap)
    yield each
    each.clean_up()
