"""Nemeses of receivers with a spool: outages of Kafka in which receivers are killed, and the same without a spool."""

import math
import time

import waiting
from nemeses import Nemesis
from preload import FailDisk

SPOOL_POINTS = ("spool-created", "spool-written", "spool-synced", "spool-ended", "spool-drained", "spool-removed",
                "before-append", "after-append", "before-answer")
OUTAGE_SECONDS = (1, 20)  # an outage; in the long form a few last up to LONG_SECONDS
LONG_SECONDS = 600
LONG_SHARE = 0.01
BACK_SECONDS = 120
FAILING_PER_THOUSAND = 60  # of the writes and syncs of a failing disk
POINT_SECONDS = 6  # a point that is not reached meanwhile is given up


class Outages(Nemesis):
    """Kafka is killed or suspended for 1 to 20 s, now and then for minutes, while receivers are killed at any moment, and at
    chosen places of the spool's code; they are killed while they drain as well."""
    pause = (0.5, 2.0)

    def act(self):
        [number] = self.world.cluster.nodes
        suspended = self.rng.random() < 0.3
        (self.world.cluster.pause if suspended else self.world.cluster.kill)(number)
        self.note("suspended Kafka" if suspended else "killed Kafka")
        self._kill_for(self._seconds())
        if suspended:
            self.world.cluster.resume(number)
        else:
            self.world.cluster.start_node(number)
        self._kill_for(self.rng.uniform(2, 6))  # while the spools are drained
        before = self.world.sender.n_accepted()
        waiting.until(lambda: self.world.sender.n_accepted() > before + 20, BACK_SECONDS,
                      lambda: f"accepted deliveries\n{self.world.describe()}")

    def _seconds(self):
        if self.rng.random() < LONG_SHARE:
            return math.exp(self.rng.uniform(math.log(OUTAGE_SECONDS[1]), math.log(LONG_SECONDS)))
        return self.rng.uniform(*OUTAGE_SECONDS)

    def _kill_for(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            daemon = self.rng.choice(self.world.receivers)
            time.sleep(min(self.rng.uniform(0.2, 3), max(0, until - time.monotonic())))
            if self.rng.random() < 0.5:
                self.world.kill(daemon)
                self.note("killed a receiver")
                self.world.revive(daemon)
            else:
                self._crash(daemon)

    def _crash(self, daemon):
        """Start the receiver so that it dies at a point, if it comes there soon."""
        point = self.rng.choice(SPOOL_POINTS)
        self.world.kill(daemon)
        daemon.environment["GATEPOST_CRASH_POINT"] = f"{point}:{self.rng.randint(1, 10)}"
        daemon.launch()
        deadline = time.monotonic() + POINT_SECONDS
        while daemon.is_running() and time.monotonic() < deadline:
            time.sleep(0.05)
        if daemon.is_running():
            self.world.kill(daemon)
        else:
            daemon.wait_for_exit(-9)
            self.note(f"died at {point}")
        self.world.note_restart(daemon)
        del daemon.environment["GATEPOST_CRASH_POINT"]
        self.world.revive(daemon)


class FailingDisk(Outages):
    """Kafka is killed or suspended, and writes and syncs of the spools fail at random with EIO or ENOSPC."""

    def __init__(self, world):
        super().__init__(world)
        self.disk = FailDisk(world.receivers[0].config.directory, FAILING_PER_THOUSAND)
        for daemon in world.receivers:
            daemon.environment.update(self.disk.environment)
            world.kill(daemon)
            world.revive(daemon)

    def _kill_for(self, seconds):
        """Only wait: the disk fails by itself."""
        before = self.disk.failed
        time.sleep(seconds)
        self.done["failed calls"] = self.done.get("failed calls", 0) + self.disk.failed - before

    def end(self):
        for daemon in self.world.receivers:
            for name in self.disk.environment:
                daemon.environment.pop(name)
            self.world.kill(daemon)
            self.world.revive(daemon)
