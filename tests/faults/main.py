"""The fault harness: sends deliveries while a nemesis causes faults, then looks for lost and duplicate events."""

import argparse
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / room) for room in ("kafka", "e2e/lib", "faults")]

from checker import clock
from cluster import Cluster
from daemon import ENVIRONMENT
from deliveries import SHARES
from proxy import Proxies
from scenarios import SCENARIOS
from world import World

MOST = 2_000_000  # deliveries in a round
RATE = 400  # a second
STALLED_SECONDS = 60
WARM_UP = 50  # deliveries accepted before the first act
AUDITED = ("lost", "duplicated", "unexpected")
FAULTS = (*AUDITED, "disordered")
OLD_REPEATS = (3, 8)  # after each act
SHOWN = 20  # of each fault
EVERYWHERE = "Each delivery to three receivers at once."
EX_USAGE, EX_DATAERR = 64, 65


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.print_usage(sys.stderr)
        self.exit(EX_USAGE, f"{self.prog}: {message}\n")


def parse(arguments):
    about = [textwrap.fill(" ".join((each.nemesis.__doc__ if each.nemesis else EVERYWHERE).split()), 110,
                           initial_indent=f"  {each.name:16}", subsequent_indent=" " * 18) for each in SCENARIOS.values()]
    parser = Parser(prog="tests/faults/run", description=__doc__, epilog="\n".join(["scenarios:", *about]),
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="scenarios to run (default: all of the chosen form)")
    parser.add_argument("--long", action="store_true", help="run the long form of all scenarios, for hours")
    parser.add_argument("--acts", type=int, metavar="N", help="number of acts of the nemesis in a round")
    parser.add_argument("--rounds", type=int, metavar="N", help="number of rounds, each with new topics and daemons")
    parser.add_argument("--deliveries", type=int, metavar="N", help="minimum of accepted deliveries in a round")
    parser.add_argument("--rate", type=float, default=RATE, metavar="N", help="deliveries per second (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="seed of all random choices")
    parser.add_argument("--results", metavar="FILE", help="append a line of JSON for each round to this file")
    parser.add_argument("--librdkafka", metavar="VERSION", help="librdkafka version (or `newest`) to build and use")
    parser.add_argument("--without", metavar="LIST", default="", help=f"send no deliveries of these kinds: {', '.join(SHARES)}")
    parser.add_argument("--verbose", action="store_true", help="log the actions of the proxies as well")
    parser.add_argument("--keep", action="store_true", help="keep the logs of the daemons")
    chosen = parser.parse_args(arguments)
    for name in chosen.scenarios:
        if name not in SCENARIOS:
            parser.error(f"unknown scenario {name}; known are {', '.join(SCENARIOS)}")
    chosen.without = [name for name in chosen.without.split(",") if name]
    if set(chosen.without) - set(SHARES):
        parser.error(f"--without: unknown kind; known are {', '.join(SHARES)}")
    return chosen


def select(options):
    """Return (scenario, acts, rounds) of each scenario to run."""
    names = options.scenarios or [each.name for each in SCENARIOS.values() if options.long or each.short]
    for name in names:
        scenario = SCENARIOS[name]
        acts = scenario.long if options.long or not scenario.short else scenario.short
        rounds = scenario.rounds if options.long else 1
        yield scenario, acts if options.acts is None else options.acts, rounds if options.rounds is None else options.rounds


class Log:
    """Prints lines with the time, in the format of the daemons' logs, and the seconds since the start."""

    def __init__(self, verbose):
        self.started = time.monotonic()
        self.verbose = verbose

    def __call__(self, text):
        print(f"{clock(time.time())} {time.monotonic() - self.started:8.2f}  {text}", flush=True)

    def detail(self, text):
        if self.verbose:
            self(text)


def await_more(sender):
    """Wait until more deliveries have been accepted."""
    before, deadline = sender.n_accepted(), time.monotonic() + STALLED_SECONDS
    while sender.n_accepted() == before:
        assert time.monotonic() < deadline, f"deliveries are no longer accepted: {sender.counts()}"
        time.sleep(0.2)


def work(world, scenario, acts, deliveries):
    """Let the nemesis act; world.acted counts its actions."""
    sender = world.sender
    begun = time.monotonic()
    while sender.n_accepted() < WARM_UP:
        assert time.monotonic() - begun < 60, f"no deliveries are accepted: {sender.counts()}"
        time.sleep(0.05)
    nemesis = scenario.nemesis(world) if scenario.nemesis else None
    world.acted = nemesis.done if nemesis else {}
    done = 0
    while done < acts or sender.n_accepted() < deliveries:
        if nemesis and done < acts:
            nemesis.act()
            done += 1
            sender.repeat_old(world.rng.randint(*OLD_REPEATS))
            time.sleep(world.rng.uniform(*nemesis.pause))
        else:
            await_more(sender)
    if nemesis:
        nemesis.end()


def judge(world, report, audited):
    """Return (results, whether there are no findings) of a completed round."""
    found = {name: len(getattr(report, name)) for name in FAULTS}
    counts = world.sender.counts()
    wrong_audit = world.setup.audited and any(audited.values())
    is_clean = not (any(found.values()) or wrong_audit or counts["forged_accepted"] or world.ended)
    return {"deliveries": world.sender.n_accepted(), "sent": world.sender.n_sent(), **found, "audit": audited,
            "unnoticed": len(report.unnoticed), "cut": len(report.cut), "of_cut": len(report.of_cut)}, is_clean


def play(scenario, acts, deliveries, cluster, proxies, build, options, seed, log):
    """Run one round. Returns its results."""
    begun = time.monotonic()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="gatepost-faults-"))
    results = {"scenario": scenario.name, "seed": seed, "clean": False}
    log(f"{scenario.name}: seed {seed}, logs in {directory}")
    world = World(scenario.setup, cluster, build, directory, random.Random(seed), log, options.without)
    world.proxies, world.internal = proxies
    try:
        world.start(options.rate, MOST)
        work(world, scenario, acts, deliveries)
        for each in filter(None, proxies):
            each.clear()
        world.heal()
        world.settle()
        report = world.verify()
        found, results["clean"] = judge(world, report, world.audit() if scenario.setup.audited else None)
        results |= found
        for name in FAULTS:
            for each in getattr(report, name)[:SHOWN]:
                log(f"{name}: {each}")
    except Exception as error:  # a round that cannot be completed has failed; run the others
        results["stopped"] = str(error)
        log(f"{traceback.format_exc()}\n{world.describe()}")
    finally:
        for each in filter(None, proxies):
            each.clear()
        if not results["clean"]:
            world.keep_broker_logs(directory)
        counts = world.sender.counts() if hasattr(world, "sender") else {}
        world.close()
    results |= {"acts": sum(world.acted.values()), "acted": world.acted, "ended": world.ended, "sender": counts,
                "seconds": round(time.monotonic() - begun, 1)}
    log(json.dumps(results))
    if results["clean"] and not options.keep:
        shutil.rmtree(directory, ignore_errors=True)
    else:
        log(f"the logs are in {directory}")
    return results


def play_all(options, build, log):
    """Run all rounds of the chosen scenarios. Consecutive scenarios with the same brokers share a cluster."""
    seeds = random.Random(options.seed if options.seed is not None else random.randrange(1 << 32))
    results = []
    chosen = list(select(options))
    for kind in dict.fromkeys(json.dumps(scenario.setup.cluster) for scenario, _, _ in chosen):
        with contextlib.ExitStack() as stack:
            cluster = stack.enter_context(Cluster(**json.loads(kind)))
            proxies = [stack.enter_context(Proxies(cluster, log.detail, internal=name == "internal")) if json.loads(kind)[name]
                       else None for name in ("proxied", "internal")]
            for scenario, acts, rounds in chosen:
                if json.dumps(scenario.setup.cluster) != kind:
                    continue
                deliveries = scenario.deliveries if options.long or not scenario.short else 0
                deliveries = options.deliveries if options.deliveries is not None else deliveries
                for _ in range(rounds):
                    result = play(scenario, acts, deliveries, cluster, proxies, build, options, seeds.randrange(1 << 32), log)
                    results.append(result)
                    if options.results:
                        with open(options.results, "a", encoding="utf-8") as file:
                            file.write(json.dumps(result) + "\n")
    return results


def agrees(result):
    """Return whether the audit agrees with the checker. A second event for a copy that was signed again has a different
    ce_time: the checker reports it as a duplicate, the audit as an unexplained record."""
    audit = result["audit"]
    return audit is None or result["lost"] == audit["lost"] and \
        result["duplicated"] + result["unexpected"] == audit["duplicated"] + audit["unexpected"]


def print_table(results):
    """Print a table of all scenarios. Returns whether there are no findings."""
    columns = "".join(f"{name.upper():>12}" for name in FAULTS)
    print(f"\n{'SCENARIO':16}{'ROUNDS':>7}{'ACTS':>7}{'DELIVERIES':>12}{columns}  AUDIT")
    for name in dict.fromkeys(each["scenario"] for each in results):
        rows = [each for each in results if each["scenario"] == name]
        total = lambda key: sum(each.get(key, 0) for each in rows)
        stopped = sum("stopped" in each for each in rows)
        verdict = f"  {stopped} STOPPED" if stopped else "  agrees" if all(map(agrees, rows)) else "  DIFFERS"
        print(f"{name:16}{len(rows):7}{total('acts'):7}{total('deliveries'):12}"
              + "".join(f"{total(fault):12}" for fault in FAULTS) + verdict)
    return all(each["clean"] for each in results)


def main():
    options = parse(sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # stop brokers and daemons as well
    build = pathlib.Path(os.environ["GATEPOST_FAULTS_BUILD"])
    log = Log(options.verbose)
    if options.librdkafka:
        library = subprocess.run([HERE / "librdkafka", options.librdkafka], stdout=subprocess.PIPE, text=True, check=True)
        ENVIRONMENT["LD_LIBRARY_PATH"] = library.stdout.strip()
    return 0 if print_table(play_all(options, build, log)) else EX_DATAERR


if __name__ == "__main__":
    sys.exit(main())
