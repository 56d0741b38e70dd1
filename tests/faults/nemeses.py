"""Nemeses: each causes faults repeatedly while deliveries are sent, and undoes them in end().

The pauses here do not wait for a condition: they set the pace of the faults."""

import math
import re
import signal
import time

import deliveries as texts
import waiting
from preload import FakeClock
from world import SESSION_SECONDS, TRANSACTION_SECONDS

ROUTER_POINTS = ("after-poll", "before-decision", "after-produce", "before-offsets", "before-commit", "after-commit",
                 "on-assigned", "on-revoked")
RECEIVER_POINTS = ("before-append", "after-append", "before-answer")
RARE_POINTS = {"on-assigned": 1, "on-revoked": 1, "before-decision": 3}  # maximum passes of a crash point before the crash
CRASH_SECONDS = 30
TRANSACTION_APIS = ("AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn")
HOUR = 3600
EX_TEMPFAIL = 75


class Nemesis:
    pause = (0.5, 1.5)  # seconds between two acts

    def __init__(self, world):
        self.world = world
        self.rng = world.rng
        self.done = {}  # number of actions by kind

    def note(self, what):
        self.done[what] = self.done.get(what, 0) + 1
        self.world.log(what)

    def end(self):
        pass


class Kill(Nemesis):
    """SIGKILL of receivers, routers, or one of each."""

    def act(self):
        victims = self.rng.choice(([self.rng.choice(self.world.routers)], [self.rng.choice(self.world.receivers)],
                                   [self.rng.choice(self.world.routers), self.rng.choice(self.world.receivers)]))
        for daemon in victims:
            self.world.kill(daemon)
            self.note(f"killed a {daemon.config['gatepost']['roles']}")
        time.sleep(self.rng.uniform(0, 0.3))
        for daemon in victims:
            self.world.revive(daemon)


class KillRouters(Nemesis):
    """SIGKILL of routers only."""

    def act(self):
        daemon = self.rng.choice(self.world.routers)
        self.world.kill(daemon)
        self.note("killed a router")
        self.world.revive(daemon)


class Zombies(Nemesis):
    """Routers are suspended until the group and the transaction coordinator have given them up, and then resumed."""
    pause = (1.0, 3.0)
    stopped_seconds = max(SESSION_SECONDS, TRANSACTION_SECONDS) + 2

    def __init__(self, world):
        super().__init__(world)
        self.due = {}  # time at which to resume each router

    def act(self):
        for daemon in [each for each, due in self.due.items() if due <= time.monotonic()]:
            self.world.resume(daemon)
            del self.due[daemon]
            self.note("resumed a zombie")
        candidates = [each for each in self.world.routers if each not in self.due]
        if len(candidates) > 1:
            daemon = self.rng.choice(candidates)
            self.world.revive(daemon)
            self.world.pause(daemon)
            self.due[daemon] = time.monotonic() + self.stopped_seconds + self.rng.uniform(0, 2)
            self.note("stopped a router")

    def end(self):
        while self.due:
            time.sleep(max(0.0, min(self.due.values()) - time.monotonic()))
            for daemon in [each for each, due in self.due.items() if due <= time.monotonic()]:
                self.world.resume(daemon)
                del self.due[daemon]
                self.note("resumed a zombie")


class CrashPoints(Nemesis):
    """A daemon dies at a chosen point of its code."""
    pause = (0.1, 0.5)
    points = ROUTER_POINTS + RECEIVER_POINTS

    def __init__(self, world):
        super().__init__(world)
        self.next = 0

    def act(self):
        point = self.points[self.next % len(self.points)]
        self.next += 1
        daemon = self.rng.choice(self.world.receivers if point in RECEIVER_POINTS else self.world.routers)
        self.world.kill(daemon)
        passages = RARE_POINTS.get(point, 30)
        daemon.environment["GATEPOST_CRASH_POINT"] = f"{point}:{self.rng.randint(1, passages)}"
        daemon.launch()
        self._provoke(point, daemon)
        waiting.until(lambda: not daemon.is_running(), CRASH_SECONDS,
                      lambda: f"{daemon.name} to die at {point}:\n{daemon.log}")
        daemon.wait_for_exit(-9)
        self.world.note_restart(daemon)
        self.note(f"died at {point}")
        del daemon.environment["GATEPOST_CRASH_POINT"]
        self.world.revive(daemon)

    def _provoke(self, point, daemon):
        """Partitions are revoked only when another router joins."""
        if point == "on-revoked":
            waiting.until(lambda: not daemon.is_running() or "partition assigned" in daemon.log, CRASH_SECONDS,
                          lambda: f"{daemon.name} to get partitions:\n{daemon.log}")
            newcomer = self.world.add_router()
            newcomer.start()
            waiting.until(lambda: not daemon.is_running(), CRASH_SECONDS, lambda: f"a rebalance:\n{daemon.log}")
            self.world.kill(newcomer)
            self.world.routers.remove(newcomer)


class Brokers(Nemesis):
    """Brokers are killed, suspended, or restarted one after the other, including the transaction coordinator."""
    pause = (1.0, 3.0)

    def act(self):
        acts = [self._kill, self._suspend]
        if len(self.world.cluster.nodes) > 1:
            acts += [self._move_coordinator, self._roll]
        self.rng.choice(acts)()

    def _some(self):
        return self.rng.choice(list(self.world.cluster.nodes))

    def _restart(self, number, what):
        self.world.cluster.kill(number)
        self.note(what)
        time.sleep(self.rng.uniform(0, 2))
        self.world.cluster.start_node(number)

    def _kill(self):
        self._restart(self._some(), "killed a broker")

    def _suspend(self):
        number = self._some()
        self.world.cluster.pause(number)
        self.note("stopped a broker")
        time.sleep(self.rng.uniform(0.5, 9))
        self.world.cluster.resume(number)

    def _move_coordinator(self):
        """Kill the leader of the partition with the state of a router's transactions."""
        router = self.rng.choice(self.world.routers)
        name = f"{self.world.kafka.group}-{router.config['gatepost']['instance']}"
        partitions = self.world.kafka.admin.list_topics("__transaction_state", timeout=30).topics["__transaction_state"].partitions
        leader = partitions[_java_hash(name) % len(partitions)].leader
        if leader in self.world.cluster.nodes:
            self._restart(leader, "killed the transaction coordinator")

    def _roll(self):
        for number in self.world.cluster.nodes:
            self._restart(number, "restarted one broker after the other")


def _java_hash(text):
    """Return Kafka's non-negative form of String.hashCode()."""
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value & 0x7FFFFFFF


class TwoOfThree(Nemesis):
    """Two of three brokers are suspended: nothing may be accepted meanwhile."""
    pause = (3.0, 5.0)

    def act(self):
        numbers = self.rng.sample(list(self.world.cluster.nodes), 2)
        for number in numbers:
            self.world.cluster.pause(number)
        self.note("stopped two of three brokers")
        time.sleep(1)  # let answers arrive that are already under way
        before = self.world.sender.counts()["answered_200"]
        time.sleep(self.rng.uniform(3, 6))
        wrong = self.world.sender.counts()["answered_200"] - before
        for number in numbers:
            self.world.cluster.resume(number)
        assert wrong == 0, f"{wrong} deliveries were accepted while two of three brokers were suspended"


class Responses(Nemesis):
    """Kafka processes a request, but its answer is lost or delayed."""
    pause = (0.2, 0.8)

    def act(self):
        api = self.rng.choice(("Produce", *TRANSACTION_APIS, *TRANSACTION_APIS))
        if self.rng.random() < 0.25:
            rule = self.world.proxies.delay(api, self.rng.uniform(0.3, 3))
            what = f"delayed a response to {api}"
        else:
            rule = self.world.proxies.lose_response(api)
            what = f"lost a response to {api}"
        if rule.wait(20):
            self.note(what)
        rule.end()


class LateCommits(Nemesis):
    """A request to commit is held back, its connection closed, and the request sent when the router has continued."""
    pause = (0.5, 2.0)

    def act(self):
        api = self.rng.choice(("EndTxn", "EndTxn", "TxnOffsetCommit"))
        rule = self.world.proxies.hold_request(api)
        if rule.wait(20):
            time.sleep(self.rng.choice((0.1, 0.3, 1, 3, TRANSACTION_SECONDS + 1)))
            if self.rng.random() < 0.3:
                self.world.kill(self.rng.choice(self.world.routers))
            rule.release()
            self.note(f"held back {api}")
        rule.end()
        for router in self.world.routers:
            self.world.revive(router)


class Connections(Nemesis):
    """All connections to a broker are cut, or no bytes pass for a while."""

    def act(self):
        node = self.rng.choice(list(self.world.cluster.nodes))
        if self.rng.random() < 0.6:
            self.world.proxies.cut(node)
            self.note("cut all connections to a broker")
        else:
            self.world.proxies.freeze(node)
            self.note("froze a connection")
            time.sleep(self.rng.uniform(0.5, 9))
            self.world.proxies.thaw(node)


class Membership(Nemesis):
    """Routers join and leave; there are one to four."""
    pause = (1.0, 4.0)
    most = 4

    def act(self):
        running = [each for each in self.world.routers if each.is_running()]
        if len(running) == 1 or (len(running) < self.most and self.rng.random() < 0.5):
            away = [each for each in self.world.routers if not each.is_running()]
            daemon = self.rng.choice(away) if away else self.world.add_router()
            self.world.revive(daemon)
            self.note("a router joined")
            return
        daemon = self.rng.choice(running)
        if self.rng.random() < 0.5:
            daemon.stop()
            self.note("a router left")
        else:
            self.world.kill(daemon)
            self.note("a router was killed")


class Clock(Nemesis):
    """The clocks of routers and receivers jump by an hour, and back."""
    pause = (1.0, 3.0)

    def __init__(self, world):
        super().__init__(world)
        self.clocks = {}
        for daemon in [*world.receivers, *world.routers]:
            world.kill(daemon)
            self.clocks[daemon] = FakeClock(daemon)
            world.revive(daemon)

    def act(self):
        """Check that a daemon exits with 75 when its clock is set back, and restart it."""
        daemon = self.rng.choice([*self.world.routers, self.world.receivers[0]])
        clock, role = self.clocks[daemon], daemon.config["gatepost"]["roles"]
        for seconds in self.rng.choice(((HOUR, 0), (-HOUR, 0))):
            if seconds < clock.seconds:
                clock.set(seconds)
                self.note(f"the clock of a {role} was set back")
                daemon.wait_for_exit(EX_TEMPFAIL)
                self.world.revive(daemon)
            else:
                clock.set(seconds)
                self.note(f"the clock of a {role} was set forward")
            time.sleep(self.rng.uniform(1, 4))


class Reload(Nemesis):
    """SIGHUP, with no change, other limits, a rotated secret, a renewed certificate, or a source added or removed; sometimes a
    router is killed afterwards."""
    pause = (0.05, 0.6)
    grace_seconds = 2  # time for which an old secret stays valid after the new one is configured

    def __init__(self, world):
        super().__init__(world)
        self.secrets = [0]  # numbers of the valid secrets
        self.rotated = 0.0
        self.has_extra = True

    def act(self):
        acts = [self._nothing, self._limits, self._secret, self._source, self._kill]
        if self.world.setup.tls:
            acts.append(self._certificate)
        self.rng.choice(acts)()

    def _some(self):
        return self.rng.sample(self.world.daemons, self.rng.randint(1, len(self.world.daemons)))

    def _reload(self, daemons, what):
        self.world.reload(daemons)
        self.done["reloads"] = self.done.get("reloads", 0) + len(daemons)
        self.note(what)

    def _nothing(self):
        self._reload(self._some(), "nothing new")

    def _limits(self):
        chosen = self._some()
        for daemon in chosen:
            daemon.config["router"]["max_batch"] = self.rng.choice((50, 500, 30000))
            if daemon in self.world.receivers:
                daemon.config["receiver"].update({"max_connections": self.rng.choice((1000, 4096)),
                                                  "idle_timeout": self.rng.choice(("5s", "60s"))})
        self._reload(chosen, "other limits")

    def _secret(self):
        """Add a new secret, or remove the old one some time after that."""
        if len(self.secrets) == 1:
            self.secrets = [self.secrets[0], self.secrets[0] + 1]
            self._write_secrets()
            self._reload(self.world.daemons, f"secret {self.secrets[1]} added")
            self.world.sender.sign_with(self.secrets[1])
            self.rotated = time.monotonic()
        elif time.monotonic() - self.rotated > self.grace_seconds:
            del self.secrets[0]
            self._write_secrets()
            self._reload(self.world.daemons, f"secret {self.secrets[0] - 1} removed")

    def _write_secrets(self):
        for daemon in self.world.daemons:
            for section in [name for name in daemon.config.sections if name.startswith("source ")]:
                daemon.config[section]["secret_file"] = [self.world.secret_file(daemon.config, each) for each in self.secrets]

    def _certificate(self):
        self.world.renew_certificates()
        self._reload(self.world.receivers, "certificate renewed")

    def _source(self):
        """Add a source to routers before receivers, or remove it from receivers first, and from routers when all is routed."""
        if self.has_extra:
            self.world.sender.send_extra(False)  # the service stops sending first
            if not self.world.setup.both:
                self._forget_source(self.world.receivers)
            else:
                time.sleep(1)  # let current attempts finish
            self.world.wait_until_routed_so_far()
            self._forget_source(self.world.routers)
            self.note("source removed")
        else:
            self.world.sender.send_extra(True)
            for daemons in (self.world.receivers,) if self.world.setup.both else (self.world.routers, self.world.receivers):
                for daemon in daemons:
                    daemon.config.source(texts.EXTRA_SOURCE)
                self._write_secrets()
                self.world.reload(daemons)
            self.note("source added")
        self.has_extra = not self.has_extra

    def _forget_source(self, daemons):
        for daemon in daemons:
            del daemon.config.sections["source extra"]
        self.world.reload(daemons)

    def _kill(self):
        daemon = self.rng.choice(self.world.routers)
        self._reload([daemon], "killed a router after a reload")
        time.sleep(self.rng.uniform(0, 0.5))
        self.world.kill(daemon)
        self.world.revive(daemon)

    def end(self):
        if not self.has_extra:
            self._source()


class Restore(Nemesis):
    """Routers are killed or suspended while they restore their dedup table, or leave the group; the window is short, so that
    ids expire all the time."""
    pause = (0.2, 2.0)
    restoring = re.compile(r" partition assigned .*reading_from=")

    def act(self):
        self.rng.choice((self._die_by_count, self._die_by_log, self._suspend, self._leave))(
            self.rng.choice(self.world.routers))

    def _begin_restore(self, daemon):
        self.world.kill(daemon)
        daemon.launch()
        waiting.until(lambda: self.restoring.search(daemon.log) or not daemon.is_running(), CRASH_SECONDS,
                      lambda: f"{daemon.name} to restore:\n{daemon.log}", step=0.002)

    def _die_by_count(self, daemon):
        self.world.kill(daemon)
        counts = (1, 2, 10, 50) if self.world.setup.state else (1, 2, 10, 100, 500, 1000, 2000)
        daemon.environment["GATEPOST_CRASH_POINT"] = f"after-poll:{self.rng.choice(counts)}"
        daemon.launch()
        waiting.until(lambda: not daemon.is_running(), CRASH_SECONDS, lambda: f"{daemon.name} to die:\n{daemon.log}")
        daemon.wait_for_exit(-signal.SIGKILL)
        del daemon.environment["GATEPOST_CRASH_POINT"]
        self.note("died within a restore, by count")
        self.world.revive(daemon)

    def _die_by_log(self, daemon):
        self._begin_restore(daemon)
        time.sleep(self.rng.uniform(0, 0.05))
        self.world.kill(daemon)
        self.note("killed within a restore")
        self.world.revive(daemon)

    def _suspend(self, daemon):
        self._begin_restore(daemon)
        time.sleep(self.rng.uniform(0, 0.05))
        self.world.pause(daemon)
        self.note("stopped within a restore")
        time.sleep(self.rng.uniform(0.5, SESSION_SECONDS + 4))
        self.world.resume(daemon)

    def _leave(self, daemon):
        """Make the other routers restore this router's partitions, then let it restore them itself."""
        if daemon.is_running():
            daemon.stop()
        self.note("a router left")
        time.sleep(self.rng.uniform(0.5, 3))
        self.world.revive(daemon)


class Mix(Nemesis):
    """Kills daemons, and releases records from quarantine: bad bodies return there, replays and second bodies become events."""
    pause = (0.2, 1.5)
    reasons = ("conflicting-body", "replayed-signature", "malformed-json", "missing-kind", "unknown-kind", "invalid-field")

    def act(self):
        if self.rng.random() < 0.6:
            reason = self.rng.choice(self.reasons)
            released = self.world.release("--reason", reason, *self.rng.choice(((), ("--since", "20s"))))
            self.note("released")
            self.world.log(f"released {released} {reason}")
            return
        daemon = self.rng.choice(self.world.daemons)
        self.world.kill(daemon)
        self.note(f"killed a {daemon.config['gatepost']['roles']}")
        self.world.revive(daemon)


class Split(Nemesis):
    """Receivers and routers have different configurations: bodies that only the receivers' max_body allows, a tolerance that
    only routers have, and a source that is added to routers late, and removed, with releases of its quarantined records."""
    pause = (0.3, 2.0)

    def __init__(self, world):
        super().__init__(world)
        world.may_lack["extra"] = math.inf
        self._know([], "no router knows the source")

    def _know(self, routers, what):
        """Configure the second source in these routers, and remove it from the others."""
        for daemon in self.world.routers:
            if daemon in routers:
                daemon.config.source(texts.EXTRA_SOURCE)
                daemon.config["source extra"]["secret_file"] = self.world.secret_file(daemon.config, 1)  # they do not use it
            else:
                daemon.config.sections.pop("source extra", None)
        self.world.reload(self.world.routers)
        self.note(what)

    def act(self):
        chance = self.rng.random()
        if chance < 0.4:
            daemon = self.rng.choice(self.world.daemons)
            self.world.kill(daemon)
            self.note(f"killed a {daemon.config['gatepost']['roles']}")
            self.world.revive(daemon)
        elif chance < 0.8:
            routers = self.rng.sample(self.world.routers, self.rng.randint(0, len(self.world.routers)))
            self._know(routers, f"{len(routers)} routers know the source")
        else:
            self.world.log(f"released {self.world.release('--reason', 'unknown-source')} of an unknown source")
            self.note("released")

    def end(self):
        """Configure the source in all routers, and release its records."""
        self.world.sender.send_extra(False)
        self._know(self.world.routers, "all routers know the source")
        self.world.wait_until_routed_so_far()
        self.world.may_lack["extra"] = time.time()
        while self.world.release("--reason", "unknown-source"):
            self.world.wait_until_routed_so_far()
        self.note("released")
        self.world.sender.send_extra(True)
