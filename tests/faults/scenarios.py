"""The scenarios: their world, their nemesis, and how often it acts."""

import dataclasses

import broker_nemeses
import nemeses
import spool_nemeses
import state_nemeses
from world import PAIRS, SINGLE, Setup


@dataclasses.dataclass(frozen=True)
class Scenario:
    name: str
    nemesis: type  # None: no faults
    short: int  # acts in the short form; 0: not part of it
    long: int  # acts in a round of the long form
    rounds: int  # rounds in the long form
    setup: Setup = Setup()
    deliveries: int = 0  # acts are repeated until this many deliveries are accepted


PROXIED = Setup(proxied=True)
THREE = Setup(brokers=3)
# Files are written after a sixteenth of the window.
STATE = Setup(state=True, window=20, tolerance=5, refuses=True)
SCENARIOS = {each.name: each for each in [
    Scenario("kill", nemeses.Kill, 8, 110, 9, deliveries=100000),
    Scenario("kill-routers", nemeses.KillRouters, 0, 100, 1),
    Scenario("zombies", nemeses.Zombies, 4, 30, 8, Setup(routers=4)),
    Scenario("crash-points", nemeses.CrashPoints, 0, 110, 5),
    Scenario("broker", nemeses.Brokers, 2, 35, 3),
    Scenario("three-brokers", nemeses.Brokers, 0, 40, 2, THREE),
    Scenario("two-of-three", nemeses.TwoOfThree, 0, 20, 1, THREE),
    Scenario("responses", nemeses.Responses, 10, 110, 2, PROXIED),
    Scenario("late-commits", nemeses.LateCommits, 4, 40, 1, PROXIED),
    Scenario("connections", nemeses.Connections, 0, 40, 1, PROXIED),
    Scenario("membership", nemeses.Membership, 0, 30, 1),
    Scenario("clock", nemeses.Clock, 0, 25, 1, Setup(refuses=True)),
    Scenario("reload", nemeses.Reload, 20, 150, 2, Setup(tls=True, has_extra=True), deliveries=50000),
    Scenario("reload-one", nemeses.Reload, 0, 150, 2, Setup(receivers=1, both=True, has_extra=True), deliveries=50000),
    Scenario("restore", nemeses.Restore, 5, 30, 20, Setup(window=20, tolerance=5, refuses=True)),
    Scenario("mix", nemeses.Mix, 8, 40, 20),
    Scenario("split", nemeses.Split, 4, 40, 20, Setup(split=True, has_extra=True, rate=200, audited=False)),
    Scenario("lookups", broker_nemeses.Lookups, 6, 60, 20, PROXIED),
    Scenario("offline", broker_nemeses.Offline, 1, 6, 20, Setup(brokers=3, layout=SINGLE, ack_seconds=1, rate=60)),
    Scenario("unclean", broker_nemeses.Unclean, 1, 3, 20, Setup(brokers=3, layout=PAIRS, ack_seconds=2, rate=200, audited=False)),
    Scenario("links", broker_nemeses.Links, 0, 12, 20, Setup(brokers=3, proxied=True, internal=True, ack_seconds=2, rate=200)),
    Scenario("full-disk", broker_nemeses.FullDisk, 0, 3, 20, Setup(brokers=3, small_disk=64, ack_seconds=2, rate=200)),
    Scenario("spool", spool_nemeses.Outages, 2, 60, 5, Setup(spool=True, ack_seconds=1), deliveries=40000),
    Scenario("no-spool", spool_nemeses.Outages, 0, 60, 1, Setup(ack_seconds=1)),
    Scenario("spool-disk", spool_nemeses.FailingDisk, 1, 100, 1, Setup(spool=True, ack_seconds=1)),
    Scenario("state-kill", nemeses.KillRouters, 0, 100, 2, STATE),
    Scenario("state-restore", nemeses.Restore, 0, 30, 5, STATE),
    Scenario("state-crash", state_nemeses.StateCrashes, 11, 110, 6, STATE),
    Scenario("state-damage", state_nemeses.StateDamage, 10, 100, 10, STATE),
    Scenario("state-zombies", nemeses.Zombies, 0, 30, 1, dataclasses.replace(STATE, routers=4)),
    Scenario("state-broker", nemeses.Brokers, 0, 35, 1, STATE),
    Scenario("state-membership", nemeses.Membership, 0, 30, 1, STATE),
    Scenario("everywhere", None, 0, 0, 1, Setup(receivers=3, everywhere=True), deliveries=10000),
]}
