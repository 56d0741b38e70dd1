"""Nemeses of the brokers: lost answers to lookups, offline partitions, broken links, unclean elections, full disks."""

import re
import time

import confluent_kafka
from confluent_kafka import ElectionType, TopicPartition

import waiting
from checker import Cut
from nemeses import Nemesis
from rules import CUT, KEEP

LOOKUPS = ("Fetch", "OffsetFetch", "ListOffsets", "FindCoordinator", "Metadata", "OffsetForLeaderEpoch")
PROGRESS_SECONDS = 45  # within which unaffected partitions must progress; a session may expire meanwhile
ELECTION_SECONDS = 60


class Lookups(Nemesis):
    """Answers to Fetch, OffsetFetch, ListOffsets, FindCoordinator, Metadata or OffsetForLeaderEpoch are lost or delayed, while
    routers restart, which is when most of these requests are made."""
    pause = (0.2, 1.0)

    def act(self):
        api = self.rng.choice(LOOKUPS)
        if self.rng.random() < 0.4:
            of = self.rng.choice(("request", "response"))
            rule = self.world.proxies.delay(api, self.rng.uniform(0.3, 6), of=of, times=self.rng.randint(1, 3))
            what = f"delayed {api}"
        else:
            rule = self.world.proxies.lose_response(api, self.rng.choice((CUT, KEEP)), times=self.rng.randint(1, 3))
            what = f"lost a response to {api}"
        if api not in ("Fetch", "Metadata") or self.rng.random() < 0.5:
            self._restart_router()
        if rule.wait(3 if api == "OffsetForLeaderEpoch" else 15):  # only newer versions of librdkafka send it
            self.note(what)
        rule.end()

    def _restart_router(self):
        daemon = self.rng.choice(self.world.routers)
        if self.rng.random() < 0.5:
            self.world.kill(daemon)
        elif daemon.is_running():
            daemon.stop()
        self.world.revive(daemon)


class BrokerNemesis(Nemesis):
    """A nemesis that affects single partitions of `deliveries`."""

    def _partitions(self):
        topic = self.world.kafka.deliveries
        return self.world.kafka.admin.list_topics(topic, timeout=30).topics[topic].partitions

    def _await_routed(self, partitions, what, seconds=PROGRESS_SECONDS):
        """Note an error unless all current records of these partitions are routed within this time."""
        ends = self.world.wait_for_ends(partitions)
        begun = time.monotonic()
        while True:
            committed = self.world.committed()
            if all(committed.get(each, 0) >= end for each, end in ends.items()):
                self.world.log(f"{what}: routed after {time.monotonic() - begun:.1f} s")
                return
            if time.monotonic() - begun > seconds:
                self.world.note_wrong(f"{what}: unaffected partitions were not routed within {seconds} s: "
                                      f"committed {committed}, ends {ends}\n{self.world.describe()}")
                return
            time.sleep(0.2)

    def _await_accepted(self, what, n, seconds=PROGRESS_SECONDS):
        before, begun = self.world.sender.n_accepted(), time.monotonic()
        while self.world.sender.n_accepted() < before + n:
            if time.monotonic() - begun > seconds:
                self.world.note_wrong(f"{what}: {self.world.sender.n_accepted() - before} of {n} deliveries were accepted within "
                                      f"{seconds} s\n{self.world.describe()}")
                return
            time.sleep(0.2)


class Offline(BrokerNemesis):
    """The only replica of some partitions of `deliveries` is down: the other partitions progress, even if a router restarts,
    and later everything is routed."""
    pause = (1.0, 3.0)

    def act(self):
        number = self.rng.choice(list(self.world.cluster.nodes))
        self.world.cluster.kill(number)
        self.note("killed the only replica")
        partitions = self._partitions()
        healthy = [each for each, found in partitions.items() if number not in found.replicas]
        what = f"partitions {sorted(set(partitions) - set(healthy))} offline"
        self.world.log(what)
        if self.rng.random() < 0.6:
            daemon = self.rng.choice(self.world.routers)
            self.world.kill(daemon)
            self.world.revive(daemon)
            self.note("restarted a router meanwhile")
        time.sleep(self.rng.uniform(1, 4))
        self._await_accepted(what, 20)
        self._await_routed(healthy, what)
        self.world.cluster.start_node(number)
        self._await_routed(partitions, "all partitions online again")
        for daemon in self.world.daemons:
            self.world.revive(daemon)


class Unclean(BrokerNemesis):
    """A follower dies, its leader acknowledges records alone and dies, and the follower becomes leader without these records.
    They are reported as lost; records that are acknowledged later must be published."""
    pause = (2.0, 4.0)

    def act(self):
        partition, found = self.rng.choice(sorted(self._partitions().items()))
        leader = found.leader
        follower = next(each for each in found.replicas if each != leader)
        self.world.cluster.kill(follower)
        self.world.log(f"partition {partition}: follower {follower} is dead, {leader} leads alone")
        waiting.until(lambda: self._partitions()[partition].isrs == [leader], ELECTION_SECONDS, "a shrunk ISR")
        had = self.world.wait_for_ends([partition])[partition] + self.rng.randint(20, 100)
        waiting.until(lambda: self.world.wait_for_ends([partition])[partition] >= had, ELECTION_SECONDS,
                      lambda: f"records before {had} that only {leader} has")
        if self.rng.random() < 0.3:
            daemon = self.rng.choice(self.world.routers)
            self.world.kill(daemon)
            self.note("the router was away meanwhile")
        else:
            daemon = None
        self.world.cluster.kill(leader)
        at = time.time()
        self.world.cluster.start_node(follower)
        self._elect()
        self.world.cuts.append(Cut(at))
        self.note("unclean election")
        self.world.log(f"partition {partition}: {follower} leads, until {self.world.wait_for_ends([partition])[partition]}; "
                       f"{leader} led beyond {had}")
        if daemon:
            self.world.revive(daemon)
        self._await_accepted("after an unclean election", 100)
        time.sleep(self.rng.uniform(0, 4))
        self.world.cluster.start_node(leader)
        self._await_routed(self._partitions(), "after an unclean election")
        for daemon in self.world.daemons:
            self.world.revive(daemon)

    def _elect(self):
        """Elect a leader in each partition, even one that is not in sync."""
        topic = self.world.kafka.deliveries

        def all_led():
            headless = [number for number, found in self._partitions().items() if found.leader < 0]
            if headless:
                wanted = [TopicPartition(topic, number) for number in headless]
                try:
                    self.world.kafka.admin.elect_leaders(ElectionType.UNCLEAN, wanted, request_timeout=10).result()
                except confluent_kafka.KafkaException as error:
                    self.world.log(f"no election yet: {error}")
            return not headless
        waiting.until(all_led, ELECTION_SECONDS, "leaders", step=0.5)


class Links(BrokerNemesis):
    """Links fail between clients and a broker, between brokers, or both, for one broker or for a pair."""
    pause = (1.0, 3.0)

    def act(self):
        self.rng.choice((self._clients, self._clients, self._followers, self._isolate, self._pair, self._cut))(
            self.rng.choice(list(self.world.cluster.nodes)))

    def _for_a_while(self, freeze, thaw, what):
        freeze()
        self.note(what)
        time.sleep(self.rng.uniform(0.5, 15))
        thaw()

    def _clients(self, node):
        proxies = self.world.proxies
        self._for_a_while(lambda: proxies.freeze(node), lambda: proxies.thaw(node), "a broker unreachable for clients")

    def _followers(self, node):
        internal = self.world.internal
        self._for_a_while(lambda: internal.freeze(node), lambda: internal.thaw(node), "a broker unreachable for brokers")

    def _isolate(self, node):
        both = self.world.proxies, self.world.internal
        self._for_a_while(lambda: [each.freeze(node) for each in both], lambda: [each.thaw(node) for each in both],
                          "an isolated broker")

    def _pair(self, node):
        """A broker does not replicate from one other broker."""
        other = self.rng.choice([each for each in self.world.cluster.nodes if each != node])
        rule = self.world.internal.hold_request(
            "Fetch", KEEP, match=lambda request: request.node == node and request.client.startswith(f"broker-{other}-fetcher"))
        if rule.wait(10):
            self.note("a broker that does not replicate from another")
            time.sleep(self.rng.uniform(0.5, 12))
        rule.end()
        rule.release()

    def _cut(self, node):
        self.world.proxies.cut(node)
        self.world.internal.cut(node)
        self.note("cut all connections to a broker")


class FullDisk(BrokerNemesis):
    """The disk with half of a broker's partitions is full; then space is freed and the broker restarted. The others continue."""
    pause = (3.0, 6.0)
    failed = re.compile(r"No space left|offline|InternalError|Halting|Stopping serving")

    def act(self):
        number, disk = self.world.cluster.small_disk
        node = self.world.cluster.nodes[number]
        self._repair(node)
        written = node.log.stat().st_size
        balloon = disk / "balloon"
        with open(balloon, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(1 << 16))
            except OSError as error:
                self.world.log(f"the disk of broker {number} is full: {error}")

        def has_failed():
            with open(node.log, "rb") as log:
                log.seek(written)
                return self.failed.search(log.read().decode(errors="replace")) or not node.is_running()
        waiting.until(has_failed, 60, lambda: f"broker {number} to detect its full disk\n{node.log_tail()}")
        self.note("full disk" if node.is_running() else "full disk, broker ended")
        self._await_accepted(f"the disk of broker {number} is full", 200)
        time.sleep(self.rng.uniform(0, 5))
        balloon.unlink()
        self._restart(node)
        self._await_routed(self._partitions(), "the broker with the full disk is back")

    def _repair(self, node):
        """Restart the broker if its small disk was full, even without the balloon: topics are deleted a minute late."""
        if self.failed.search(node.log_of_run()) or not node.is_running():
            self.world.log(f"broker {node.number} has lost its small disk before; starting it again")
            self._restart(node)
            self._await_routed(self._partitions(), "the broker with the small disk is back")

    def _restart(self, node):
        if node.is_running():
            self.world.cluster.kill(node.number)
        self.world.cluster.start_node(node.number)
