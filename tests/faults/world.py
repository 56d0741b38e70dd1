"""An installation under test: brokers, receivers, routers, a sender, and the check of the results."""

import dataclasses
import json
import math
import pathlib
import signal
import subprocess
import uuid

import confluent_kafka
import deliveries as texts
import reloading
import waiting
from authority import Authority
from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewTopic
from checker import Checker
from daemon import ENVIRONMENT
from deliveries import Deliveries
from installation import Installation
from sender import Sender

# Short, so that their effects occur often; they affect when things happen, never whether.
SESSION_SECONDS = 6
TRANSACTION_SECONDS = 8
PARTITIONS = 6
ROUTED_SECONDS = 240
SETTLED_SECONDS = 90
DRAINED_SECONDS = 180
AUDIT_SECONDS = 900
EX_DATAERR, EX_TEMPFAIL = 65, 75
SINGLE, PAIRS = "single", "pairs"
PAIR_LAYOUT = [[1, 2], [2, 3], [3, 1], [2, 1], [3, 2], [1, 3]]
LARGE_BODY = 4 << 20  # bytes, if there are large bodies
DAY_MS = 86400000
RELEASE_EXITS = (0, EX_DATAERR, EX_TEMPFAIL)


@dataclasses.dataclass(frozen=True)
class Setup:
    """The parts of a world."""
    brokers: int = 1
    receivers: int = 2
    routers: int = 2
    proxied: bool = False  # a proxy before each broker, for its clients
    everywhere: bool = False  # send each delivery to all receivers at once
    both: bool = False  # the receivers are also the routers
    tls: bool = False
    window: int = 0  # dedup window in seconds; 0: the default
    tolerance: int = 0  # seconds; 0: the default
    has_extra: bool = False  # a second source
    internal: bool = False  # a proxy before each broker, for the other brokers
    small_disk: int = 0  # MiB of a disk for half of the partitions of broker 2; 0: none
    layout: str = ""  # replication of `deliveries`: SINGLE, PAIRS, or None for that of `gatepost topics create`
    split: bool = False  # routers have separate configurations, without [receiver], and different options
    ack_seconds: int = 0  # ack_timeout; 0: the default
    rate: int = 0  # deliveries per second; 0: as given by the options
    refuses: bool = False  # genuine deliveries may be refused: their timestamp expires, or a clock is wrong
    spool: bool = False  # receivers have one
    state: bool = False  # routers have a state directory
    audited: bool = True  # whether the audit can agree with the checker: it uses one configuration

    @property
    def cluster(self):
        """Return the options of the Cluster."""
        disk = {"small_disk": [2, self.small_disk]} if self.small_disk else {}
        shrinking = {"properties": {"replica.lag.time.max.ms": 5000}} if self.internal else {}
        return {"nodes": self.brokers, "proxied": self.proxied, "internal": self.internal} | disk | shrinking


STATE_ENTRIES = 10  # that a router keeps in memory before it writes a file; few, so that files are merged all the time


class World:
    def __init__(self, setup, cluster, build, directory, rng, log, without=()):
        self.setup = setup
        self.cluster = cluster
        self.rng = rng
        self.log = log
        self.installation = Installation(directory, cluster.bootstrap, build)
        self.kafka = self.installation.kafka
        self.proxies = self.internal = None  # set if there are any
        self.paused = set()
        self.ended = []  # exit statuses of daemons that ended unexpectedly
        self.cuts = []  # times at which Kafka lost the end of `deliveries`
        self.may_lack = {}  # sources that routers may not know, and until when (time.time())
        self.acted = {}  # number of the nemesis's actions by kind
        self.wrong = []  # errors that a nemesis has seen
        self.receivers_restarted = False
        self._trouble = texts.TROUBLE - set(without)
        self._bootstrap = cluster.proxied_bootstrap if setup.proxied else cluster.bootstrap
        self._authority = Authority(directory) if setup.tls else None
        self._n_certificates = 0
        self.receivers = [self._receiver() for _ in range(setup.receivers)]
        self.routers = self.receivers if setup.both else [self._router() for _ in range(setup.routers)]
        if setup.tls:
            self.renew_certificates()
        self._cli = self.config("receiver, router")
        if setup.split:
            self._cli["receiver"]["max_body"] = f"{LARGE_BODY}B"
        self._cli["kafka"]["bootstrap.servers"] = cluster.bootstrap

    @property
    def daemons(self):
        return list(dict.fromkeys([*self.receivers, *self.routers]))

    def config(self, roles):
        config = self.installation.config(roles)
        config["kafka"].update({"bootstrap.servers": self._bootstrap, "session.timeout.ms": SESSION_SECONDS * 1000,
                                "heartbeat.interval.ms": 1000, "transaction.timeout.ms": TRANSACTION_SECONDS * 1000,
                                "socket.timeout.ms": (TRANSACTION_SECONDS - 1) * 1000})
        config["source invoicing"]["secret_file"] = self.secret_file(config, 0)
        if self.setup.has_extra:
            config.source(texts.EXTRA_SOURCE)["source extra"]["secret_file"] = self.secret_file(config, 0)
        if self.setup.window:
            config["router"]["dedup_window"] = f"{self.setup.window}s"
        for source in config.sections if self.setup.tolerance else ():
            if source.startswith("source "):
                config[source]["tolerance"] = f"{self.setup.tolerance}s"
        return config

    @staticmethod
    def secret_file(config, number):
        return config.secret_file(f"secret-{number}", texts.SECRETS[number])

    def _receiver(self):
        """Make a receiver that keeps its port when restarted."""
        config = self.config("receiver, router" if self.setup.both else "receiver")
        config["receiver"]["listen"] = f"127.0.0.1:{self.installation.port()}"
        if self.setup.split:
            config["receiver"]["max_body"] = f"{LARGE_BODY}B"
        if self.setup.spool:
            config["receiver"]["spool"] = str(config.directory / "spool")
        if self.setup.ack_seconds:
            config["receiver"]["ack_timeout"] = f"{self.setup.ack_seconds}s"
        return self.installation.daemon(config)

    def _router(self):
        config = self.config("router")
        if self.setup.split:
            del config.sections["receiver"]
            config["source invoicing"]["tolerance"] = f"{self.rng.choice((1, 60, 3600))}s"
        daemon = self.installation.daemon(config)
        daemon.environment["GATEPOST_FEW_RECORDS"] = self.rng.choice(("0", "10000"))  # tables in turn, or all at once
        config["router"]["standby"] = self.rng.choice(("off", "on"))
        daemon.environment["GATEPOST_STANDBY_REST_MS"] = self.rng.choice(("200", "5000"))
        if self.setup.state:
            config["router"]["state"] = str(config.directory / f"{daemon.name}.state")
            daemon.environment["GATEPOST_STATE_ENTRIES"] = str(STATE_ENTRIES)
        return daemon

    def add_router(self):
        """Make another router, without starting it."""
        self.routers.append(self._router())
        return self.routers[-1]

    def start(self, rate, most):
        self._create_topics()
        for daemon in self.daemons:
            daemon.start()
        for daemon in self.receivers:
            daemon.wait_until_ready()
        addresses = [daemon.config["receiver"]["listen"] for daemon in self.receivers]
        self.deliveries = Deliveries(f"d{uuid.uuid4().hex[:8]}", trouble=self._trouble, has_extra=self.setup.has_extra,
                                     large=LARGE_BODY - 1000 if self.setup.split else 0)
        threads = 64 if self.setup.ack_seconds else 16  # a delivery that waits for one broker must not delay others
        self.sender = Sender(self.deliveries, addresses, self.setup.rate or rate, self.rng.random(), most, threads, self.setup.everywhere,
                             ca=str(self._authority.certificate) if self._authority else None)

    def _create_topics(self):
        if self.setup.layout:
            self._create_deliveries()
        replicas = str(min(3, len(self.cluster.nodes)))
        done = self.installation.gatepost("topics", "create", "--partitions", str(PARTITIONS), "--replication-factor",
                                          replicas, config=self._cli)
        assert done.returncode == 0, done.stderr

    def _create_deliveries(self):
        """Create `deliveries` with min.insync.replicas=1 and unclean elections allowed."""
        layout = [[1 + each % self.setup.brokers] for each in range(PARTITIONS)] if self.setup.layout == SINGLE else PAIR_LAYOUT
        config = {"cleanup.policy": "delete", "retention.ms": str(5 * DAY_MS), "retention.bytes": "-1",
                  "message.timestamp.type": "LogAppendTime", "max.message.bytes": str(2 << 20), "min.insync.replicas": "1",
                  "unclean.leader.election.enable": "true"}
        topic = NewTopic(self.kafka.deliveries, PARTITIONS, replica_assignment=layout, config=config)
        self.kafka.admin.create_topics([topic])[self.kafka.deliveries].result(30)
        waiting.until(lambda: self.kafka.deliveries in self.kafka.topics(), 30, "the topic of deliveries")

    # Actions of nemeses

    def note_wrong(self, what):
        self.wrong.append(what)
        self.log(f"WRONG: {what}")

    def kill(self, daemon):
        self.resume(daemon)
        if daemon.is_running():
            daemon.kill()
            self.note_restart(daemon)

    def note_restart(self, daemon):
        """Note that a receiver ends, which makes it forget the signatures that it has accepted."""
        self.receivers_restarted |= daemon in self.receivers

    def revive(self, daemon):
        """Resume or start a daemon, unless it is running. One that ended by itself is recorded as an error."""
        self.resume(daemon)
        if not daemon.is_running():
            self.note_restart(daemon)
            if daemon.process and not daemon._exit_checked:
                self.ended.append((daemon.name, daemon.process.returncode))
                self.log(f"{daemon.name} ended by itself with {daemon.process.returncode}:\n{daemon.log[-2000:]}")
            daemon.start()

    def pause(self, daemon):
        daemon.process.send_signal(signal.SIGSTOP)
        self.paused.add(daemon)

    def resume(self, daemon):
        if daemon in self.paused:
            daemon.process.send_signal(signal.SIGCONT)
            self.paused.discard(daemon)

    def reload(self, daemons):
        """Reload the configurations of these daemons, one after the other; a failed reload is an error."""
        for daemon in daemons:
            reloading.reload(daemon)

    def renew_certificates(self):
        """Make a new certificate for all receivers, which they read at the next reload."""
        self._n_certificates += 1
        certificate, key = self._authority.issue(f"certificate-{self._n_certificates}")
        for daemon in self.receivers:
            daemon.config.tls(certificate, key)

    def release(self, *arguments):
        """Run `gatepost quarantine release`. Returns the number of records released."""
        done = self.installation.gatepost("quarantine", "release", "--json", *arguments, config=self._cli)
        assert done.returncode in RELEASE_EXITS, (done.returncode, done.stderr)
        outcomes = [each["outcome"] for each in json.loads(done.stdout or "[]")]
        return outcomes.count("released")

    def committed(self):
        """Return the committed offsets of the routers' group by partition; none if they cannot be read now. Uses a new client
        each time, as a client that has seen brokers die may keep outdated metadata."""
        consumer = confluent_kafka.Consumer({"bootstrap.servers": self.cluster.bootstrap, "group.id": self.kafka.group,
                                             "enable.auto.commit": False, "log_level": 0})
        wanted = [TopicPartition(self.kafka.deliveries, each) for each in range(PARTITIONS)]
        try:
            return {each.partition: each.offset for each in consumer.committed(wanted, timeout=5) if each.offset >= 0}
        except confluent_kafka.KafkaException:
            return {}
        finally:
            consumer.close()

    def ends(self, partitions=range(PARTITIONS)):
        """Return the end offsets of these partitions of `deliveries`, or None if they cannot be read now."""
        consumer = confluent_kafka.Consumer({"bootstrap.servers": self.cluster.bootstrap, "group.id": "ends", "log_level": 0})
        try:
            return {each: consumer.get_watermark_offsets(TopicPartition(self.kafka.deliveries, each), timeout=5)[1]
                    for each in partitions}
        except confluent_kafka.KafkaException:
            return None
        finally:
            consumer.close()

    def wait_for_ends(self, partitions=range(PARTITIONS), seconds=60):
        return waiting.until(lambda: self.ends(partitions), seconds, f"the ends of partitions {list(partitions)}", step=0.5)

    def wait_until_routed_so_far(self, seconds=ROUTED_SECONDS):
        """Wait until all current records of `deliveries` are routed."""
        ends = self.wait_for_ends()

        def is_routed():
            committed = self.committed()
            return all(committed.get(partition, 0) >= end for partition, end in ends.items())
        waiting.until(is_routed, seconds, lambda: f"committed {self.committed()}, then ends {ends}", step=0.3)

    def heal(self):
        for number, node in self.cluster.nodes.items():
            if node.is_running():
                self.cluster.resume(number)
            else:
                self.cluster.start_node(number)
        for daemon in self.daemons:
            daemon.environment.pop("GATEPOST_CRASH_POINT", None)
            self.revive(daemon)

    # Results

    def settle(self):
        """Wait until all deliveries are accepted or given up, and all records are routed."""
        self.sender.stop()
        waiting.until(lambda: not self.segments(), DRAINED_SECONDS, lambda: f"the spools to be drained: {self.segments()}")
        self.wait_until_routed_so_far()
        waiting.until(self.kafka.is_settled, SETTLED_SECONDS, "the end of the routers' transactions")

    def segments(self):
        """The segments in the receivers' spools."""
        return [str(each) for daemon in self.receivers for each in daemon.config.directory.glob("spool/*.spool*")]

    def verify(self):
        """Return the findings of the independent checker."""
        report = Checker(self.kafka, self.deliveries, self.sender.ledger, self.setup.window or math.inf, self.may_lack,
                         self.cuts).run()
        report.unexpected += [each.splitlines()[0] for each in self.wrong]
        if not self.receivers_restarted:
            report.unexpected += [f"{each}: its receiver did not notice the replay" for each in report.unnoticed]
        if not self.setup.refuses and self.sender.counts()["refused"]:
            report.unexpected.append(f"{self.sender.counts()['refused']} genuine attempts were refused")
        return report

    def audit(self):
        """Return the same three counts from `gatepost audit`."""
        done = subprocess.run([self.installation.build / "gatepost", "-c", self._cli.write("audit.conf"), "audit", "--json"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=AUDIT_SECONDS, env=ENVIRONMENT)
        assert done.returncode in (0, EX_DATAERR), (done.returncode, done.stderr)
        found = json.loads(done.stdout)
        if done.returncode:
            self.log(f"the audit: {done.stderr[-4000:]}")
        return {name: found[name] for name in ("lost", "duplicated", "unexpected")}

    def describe(self):
        """Describe the state of all parts, for error messages."""
        lines = [f"sender {self.sender.counts()}"] if hasattr(self, "sender") else []
        lines.append(f"committed {self.committed()}, ends {self.ends()}")
        for daemon in self.daemons:
            try:
                state = daemon.admin("/readyz").body.decode().strip() if daemon.is_running() else "not running"
                state += "\n" + daemon.last_log(1500)
            except (OSError, IndexError) as error:
                state = repr(error)
            lines.append(f"{daemon.name} {daemon.config['gatepost']['roles']}: {state}")
        return "\n".join(lines)

    def keep_broker_logs(self, directory):
        for number, node in self.cluster.nodes.items():
            (pathlib.Path(directory) / f"broker-{number}.log").write_text(node.log_tail(3000))

    def close(self):
        """Kill all daemons and remove the topics; orderly shutdown was checked before."""
        for daemon in list(self.paused):
            self.resume(daemon)
        if hasattr(self, "sender"):
            self.sender.kill()
        for daemon in self.installation.daemons:
            if daemon.process:
                daemon.abandon()
        self.installation.release_ports()
        topics = self.kafka.topics()
        if topics:
            self.kafka.delete(*topics)
