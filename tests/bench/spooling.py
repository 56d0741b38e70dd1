"""Measure the spool: deliveries stored on the disk while Kafka is suspended, beside the same into Kafka, and the draining."""

import subprocess
import time

import waiting
from measuring import load, processor_seconds
from subjects import Gatepost

ACK_TIMEOUT = "1s"
SPOOLING_SECONDS = 30
DRAINED_SECONDS = 600
SYNCS = 200
KAFKA, SPOOL, DRAIN, DISK = "into Kafka", "into the spool", "from the spool", "a sync of 4 KiB"


class Spooling:
    def __init__(self, bench, figures):
        """figures() makes an empty collection of samples for one table."""
        self.bench, self.arguments, self.figures = bench, bench.arguments, figures
        self.body = self.arguments.bodies[0]

    def measure(self):
        points = {connections: self.figures() for connections in self.arguments.connections}
        for number in range(1, self.arguments.rounds + 1):
            for connections, figures in points.items():
                print(f"  round {number}: {connections} connections".ljust(60), end="\r", flush=True)
                self._round(connections, figures)
        print(" " * 60, end="\r")
        for connections, figures in points.items():
            where = f"spool, {connections} connections"
            figures.print("rate", f"{where}: deliveries a second", "/s", [KAFKA, SPOOL])
            figures.print("cpu", f"{where}: processor time of each", "us", [KAFKA])
            figures.print("sync", f"{where}: mean time of a sync", "ms", [DISK])
            figures.print("records", f"{where}: deliveries in each sync", "", [])
            figures.print("memory", f"{where}: resident", "MiB", [KAFKA])

    def _round(self, connections, figures):
        with self.bench.topics() as place:
            spool = place.directory / "spool"
            with Gatepost(place, name=KAFKA, spool=str(spool), ack_timeout=ACK_TIMEOUT) as receiver:
                self._load(receiver, KAFKA, connections, figures)
                self.bench.cluster.pause(1)
                try:
                    self._fill(receiver, connections, figures)
                finally:
                    self.bench.cluster.resume(1)
                self._drain(receiver, figures)
        figures.add("sync", DISK, self._sync(place.directory))

    def _load(self, receiver, name, connections, figures):
        run = load(self.bench.build, receiver, connections, self.body, self.arguments.seconds)
        self.bench.keep("spool", name, run, connections=connections)
        figures.add("rate", name, run.rate)
        figures.add("cpu", name, run.cpu_us)
        figures.add("memory", name, receiver.resident_kib() / 1024)

    def _fill(self, receiver, connections, figures):
        def prime():
            load(self.bench.build, receiver, 1, self.body, 3, warm_up=0.001)  # the first waits for ack_timeout
            return receiver.metric("gatepost_spool_written_total") > 0
        waiting.until(prime, SPOOLING_SECONDS, "the spool to be used")
        before = self._syncs(receiver)
        self._load(receiver, SPOOL, connections, figures)
        n, seconds, written = (now - then for now, then in zip(self._syncs(receiver), before))
        figures.add("sync", SPOOL, 1e3 * seconds / n)
        figures.add("records", SPOOL, written / n)

    @staticmethod
    def _syncs(receiver):
        return [receiver.metric(f"gatepost_spool_{name}") for name in ("sync_seconds_count", "sync_seconds_sum", "written_total")]

    def _drain(self, receiver, figures):
        """The rate between 5 % and 95 % of the records."""
        written = receiver.metric("gatepost_spool_written_total")
        peak = [receiver.resident_kib()]
        marks = []
        for share in (0.05, 0.95):
            waiting.until(lambda share=share: receiver.metric("gatepost_spool_drained_total") >= share * written,
                          DRAINED_SECONDS, "the spool to be drained", 0.01)
            marks.append((time.monotonic(), receiver.metric("gatepost_spool_drained_total"),
                          processor_seconds(receiver.process.pid)))
            peak.append(receiver.resident_kib())
        (begun, first, used), (ended, last, used_then) = marks
        figures.add("rate", DRAIN, (last - first) / (ended - begun))
        figures.add("cpu", DRAIN, (used_then - used) / (last - first) * 1e6)
        figures.add("memory", DRAIN, max(peak) / 1024)
        waiting.until(lambda: receiver.metric("gatepost_spool_segments") == 0, DRAINED_SECONDS, "the last segment to be deleted")

    @staticmethod
    def _sync(directory):
        """Mean time to append 4 KiB to a file and to sync it, in ms."""
        path = directory / "synced"
        done = subprocess.run(["dd", "if=/dev/zero", f"of={path}", "bs=4k", f"count={SYNCS}", "oflag=dsync"],
                              stderr=subprocess.PIPE, text=True, check=True, env={"LC_ALL": "C"})
        path.unlink()
        return 1e3 * float(done.stderr.split(", ")[-2].split()[0]) / SYNCS
