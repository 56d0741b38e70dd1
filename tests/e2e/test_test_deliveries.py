"""The test deliveries of gatepost doctor: no events, no accepted deliveries of a source, nothing that audit counts."""

from audit_side import audit
from checkup import by_sockets, examine, expect_well, file_of, status_of
from signing import Delivery


def test_test_deliveries_never_become_events_and_audit_leaves_them_out(installation, running):
    for _ in range(2):
        expect_well(examine(installation, file_of(running)))
    running.accept()
    installation.kafka.wait_until_routed()
    assert len(installation.kafka.read()) == 1 and running.metric("gatepost_test_deliveries_total") == 2
    result = audit(installation, config=file_of(running))
    assert result.faults == (0, 0, 0) and result.report["expected"] == 1


def test_test_deliveries_are_no_accepted_deliveries_of_the_source(installation, running):
    expect_well(examine(installation, file_of(running)))
    running.accept(Delivery())
    requests = status_of(running)["requests"]["invoicing"]
    assert (requests["accepted"], requests["probe"]) == (1, 2)  # the GET of the step `listen` is a probe, too


def test_kind_may_have_the_name_of_the_test_deliveries(installation, stopped):
    stopped.config["source invoicing"]["kind"] = "/gatepost.doctor"
    daemon = stopped.start().wait_until_ready()
    expect_well(examine(installation, file_of(daemon)))
    assert daemon.metric("gatepost_quarantined_total") == 0


def test_test_deliveries_to_another_machine_never_become_events(installation):
    """By --to, to a receiver whose router is elsewhere."""
    installation.create_topics()
    receiver = installation.start(by_sockets(installation, "receiver") )
    router = installation.start(by_sockets(installation, "router"))
    receiver.config["receiver"]["listen"] = ["127.0.0.1:0"]
    receiver.stop()
    receiver.restart()
    expect_well(examine(installation, file_of(router), "--to", f"http://{receiver.address}"))
    assert installation.kafka.read() == [] and router.metric("gatepost_test_deliveries_total") == 1
