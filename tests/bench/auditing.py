"""Measure `gatepost audit`: its time, processor time and memory, for deliveries of nine kinds of which one in twenty is a repeat."""

import json
import os
import subprocess
import time

import waiting
from filling import fill
from measuring import processor_seconds
from signing import KINDS
from subjects import Gatepost

REPEAT_EVERY = 20
ROUTED_SECONDS = 1800


def busy_seconds():
    """Processor time used on the whole machine."""
    with open("/proc/stat", encoding="ascii") as stat:
        user, nice, system, _, _, interrupts, soft, stolen = map(int, stat.readline().split()[1:9])
    return (user + nice + system + interrupts + soft + stolen) / os.sysconf("SC_CLK_TCK")


class Auditing:
    def __init__(self, bench, figures):
        """figures() makes an empty collection of samples for one table."""
        self.bench, self.arguments, self.figures = bench, bench.arguments, figures
        self.n = self.arguments.deliveries

    def measure(self):
        figures = self.figures()
        with self.bench.topics() as place:
            fill(place.kafka, self.n, self.arguments.bodies[0], KINDS, REPEAT_EVERY)
            with Gatepost(place, roles="router"):
                waiting.until(place.kafka.is_routed, ROUTED_SECONDS, "all deliveries to be routed", 0.5)
            config = place.config().write()
            for number in range(1, self.arguments.rounds + 1):
                print(f"  round {number}".ljust(60), end="\r", flush=True)
                self._round(config, figures)
        print(" " * 60, end="\r")
        where = f"audit of {self.n:,} deliveries"
        figures.print("time", f"{where}: time", "s", [])
        figures.print("cpu", f"{where}: processor time", "s", [])
        figures.print("others", f"{where}: processors that other processes used meanwhile", "", [])
        figures.print("memory", f"{where}: most memory", "MiB", [])

    def _round(self, config, figures):
        broker = self.bench.cluster.nodes[1].pid
        begun, busy, used = time.monotonic(), busy_seconds(), processor_seconds(broker)
        audit = subprocess.Popen([self.bench.build / "gatepost", "-c", config, "audit", "--json"], stdout=subprocess.PIPE)
        report = json.load(audit.stdout)
        _, status, usage = os.wait4(audit.pid, 0)
        seconds, busy, used = time.monotonic() - begun, busy_seconds() - busy, processor_seconds(broker) - used
        audit.returncode = os.waitstatus_to_exitcode(status)
        faults = [report[each] for each in ("lost", "duplicated", "unexpected")]
        assert (audit.returncode, report["deliveries"]["checked"], faults) == (0, self.n, [0, 0, 0]), report
        own = usage.ru_utime + usage.ru_stime
        self.bench.results.append({"section": "audit", "deliveries": self.n, "seconds": seconds, "cpu_s": own,
                                   "broker_cpu_s": used, "busy_s": busy, "peak_kib": usage.ru_maxrss})
        figures.add("time", "gatepost audit", seconds)
        figures.add("cpu", "gatepost audit", own)
        figures.add("cpu", "broker", used)
        figures.add("others", "others", max(0.0, busy - own - used) / seconds)
        figures.add("memory", "gatepost audit", usage.ru_maxrss / 1024)
