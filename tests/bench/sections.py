"""The sections: what each one measures, and the baselines of its ratios."""

import contextlib
import functools
import statistics
import subprocess
import threading
import time

import confluent_kafka
from confluent_kafka.admin import NewTopic

import installation
import waiting
from auditing import Auditing
from candidates import Candidates
from growth import Growth
from measuring import LoadError, Samples, load, processor_seconds
from spooling import Spooling
from subjects import Bare, Gatepost, Relay, with_kinds

ROUTED_RECORDS = 300000
END_TO_END_SECONDS = 5
REST_SECONDS = 10
OF_GATEPOST_ALONE = ["routed", "end-to-end", "memory", "growth", "spool", "audit"]


def size(body):
    return f"{body / 1024:g} KiB"


def create_all(admin, topics, partitions):
    """Create many topics with one request; `gatepost topics create` makes one request for each."""
    new = [NewTopic(each, partitions, 1, config={"max.message.bytes": str(2 << 20)}) for each in topics]
    for made in admin.create_topics(new, operation_timeout=30).values():
        made.result(60)


class Table:
    """Prints one line per figure: median, spread of the rounds, ratios to the baselines."""

    def __init__(self, title, unit):
        self.unit = unit
        print(f"\n{title}", flush=True)

    def line(self, name, samples, against=()):
        ratios = "".join(f"  {samples.ratio(other):5.2f} of {label}" for label, other in against)
        print(f"  {name:28} {samples.median:10.4g} {self.unit:10} +-{100 * samples.spread / 2:3.0f} %{ratios}", flush=True)


class Figures:
    """Samples by (figure, subject's name)."""

    def __init__(self, failed=None):
        """failed has the reasons of subjects that are not measured, by name."""
        self.samples, self.failed = {}, dict(failed or {})

    def add(self, what, name, value):
        self.samples.setdefault((what, name), Samples()).add(value)

    def names(self, what):
        """Names of the subjects that have samples of this figure and have not failed."""
        return list(dict.fromkeys(name for each, name in self.samples if each == what and name not in self.failed))

    def print(self, what, title, unit, baselines):
        table = Table(title, unit)
        names = self.names(what)
        for name in names:
            against = [(other, self.samples[what, other]) for other in baselines if other != name and other in names]
            table.line(name, self.samples[what, name], against)
        for name, reason in self.failed.items():
            print(f"  {name:28} failed: {reason}", flush=True)


class Bench:
    def __init__(self, arguments, build, directory, cluster):
        self.arguments, self.build, self.directory, self.cluster = arguments, build, directory, cluster
        self.results = []
        self._n_installations = 0
        self.candidates = Candidates(arguments, build, directory, self.topics)

    def measure(self, section):
        if section in OF_GATEPOST_ALONE and not self.candidates.gatepost_passes:
            print(f"\n{section}: gatepost failed: {self.candidates.failed['gatepost']}", flush=True)
            return
        getattr(self, section.replace("-", "_"))()

    def _installation(self):
        self._n_installations += 1
        directory = self.directory / str(self._n_installations)
        directory.mkdir()
        return installation.Installation(directory, self.cluster.bootstrap, self.build)

    @contextlib.contextmanager
    def topics(self, partitions=6, kinds=0):
        """An installation with new topics, which are deleted afterwards because they grow by gigabytes."""
        place = self._installation()
        config = with_kinds(place.config(), kinds)
        if kinds > 0:
            create_all(place.kafka.admin, config["events"].values(), partitions)
        place.create_topics(config, partitions)
        try:
            yield place
        finally:
            for done in place.kafka.admin.delete_topics(place.kafka.topics()).values():
                done.result(30)
            place.kafka.close()

    def keep(self, section, name, run, **where):
        self.results.append({"section": section, "subject": name} | where | run.__dict__)

    def _rounds(self, makers):
        """Yield each subject, running, in each round."""
        for number in range(1, self.arguments.rounds + 1):
            for make in makers:
                with self.topics() as place, make(place) as subject:
                    print(f"  round {number}: {subject.name}".ljust(60), end="\r", flush=True)
                    yield subject
        print(" " * 60, end="\r")

    def _receive(self, section, forge):
        points = [(connections, body) for body in self.arguments.bodies for connections in self.arguments.connections]
        makers = self.candidates.receivers + ([] if forge else [self.candidates.appending])
        figures = {point: Figures(self.candidates.failed) for point in points}
        for subject in self._rounds(makers):
            for connections, body in points:
                each = figures[connections, body]
                if subject.name in each.failed:
                    continue
                expect = "401" if forge and not isinstance(subject, Bare) else "200"
                try:
                    run = load(self.build, subject, connections, body, self.arguments.seconds, forge=forge, expect=expect)
                except LoadError as error:
                    each.failed[subject.name] = str(error).splitlines()[0]
                    continue
                self.keep(section, subject.name, run, connections=connections, body=body)
                each.add("rate", subject.name, run.rate)
                each.add("cpu", subject.name, run.cpu_us)
                each.add("memory", subject.name, subject.resident_kib() / 1024)
                each.add("load generator", subject.name, run.own_cpu_us)
        baselines = ["bare evhttp", "go-fasthttp linger_ms 0", "go-fasthttp linger_ms 1", "go-nethttp linger_ms 0"]
        baselines += [f"{each} tls" for each in baselines[1:] if self.arguments.tls]
        for (connections, body), each in figures.items():
            where = f"{section}, {connections} connections, {size(body)}"
            each.print("rate", f"{where}: deliveries a second", "/s", baselines)
            each.print("cpu", f"{where}: processor time of each", "us", baselines)
            each.print("memory", f"{where}: resident", "MiB", [])

    def accepted(self):
        self._receive("accepted", forge=False)

    def forged(self):
        self._receive("forged", forge=True)

    def latency(self):
        """Latency at half of the rate that Gatepost reaches, of all subjects that reach it as well."""
        connections, body = self.arguments.connections[-1], self.arguments.bodies[0]
        makers = self.candidates.genuine
        rates = {}
        for make in makers:
            with self.topics() as place, make(place) as subject:
                rates[subject.name] = load(self.build, subject, connections, body, self.arguments.seconds).rate
        for name, rate in rates.items():
            print(f"\n{name} reaches {rate:.0f}/s")
        if "gatepost" not in rates:
            return
        figures, rate = Figures(self.candidates.failed), rates["gatepost"] / 2
        makers = [make for make, name in zip(makers, rates) if rates[name] > 1.2 * rate]
        for subject in self._rounds(makers):
            run = load(self.build, subject, connections, body, self.arguments.seconds, rate=rate)
            self.keep("latency", subject.name, run, connections=connections, body=body, rate=rate)
            for what in ("p50_ms", "p99_ms", "p999_ms"):
                figures.add(what, subject.name, getattr(run, what))
        for what in ("p50_ms", "p99_ms", "p999_ms"):
            figures.print(what, f"latency at {rate:.0f}/s, {connections} connections, {size(body)}: {what[:-3]}", "ms",
                          ["go-fasthttp linger_ms 0", "go-fasthttp linger_ms 1"])

    def _fill(self, place, body):
        """Append records to `deliveries` through a receiver."""
        with Gatepost(place) as receiver:
            n = 0
            while n < ROUTED_RECORDS:
                load(self.build, receiver, 256, body, 2, warm_up=0.001)
                n = receiver.metric("gatepost_requests_total")
        return n

    def routed(self):
        makers = [functools.partial(Gatepost, roles="router"), Relay, *self.candidates.peers]
        for body in self.arguments.bodies:
            figures = Figures(self.candidates.failed_peers)
            for number in range(self.arguments.rounds):
                with self.topics() as place:
                    self._fill(place, body)
                    ends = place.kafka.ends(place.kafka.deliveries)
                    n = sum(ends.values())
                    took = float(subprocess.run(
                        [self.build / "consume", place.bootstrap, place.kafka.deliveries, str(n)], check=True,
                        stdout=subprocess.PIPE, text=True).stdout)
                    figures.add("rate", "a consumer that does nothing", n / took)
                    for make in makers[::-1 if number % 2 else 1]:
                        router = make(place)
                        rate, cpu, memory = self._route(router, n)
                        figures.add("rate", router.name, rate)
                        figures.add("cpu", router.name, cpu)
                        figures.add("memory", router.name, memory)
            names = [make(place).name for make in makers[1:]]
            figures.print("rate", f"routed, {size(body)}: records a second", "/s", ["a consumer that does nothing", *names])
            figures.print("cpu", f"routed, {size(body)}: processor time of each", "us", names)
            figures.print("memory", f"routed, {size(body)}: most resident", "MiB", names)

    @staticmethod
    def _route(subject, n):
        """Run a router over all records. Returns the rate between 10 % and 90 % of them, the processor time of each, and the
        memory."""
        with subject as router:
            def mark(share):
                count = router.n_routed()
                return (time.monotonic(), processor_seconds(router.process.pid), count) if count >= share * n else None
            marks = [waiting.until(lambda share=share: mark(share), 300, "records") for share in (0.1, 0.9)]
            memory = router.most_resident_kib() / 1024
        (begun, used, first), (ended, used_then, last) = marks
        return (last - first) / (ended - begun), (used_then - used) / (last - first) * 1e6, memory

    def end_to_end(self):
        """Time from when a delivery is due until a consumer sees the event, with receiver and router in one process."""
        body, connections = self.arguments.bodies[0], self.arguments.connections[-1]
        with self.topics() as place, Gatepost(place, roles="receiver, router") as both:
            most = load(self.build, both, connections, body, 2 * self.arguments.seconds, warm_up=3)
        print(f"\nreceiver and router in one process accept {most.rate:.0f}/s, at {most.cpu_us:.1f} us each, including some routing")
        for rate in (10, 100, 1000, int(most.rate / 2)):
            figures = Figures()
            for _ in range(self.arguments.rounds):
                with self.topics() as place, Gatepost(place, roles="receiver, router") as both:
                    self._end_to_end(both, both, place, rate, body, figures)
                with self.topics() as place, Gatepost(place) as receiver, Relay(place) as relay:
                    self._end_to_end(receiver, relay, place, rate, body, figures)
            for what in ("p50", "p99"):
                figures.print(what, f"from POST to event, {rate}/s, {size(body)}: {what}", "ms", ["relay"])
            figures.print("cpu", f"from POST to event, {rate}/s, {size(body)}: processor time of each", "us", ["relay"])

    def _end_to_end(self, receiver, router, place, rate, body, figures):
        seen, stop, ready = {}, threading.Event(), threading.Event()
        reader = threading.Thread(target=self._watch, args=(place, seen, ready, stop))
        reader.start()
        try:
            ready.wait(30)
            seconds = max(END_TO_END_SECONDS, 50 / rate)
            run, n, cpu = self.through(receiver, router, rate, body, seconds)
            waiting.until(lambda: len(seen) >= n, 60, "all to be seen")
        finally:
            stop.set()
            reader.join()
        late = sorted(1e3 * (at - run.begun_s - number / rate) for number, at in seen.items() if number > rate)
        figures.add("p50", router.name, statistics.median(late))
        figures.add("p99", router.name, late[int(len(late) * 0.99)])
        figures.add("cpu", router.name, cpu)

    def through(self, receiver, router, rate, body, seconds, kinds=None):
        """Send deliveries at a rate, and wait until all are routed. Returns the run, the number of deliveries, and the
        processor time of each in us, of receiver and router together, which may be one process."""
        pids = {receiver.process.pid, router.process.pid}
        used, routed = sum(map(processor_seconds, pids)), router.n_routed()
        received = receiver.metric("gatepost_requests_total")
        # Use more connections than there are outstanding answers.
        run = load(self.build, receiver, 64 if rate < 2000 else 256, body, seconds, rate=rate, kinds=kinds)
        n = receiver.metric("gatepost_requests_total") - received
        waiting.until(lambda: router.n_routed() >= routed + n, 60, "all to be routed")
        return run, n, (sum(map(processor_seconds, pids)) - used) / n * 1e6

    @staticmethod
    def _watch(place, seen, ready, stop):
        """Record when each event is first seen, by the number at the end of its id. Polls every few ms, because a broker
        does not complete a waiting read_committed fetch when a transaction is committed."""
        consumer = confluent_kafka.Consumer({"bootstrap.servers": place.bootstrap, "group.id": "watch",
                                             "isolation.level": "read_committed", "enable.auto.commit": False,
                                             "fetch.wait.max.ms": 5, "log_level": 3})
        topic = f"{place.prefix}.invoice.accepted"
        consumer.assign([confluent_kafka.TopicPartition(topic, each, confluent_kafka.OFFSET_BEGINNING)
                         for each in range(place.kafka.partitions(topic))])
        ready.set()
        while not stop.is_set():
            first = consumer.poll(0.1)
            arrived = time.monotonic()
            # consume() waits for its whole timeout unless it gets the maximum number of records.
            for message in ([first] if first else []) + consumer.consume(1000, 0):
                if not message.error():
                    seen.setdefault(int(dict(message.headers())["ce_id"][-12:]), arrived)
        consumer.close()

    def memory(self):
        """Memory and processor time at rest, and the time to start, without records in Kafka."""
        figures = Figures()
        for _ in range(self.arguments.rounds):
            with self.topics() as place:
                begun = time.monotonic()
                with Gatepost(place, roles="receiver, router") as both:
                    figures.add("start", "gatepost", 1e3 * (time.monotonic() - begun))
                    figures.add("rest", "gatepost", both.resident_kib() / 1024)
                    used = processor_seconds(both.process.pid)
                    time.sleep(REST_SECONDS)
                    figures.add("idle", "gatepost", 1e3 * (processor_seconds(both.process.pid) - used) / REST_SECONDS)
        figures.print("start", "from start to ready", "ms", [])
        figures.print("rest", "resident at rest", "MiB", [])
        figures.print("idle", "processor time at rest", "ms/s", [])

    def spool(self):
        Spooling(self, Figures).measure()

    def audit(self):
        Auditing(self, Figures).measure()

    def growth(self):
        Growth(self, Figures).measure()
