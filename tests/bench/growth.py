"""Measure how the cost of a delivery grows with the number of remembered ids, connections, partitions and kinds. The ratios
are to the first step, which was measured shortly before."""

import re
import subprocess

from measuring import load
from subjects import Gatepost

IDS = [1_000_000, 3_000_000, 10_000_000]
CONNECTIONS = [1, 16, 64, 256, 1024, 5000]
PARTITIONS = [1, 6, 16, 64]
KINDS = [1, 10, 100, 1000]
RATE = 2000  # deliveries per second through receiver and router


def looked_up(build, ids):
    """Return the processor time of a look-up in us, while new ids arrive and old ones expire, and the bytes per id."""
    done = subprocess.run([build / "dedup", str(ids)], stdout=subprocess.PIPE, text=True)
    assert done.returncode in (0, 1), done.stdout  # 1: above dedup's own limits, irrelevant here
    steady = done.stdout.partition("while the first expires:")[2]
    return (int(re.search(r"check +mean (\d+) ns", steady)[1]) / 1e3,
            float(re.search(r"memory .* ([\d.]+) bytes", steady)[1]))


class Growth:
    def __init__(self, bench, figures):
        """figures() makes an empty collection of samples for one table."""
        self.bench, self.arguments, self.figures = bench, bench.arguments, figures
        self.body = self.arguments.bodies[0]

    def measure(self):
        self._table("remembered ids", "of a look-up", IDS, self._ids)
        self._table("connections, all busy", "of each accepted delivery", CONNECTIONS, self._connections)
        self._table(f"partitions, {RATE}/s", "of each delivery from POST to event", PARTITIONS, self._partitions)
        self._table(f"kinds with a topic each, {RATE}/s", "of each delivery from POST to event", KINDS, self._kinds)

    def _table(self, what, of_what, steps, measure):
        """measure(step) returns the processor time, the memory, and the unit of the memory."""
        figures = self.figures()
        for number in range(1, self.arguments.rounds + 1):
            for step in steps:
                print(f"  round {number}: {step:,} {what}".ljust(60), end="\r", flush=True)
                cpu_us, memory, unit = measure(step)
                figures.add("cpu", f"{step:,}", cpu_us)
                figures.add("memory", f"{step:,}", memory)
        print(" " * 60, end="\r")
        figures.print("cpu", f"growth, {what}: processor time {of_what}", "us", [f"{steps[0]:,}"])
        figures.print("memory", f"growth, {what}: memory", unit, [f"{steps[0]:,}"])

    def _ids(self, ids):
        cpu_us, size = looked_up(self.bench.build, ids)
        self.bench.results.append({"section": "growth", "ids": ids, "cpu_us": cpu_us, "bytes": size})
        return cpu_us, size, "bytes an id"

    def _connections(self, connections):
        with self.bench.topics() as place, Gatepost(place, max_connections=2 * max(CONNECTIONS)) as receiver:
            run = load(self.bench.build, receiver, connections, self.body, self.arguments.seconds)
            self.bench.keep("growth", "gatepost", run, connections=connections)
            return run.cpu_us, receiver.resident_kib() / 1024, "MiB"

    def _partitions(self, partitions):
        return self._through(partitions, kinds=1)

    def _kinds(self, kinds):
        return self._through(partitions=1, kinds=kinds)

    def _through(self, partitions, kinds):
        with self.bench.topics(partitions, kinds) as place, \
                Gatepost(place, roles="receiver, router", kinds=kinds) as both:
            run, _, cpu_us = self.bench.through(both, both, RATE, self.body, self.arguments.seconds, kinds)
            self.bench.keep("growth", "gatepost", run, partitions=partitions, kinds=kinds, both_cpu_us=cpu_us)
            return cpu_us, both.resident_kib() / 1024, "MiB"
