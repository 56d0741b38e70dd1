"""The subjects: Gatepost, bare evhttp, and the alternatives. Each is a process that accepts deliveries on a port of
127.0.0.1, or one that routes them."""

import os
import pathlib
import re
import signal
import socket
import subprocess

import ports
import waiting
from signing import KINDS, event_topic

SECRET = "a secret of the measurements"
KIND = "invoice.accepted"  # of all deliveries
HERE = pathlib.Path(__file__).resolve().parent
START_SECONDS = 60
READY_STEP_SECONDS = 0.005  # resolution of start-up times
STOP_SECONDS = 40


def accepts(port):
    with socket.socket() as attempt:
        return attempt.connect_ex(("127.0.0.1", port)) == 0


def with_kinds(config, n):
    """Add the load generator's n kinds to the configuration, each with its own topic; 0: no change."""
    prefix = config["topics"]["prefix"]
    if n > 0:
        config["events"].update({f"kind.{each:04}": f"{prefix}.kind.{each:04}" for each in range(n)})
    return config


class Subject:
    """A context manager that runs the process."""
    tls = False
    secret = SECRET.encode()
    name = ""
    process = None
    port = None
    log_path = None

    def command(self):
        raise NotImplementedError

    def environment(self):
        return {}

    def is_ready(self):
        return accepts(self.port)

    def published(self, delivery):
        """Return the topic and the key of the record that is published for a delivery."""
        raise NotImplementedError

    def record_headers(self, delivery):
        """Return headers that this record must have; it may have more."""
        raise NotImplementedError

    def whole(self):
        """Return the subject with every part that a delivery passes on its way to consumers."""
        return self

    def settle(self):
        """Wait until all answered deliveries are processed."""

    def log(self):
        return self.log_path.read_text(errors="replace")[-4000:] if self.log_path else ""

    def __enter__(self):
        self._holder = ports.reserve()
        self.port = ports.number_of(self._holder)
        self.log_path = self.directory / f"{self.name.replace(' ', '-').replace(',', '')}-{self.port}.log"
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=os.environ | self.environment(), cwd=self.directory)
        try:
            waiting.until(lambda: self.is_ready() or self.process.poll() is not None, START_SECONDS,
                          lambda: f"{self.name} to be ready:\n{self.log()}", READY_STEP_SECONDS)
            assert self.process.poll() is None, f"{self.name} ended:\n{self.log()}"
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._holder.close()

    def resident_kib(self, field="VmRSS"):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition(f"{field}:")[2].split()[0])

    def most_resident_kib(self):
        return self.resident_kib("VmHWM")


class Bare(Subject):
    """evhttp that reads the body and answers 200: the lower bound for a receiver on evhttp."""

    def __init__(self, build, directory, at_once=False, appends_to=None):
        """at_once makes fewer system calls: the lower bound for any server on evhttp. appends_to is an installation to whose
        topic bodies are appended: the lower bound for one that also uses librdkafka."""
        self.build, self.directory, self.at_once, self.appends_to = build, directory, at_once, appends_to
        self.name = "bare evhttp at once" if at_once else "bare evhttp"
        if appends_to:
            self.name += ", appending"

    def command(self):
        where = [self.appends_to.bootstrap, self.appends_to.kafka.deliveries] if self.appends_to else []
        return [self.build / "bare", str(self.port)] + (["--at-once", *where] if self.at_once else [])


class Gatepost(Subject):
    def __init__(self, installation, roles="receiver", name="gatepost", tls=None, kinds=0, **receiver):
        """tls is the files of a certificate and a key; kinds is the number of extra kinds; other arguments are options of
        [receiver]."""
        self.installation, self.roles, self.tls_files, self.kinds = installation, roles, tls, kinds
        self.name, self.receiver = name, receiver
        self.tls = tls is not None
        self.directory = installation.directory
        self.admin_port = None

    def command(self):
        config = self.installation.config(self.roles)
        self.admin_port = self.installation.port()
        config["receiver"]["listen"] = f"127.0.0.1:{self.port}"
        config["receiver"].update({"max_in_flight": "1GiB"} | self.receiver)  # the alternatives have no bound
        with_kinds(config, self.kinds)
        config["admin"]["listen"] = f"127.0.0.1:{self.admin_port}"
        config["source invoicing"]["secret_file"] = config.secret_file("bench", SECRET.encode())
        if self.tls:
            config.tls(*self.tls_files)
        return [self.installation.build / "gatepostd", "-c", config.write()]

    def whole(self):
        self.roles = "receiver, router"
        return self

    def settle(self):
        self.installation.kafka.wait_until_routed()

    def published(self, delivery):
        return f"{self.installation.prefix}.{KIND}", KIND.encode()

    def record_headers(self, delivery):
        return {"content-type": "application/json", "ce_specversion": "1.0", "ce_id": delivery.delivery_id,
                "ce_type": KIND, "ce_source": "/invoicing", "ce_webhookid": delivery.webhook_id}

    def is_ready(self):
        try:
            return accepts(self.admin_port) and self.get("/readyz").startswith("HTTP/1.1 200")
        except ConnectionError:
            return False  # the process may just have ended

    def get(self, path):
        """Return the complete answer of the admin endpoint."""
        with socket.create_connection(("127.0.0.1", self.admin_port), timeout=10) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            return b"".join(iter(lambda: connection.recv(65536), b"")).decode()

    def n_routed(self):
        return self.metric("gatepost_events_total")

    def metric(self, name):
        """Return the sum of a metric's samples."""
        return sum(float(line.rpartition(" ")[2]) for line in self.get("/metrics").splitlines()
                   if line.startswith((name + " ", name + "{")))


class Relay(Subject):
    """Copies records in the router's place, without decisions: the lower bound for transactions."""
    name = "relay"

    def __init__(self, installation):
        self.installation, self.directory = installation, installation.directory

    def command(self):
        kafka = self.installation.kafka
        return [self.installation.build / "relay", self.installation.bootstrap, kafka.deliveries,
                f"{self.installation.prefix}.{KIND}", f"{self.installation.prefix}.relay"]

    def is_ready(self):
        return "ready" in self.log().splitlines()

    def n_routed(self):
        return max((int(line.split()[1]) for line in self.log().splitlines() if re.fullmatch(r"routed \d+", line)), default=0)


def build_alternative(kind, build):
    """Build the program in this directory of alternatives/."""
    directory = build / "alternatives" / kind
    directory.mkdir(parents=True, exist_ok=True)
    subprocess.run([HERE / "alternatives" / kind / "build", directory], check=True, stdin=subprocess.DEVNULL)


class Peer(Subject):
    """A program of alternatives/ in the router's place."""

    def __init__(self, installation, kind, build, **settings):
        self.kind, self.build_directory, self.settings = kind, build / "alternatives" / kind, settings
        self.installation, self.directory = installation, installation.directory
        self.group = f"{installation.prefix}.{kind}"
        self.name = " ".join([kind, *(f"{name} {value}" for name, value in settings.items())])

    def command(self):
        return [HERE / "alternatives" / self.kind / "run", self.build_directory]

    def environment(self):
        events = " ".join(f"{kind}={self.installation.prefix}.{event_topic(kind)}" for kind in KINDS)
        kafka = self.installation.kafka
        return {"BOOTSTRAP": self.installation.bootstrap, "DELIVERIES": kafka.deliveries, "GROUP": self.group,
                "EVENTS": events, "QUARANTINE": kafka.quarantine, "CE_SOURCE": "/invoicing",
                } | {name.upper(): str(value) for name, value in self.settings.items()}

    def is_ready(self):
        return "ready" in self.log().splitlines()

    def n_routed(self):
        """The number of records behind the offsets that it has committed with its transactions."""
        return sum(self.installation.kafka.committed(self.group).values())


class Alternative(Subject):
    """A directory of alternatives/ with two scripts: `build` makes the program, `run` executes it."""

    def __init__(self, installation, kind, build, tls=None, **settings):
        """tls is the files of a certificate and a key."""
        self.kind, self.build_directory, self.settings = kind, build / "alternatives" / kind, settings
        self.tls_files, self.tls = tls, tls is not None
        self.directory = installation.directory
        self.bootstrap, self.topic = installation.bootstrap, installation.kafka.deliveries
        self.name = " ".join([kind, *(f"{name} {value}" for name, value in settings.items()), *["tls"] * self.tls])

    def published(self, delivery):
        return self.topic, delivery.delivery_id.encode()

    def record_headers(self, delivery):
        values = {"source": "invoicing", "webhook-id": delivery.webhook_id, "timestamp": str(delivery.timestamp),
                  "signature": delivery.signature, "instance": "bench"}
        return {f"gatepost-{name}": value for name, value in values.items()}

    def command(self):
        return [HERE / "alternatives" / self.kind / "run", self.build_directory]

    def environment(self):
        return {"PORT": str(self.port), "BOOTSTRAP": self.bootstrap, "TOPIC": self.topic, "SECRET": SECRET,
                "WEBHOOK_PATH": "/webhooks/invoicing", "HEADER_PREFIX": "x-invoicing", "TOLERANCE_S": "300",
                } | dict(zip(["TLS_CERTIFICATE", "TLS_KEY"], map(str, self.tls_files or []))) | {
                    name.upper(): str(value) for name, value in self.settings.items()}
