"""An installation under fault: brokers, receivers, routers, and what became of what was sent to them."""

import json
import signal
import socket
import subprocess
import uuid

from checker import check
from daemon import ENVIRONMENT
from installation import Installation
from sender import Deliveries, Sender

# Short, so that what waits for them can be seen often; they decide when, never whether.
SESSION_SECONDS = 6
TRANSACTION_SECONDS = 8
PARTITIONS = 6
ROUTED_SECONDS = 240
AUDIT_SECONDS = 900
EX_DATAERR = 65


class World:
    def __init__(self, cluster, bootstrap, build, directory, rng, log, receivers=2, routers=2):
        self.cluster = cluster
        self.rng = rng
        self.log = log
        self.installation = Installation(directory, cluster.bootstrap, build)
        self.kafka = self.installation.kafka
        self.proxies = None  # set where there are any
        self.paused = set()
        self.ended = []  # daemons that ended by themselves, with their exit statuses
        self._bootstrap = bootstrap
        self._ports = []
        self.receivers = [self._receiver() for _ in range(receivers)]
        self.routers = [self._router() for _ in range(routers)]

    def _config(self, roles):
        config = self.installation.config(roles)
        config["kafka"].update({"bootstrap.servers": self._bootstrap, "session.timeout.ms": SESSION_SECONDS * 1000,
                                "heartbeat.interval.ms": 1000, "transaction.timeout.ms": TRANSACTION_SECONDS * 1000,
                                "socket.timeout.ms": (TRANSACTION_SECONDS - 1) * 1000})
        return config

    def _receiver(self):
        """A receiver that keeps its port when it is started again."""
        holder = socket.socket()
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        self._ports.append(holder)
        config = self._config("receiver")
        config["receiver"]["listen"] = f"127.0.0.1:{holder.getsockname()[1]}"
        return self.installation.daemon(config)

    def _router(self):
        return self.installation.daemon(self._config("router"))

    def add_router(self):
        """One more router, not started."""
        self.routers.append(self._router())
        return self.routers[-1]

    def start(self, rate, most, everywhere=False, routers=None):
        replicas = str(min(3, len(self.cluster.nodes)))
        done = self.installation.gatepost("topics", "create", "--partitions", str(PARTITIONS), "--replication-factor",
                                          replicas)
        assert done.returncode == 0, done.stderr
        for daemon in [*self.receivers, *self.routers[:routers]]:
            daemon.start()
        for daemon in self.receivers:
            daemon.wait_until_ready()
        addresses = [daemon.config["receiver"]["listen"] for daemon in self.receivers]
        self.deliveries = Deliveries(f"d{uuid.uuid4().hex[:8]}")
        self.sender = Sender(self.deliveries, addresses, rate, self.rng.random(), most, everywhere=everywhere)

    # What nemeses do

    def kill(self, daemon):
        self.resume(daemon)
        if daemon.is_running():
            daemon.kill()

    def revive(self, daemon):
        """Start it if it does not run. None may have ended by itself."""
        self.resume(daemon)
        if not daemon.is_running():
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

    def heal(self):
        for number, node in self.cluster.nodes.items():
            if node.is_running():
                self.cluster.resume(number)
            else:
                self.cluster.start_node(number)
        for daemon in [*self.receivers, *self.routers]:
            daemon.environment.pop("GATEPOST_CRASH_POINT", None)
            self.revive(daemon)

    # What became of it

    def settle(self):
        """Wait until everything that was sent is answered or given up, and everything stored is routed."""
        self.sender.stop()
        self.kafka.wait_until_routed(ROUTED_SECONDS)

    def verify(self):
        """What the independent checker finds."""
        return check(self.kafka, self.deliveries, bytes(self.sender.state))

    def audit(self):
        """What `gatepost audit` finds: the same three counts."""
        config = self.installation.config()
        config["kafka"]["bootstrap.servers"] = self.cluster.bootstrap
        done = subprocess.run([self.installation.build / "gatepost", "-c", config.write("audit.conf"), "audit", "--json"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=AUDIT_SECONDS, env=ENVIRONMENT)
        assert done.returncode in (0, EX_DATAERR), (done.returncode, done.stderr)
        found = json.loads(done.stdout)
        return {name: found[name] for name in ("lost", "duplicated", "unexpected")}

    def close(self):
        """End everything, remove the topics; how the daemons end was seen before."""
        for daemon in list(self.paused):
            self.resume(daemon)
        if hasattr(self, "sender"):
            self.sender.kill()
        for daemon in self.installation.daemons:
            if daemon.process:
                daemon.abandon()
        for holder in self._ports:
            holder.close()
        topics = self.kafka.topics()
        if topics:
            self.kafka.delete(*topics)
