"""Runs of the load generator, and medians of what they gave."""

import dataclasses
import json
import statistics
import subprocess

import subjects


@dataclasses.dataclass
class Run:
    """One run of the load generator."""
    answered: int  # with the status that was expected
    seconds: float
    cpu_us: float  # of the process, for each
    own_cpu_us: float  # of the load generator's
    p50_ms: float
    p99_ms: float
    p999_ms: float
    behind: int
    begun_s: float  # by the monotonic clock: when the first was due

    @property
    def rate(self):
        return self.answered / self.seconds


class LoadError(Exception):
    pass


def load(build, subject, connections, body, seconds, rate=None, forge=False, expect="200", warm_up=1.0, kinds=None):
    """Post to a subject for some seconds, with kinds deliveries of that many. What is not answered as expected is an error."""
    # Sign no more than could be sent, and wrap round where the answer does not depend on the delivery.
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
    """What the rounds gave for one figure."""

    def __init__(self):
        self.values = []

    def add(self, value):
        self.values.append(value)

    @property
    def median(self):
        return statistics.median(self.values)

    @property
    def spread(self):
        """How far the rounds lie apart, as a share of the median."""
        return (max(self.values) - min(self.values)) / self.median if self.median else 0.0

    def ratio(self, other):
        """The median of the ratios of neighbours in time: the machine's speed drifts between rounds."""
        return statistics.median(mine / theirs for mine, theirs in zip(self.values, other.values, strict=True))
