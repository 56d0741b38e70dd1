"""An upgrade and a downgrade in the order of gatepost-guide(7) under load. Another build serves as the other version."""

import waiting
from installation import PLAIN_BUILD
from load import Load
from tally import assert_exactly_once

RATE = 100


def change(installation, build, daemons, in_balancer, load):
    """Check all daemons; then remove each from the balancer, stop it, install, start it, wait until ready, and add it back."""
    installation.build = build
    for daemon in daemons:
        done = installation.gatepost("doctor", "--no-send", config=daemon.config)
        assert (done.returncode, done.stderr) == (0, ""), done
    for daemon in daemons:
        is_receiver = daemon in in_balancer
        if is_receiver:
            address = daemon.address
            in_balancer.remove(daemon)
            waiting.until(lambda: not load.is_sending_to(address), 30, "the last answers")
        daemon.stop()
        daemon.program = build / "gatepostd"
        daemon.restart()
        if is_receiver:
            in_balancer.append(daemon)


def test_upgrade_and_downgrade_neither_lose_nor_refuse_deliveries(installation, plain_build):
    installation.create_topics(partitions=4)
    old = installation.build
    routers = [installation.start(installation.config("router")) for _ in range(2)]
    receivers = [installation.start(installation.config("receiver")) for _ in range(2)]
    in_balancer = list(receivers)
    load = Load(lambda: [daemon.address for daemon in in_balancer], threads=3, rate=RATE, keep=False).start()
    change(installation, PLAIN_BUILD, [*routers, *receivers], in_balancer, load)
    change(installation, old, [*receivers, *routers], in_balancer, load)
    load.stop()
    installation.kafka.wait_until_routed()
    assert len(load.accepted) > RATE and set(load.answers) == {200}, load.answers
    assert_exactly_once(installation.kafka, load.accepted)
    assert installation.gatepost("audit").returncode == 0
