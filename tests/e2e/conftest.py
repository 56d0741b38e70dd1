"""Fixtures: one Kafka for the whole run, an installation of Gatepost for each test or each file of tests."""

import pathlib
import signal
import sys

import confluent_kafka
import pytest
from xdist.workermanage import NodeManager

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / name) for name in ("kafka", "faults", "e2e/lib")]

from cluster import Cluster
from fake_service import FakeService
from framing import Echo
from installation import BUILD, PLAIN_BUILD, Installation

# Fixtures of the tests of gatepost doctor.
pytest_plugins = ["checkup"]

STOP_SECONDS = 90


def pytest_configure(config):
    # Fixtures then end what they started, as they do on an interrupt.
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("ended by SIGTERM", returncode=143))
    # A shell's background job ignores SIGINT, and what it starts would inherit that. It does not inherit a handler.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: None)
    # Nor are workers of pytest-xdist killed while they do so.
    NodeManager.EXIT_TIMEOUT = STOP_SECONDS


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """Give each worker of pytest-xdist the broker, which the controller starts for the first one and stops at the end."""
    if not hasattr(node.config, "shared_broker"):
        node.config.shared_broker = Cluster()
        node.config.add_cleanup(node.config.shared_broker.stop)
        node.config.shared_broker.start()
    node.workerinput["broker"] = str(node.config.shared_broker.directory)


def pytest_sessionstart(session):
    programs = ("gatepostd", "gatepost", "gatepost-sandbox", "framing-echo", "framing-verdicts")
    missing = [name for name in programs if not (BUILD / name).exists()]
    if missing and not session.config.option.collectonly:
        pytest.exit(f"{BUILD} has no {' and no '.join(missing)}; tests/run builds them", returncode=2)


# The files that take longest come first, so that they do not run alone at the end.
LONG_FILES = ["test_partitions", "test_release_once", "test_quarantine", "test_edge_clients", "test_audit_limits", "test_lost_responses",
              "test_tail", "test_subscriptions", "test_reload", "test_acl", "test_scarcity", "test_systemd", "test_kafka_away",
              "test_spool", "test_spool_commands", "test_edge_memory", "test_examples", "test_router_returns", "test_reload_load", "test_three_brokers", "test_disaster",
              "test_doctor"]


def pytest_collection_modifyitems(items):
    def rank(item):
        return LONG_FILES.index(item.path.stem) if item.path.stem in LONG_FILES else len(LONG_FILES)
    items.sort(key=rank)


@pytest.fixture(scope="session")
def broker(request):
    """A Kafka of one node, shared by all tests: under pytest-xdist, by all workers."""
    if hasattr(request.config, "workerinput"):
        yield Cluster.attach(request.config.workerinput["broker"])
        return
    with Cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def own_broker():
    """A Kafka of a file's own, for tests that take it away."""
    with Cluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def echo():
    """A server of which tests see what its handler gets."""
    with Echo() as echo:
        yield echo


@pytest.fixture
def service():
    """A fake service, which misbehaves as the test wants."""
    with FakeService() as service:
        yield service


@pytest.fixture(scope="session")
def plain_build():
    assert (PLAIN_BUILD / "gatepostd").exists(), f"{PLAIN_BUILD} has no gatepostd; tests/run builds it"
    return PLAIN_BUILD


@pytest.fixture
def installation(broker, tmp_path):
    """An installation of the test's own, topics not yet created."""
    each = Installation(tmp_path, broker.bootstrap)
    yield each
    each.remove()


@pytest.fixture
def offline(tmp_path):
    """An installation whose brokers do not answer, for what needs none."""
    each = Installation(tmp_path, "127.0.0.1:9")
    yield each
    each.clean_up()


@pytest.fixture(scope="module")
def shared(broker, tmp_path_factory):
    """An installation that the tests of one file share."""
    each = Installation(tmp_path_factory.mktemp("shared"), broker.bootstrap)
    yield each
    each.remove()


@pytest.fixture(scope="session")
def new_library(tmp_path_factory):
    """The environment in which a program uses the librdkafka of the tests' own client, which is newer than the system's."""
    packages = pathlib.Path(confluent_kafka.__file__).parents[1]
    found = next((packages / "confluent_kafka.libs").glob("librdkafka-*.so.1"))
    directory = tmp_path_factory.mktemp("librdkafka")
    (directory / "librdkafka.so.1").symlink_to(found)
    return {"LD_LIBRARY_PATH": str(directory)}
