"""Memory, descriptors and room on disk run out: never a wrong 200, and everything that was accepted is published once.

Memory fails by a preloaded allocator, which needs a build without sanitizers: tests/run makes it in build/plain, and
GATEPOST_PLAIN_BUILD names another."""

import pytest

import preload
import scarcity
from installation import BUILD


def assert_clean(report):
    print(report)
    assert report.is_clean and report.passes, str(report)


@pytest.mark.parametrize("n", [1, preload.FOREVER], ids=["one", "all that follow"])
def test_any_allocation_of_its_own_may_fail(broker, plain_build, n):
    assert_clean(scarcity.own_allocations(broker, plain_build, n=n))


def test_half_requests_make_room_when_descriptors_run_out(broker):
    assert_clean(scarcity.descriptors(broker, BUILD))


def test_log_without_room_disturbs_nothing(broker):
    assert_clean(scarcity.full_log(broker, BUILD))


@pytest.mark.skipif(not scarcity.may_mount(), reason="mounting a small disk is not permitted")
def test_kafka_without_room_loses_and_repeats_nothing():
    assert_clean(scarcity.full_kafka_disk(None, BUILD))
