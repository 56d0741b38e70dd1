"""Runs of the load generator, and statistics over rounds."""

import dataclasses
import json
import statistics
import subprocess
import time

import subjects


def processor_seconds(pid):
    """Processor time used by all threads of the process: the clock of clock_getcpuclockid()."""
    return time.clock_gettime((~pid << 3) | 2)


@dataclasses.dataclass
class Run:
    """One run of the load generator."""
    answered: int  # with the expected status
    seconds: float
    cpu_us: float  # of the subject, per delivery
    own_cpu_us: float  # of the load generator, per delivery
    p50_ms: float
    p99_ms: float
    p999_ms: float
    behind: int
    begun_s: float  # monotonic time at which the first delivery was due

    @property
    def rate(self):
        return self.answered / self.seconds


class LoadError(Exception):
    pass


def load(build, subject, connections, body, seconds, rate=None, forge=False, expect="200", warm_up=1.0, kinds=None):
    """Post deliveries (of `kinds` different kinds) to a subject. Raises LoadError if any answer is not the expected one."""
    # Sign no more deliveries than can be sent; reuse them if the answer does not depend on their ids.
    command = [build / "load", "--port", str(subject.port), "--connections", str(connections), "--body", f"{body}B",
               "--time", f"{int(seconds * 1000)}ms", "--warm-up", f"{int(warm_up * 1000)}ms",
               "--secret", subjects.SECRET, "--process", str(subject.process.pid)]
    if forge or isinstance(subject, subjects.Bare):
        command += ["--deliveries", "100000", "--wrap"]
    else:
        most = rate or 150000
        command += ["--deliveries", str(int(min(most, 4e9 / (body + 4000)) * (seconds + warm_up) * 1.2) + 1000)]
    command += ["--forge"] * forge + ["--tls"] * subject.tls
    if kinds:
        command += ["--kinds", str(kinds)]
    if rate:
        command += ["--rate", str(int(rate))]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise LoadError(f"{subject.name}: {done.stderr}\n{subject.log()}")
    result = json.loads(done.stdout)
    answered = result["statuses"].pop(expect, 0)
    if result["statuses"] or result["broken"] or not answered:
        raise LoadError(f"{subject.name} answered {answered} times {expect}, and {result['statuses']}, "
                        f"{result['broken']} connections broke\n{subject.log()}")
    return Run(answered, result["seconds"], result["cpu_s"][0] / answered * 1e6,
               result["own_cpu_s"] / answered * 1e6, result["p50_ms"], result["p99_ms"], result["p999_ms"],
               result["behind"], result["begun_s"])


class Samples:
    """The values of one figure, one for each round."""

    def __init__(self):
        self.values = []

    def add(self, value):
        self.values.append(value)

    @property
    def median(self):
        return statistics.median(self.values)

    @property
    def spread(self):
        """Range of the values as a share of the median."""
        return (max(self.values) - min(self.values)) / self.median if self.median else 0.0

    def ratio(self, other):
        """Median of the ratios within each round, as the machine's speed drifts between rounds."""
        return statistics.median(mine / theirs for mine, theirs in zip(self.values, other.values, strict=True))
