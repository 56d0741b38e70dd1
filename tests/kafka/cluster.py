"""Apache Kafka in KRaft mode for tests: one broker or three, each a child process with its own directory.

    with Cluster(nodes=3) as cluster:
        ... cluster.bootstrap ...
        cluster.kill(2); cluster.start_node(2)
        cluster.pause(1); cluster.resume(1)

Cluster(proxied=True) gives each broker a second listener that advertises the port of a proxy. Clients that bootstrap at
proxied_bootstrap connect through the proxies of tests/faults, which the caller starts; other clients connect directly.

Cluster(internal=True) does the same for the connections between brokers, through which they replicate.

Cluster(small_disk=(NODE, MIB)) gives this node a second log directory on a file system of this size, which holds about half
of its partitions: cluster.small_disk. This requires root.

Cluster(secured=FILE) enables an authorizer (StandardAuthorizer), and gives each broker a listener with authentication by
SCRAM-SHA-512, or with passwords={user: password} by PLAIN, over TLS with the certificate and key in this PEM file:
cluster.secured_bootstrap. Connections to the plain listener, from brokers and tests, belong to the super user.

The state of a cluster is in its directory (cluster.json), so that another process can attach to it: Cluster.attach().
A cluster signals only processes that it has started: by pid, after comparing the start time that the kernel recorded.
"""

import base64
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import uuid

import archive
import jars
import ports
import protocol

HERE = pathlib.Path(__file__).resolve().parent
START_SECONDS = 90
STOP_SECONDS = 30
JAVA = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}"]


class ClusterError(Exception):
    pass


def _start_time(pid):
    """Return the start time of a process in ticks since boot; None if it has ended or is a zombie."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[19])


def _wait(condition, seconds):
    """Wait until the condition holds. Returns False when the time is over."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


class Node:
    """A broker, which is also a controller."""

    def __init__(self, number, directory, port, controller_port, pid=None, started=None, proxied_port=None,
                 proxy_port=None, secured_port=None, internal_port=None, internal_proxy_port=None):
        self.number = number
        self.directory = pathlib.Path(directory)
        self.port = port
        self.controller_port = controller_port
        self.proxied_port = proxied_port  # port for connections from its proxy, or None
        self.proxy_port = proxy_port  # port where its proxy listens for clients
        self.internal_port = internal_port  # port for connections from its internal proxy, or None
        self.internal_proxy_port = internal_proxy_port  # port where the internal proxy listens
        self.secured_port = secured_port  # port that requires authentication, or None
        self.pid = pid
        self.started = started
        self.process = None  # set only if this Python process is the parent
        self.log_begins = 0  # offset in the log file at which the current run starts

    @property
    def log(self):
        return self.directory / "broker.log"

    @property
    def properties(self):
        return self.directory / "server.properties"

    def is_running(self):
        if self.process:
            self.process.poll()  # reap it, so that a zombie does not count as running
        return self.pid is not None and self.started is not None and _start_time(self.pid) == self.started

    def start(self, class_path, options):
        with open(self.log, "ab") as log:
            self.log_begins = log.tell()
            self.process = subprocess.Popen([*JAVA, *options, "-cp", class_path, "kafka.Kafka", self.properties],
                                            cwd=self.directory, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT, start_new_session=True)
        self.pid = self.process.pid
        self.started = _start_time(self.pid)

    def signal(self, number):
        if not self.is_running():
            raise ClusterError(f"node {self.number} is not running")
        os.kill(self.pid, number)

    def is_stopped(self):
        """Return whether all threads are stopped; a process needs a moment to stop after SIGSTOP."""
        states = [stat.read_text().rpartition(")")[2].split()[0]
                  for stat in pathlib.Path(f"/proc/{self.pid}/task").glob("*/stat")]
        return bool(states) and set(states) == {"T"}

    def wait_until_gone(self, seconds):
        return _wait(lambda: not self.is_running(), seconds)

    def log_of_run(self):
        return self.log.read_bytes()[self.log_begins:].decode(errors="replace")

    def log_tail(self, lines=40):
        try:
            tail = self.log.read_text(errors="replace").splitlines()[-lines:]
        except OSError:
            tail = ["(no log)"]
        return f"--- end of {self.log}\n" + "\n".join(tail)


class Cluster:
    def __init__(self, nodes=1, directory=None, port=None, proxied=False, properties=None, secured=None,
                 passwords=None, internal=False, small_disk=None):
        """A cluster that is not started yet. The default directory is temporary and removed by stop(). port is that of the
        first node (default: a free port). proxied and internal reserve ports for proxies between clients and brokers, and
        between brokers; small_disk is a node's number and the size of its second disk in MiB; secured is the file with the
        brokers' certificate and key; passwords are those of PLAIN users; properties are added to the usual ones."""
        self._secured = secured
        self._passwords = passwords or {}
        self._properties = properties or {}
        self._own_directory = directory is None
        self.directory = pathlib.Path(directory or tempfile.mkdtemp(prefix="gatepost-kafka-")).absolute()
        self.directory.mkdir(parents=True, exist_ok=True)
        self._reserved = []
        self.nodes = {}
        for number in range(1, nodes + 1):
            client_port = port if port and number == 1 else self._reserve_port()
            proxy_ports = (self._reserve_port(), self._reserve_port()) if proxied else (None, None)
            internal_ports = (self._reserve_port(), self._reserve_port()) if internal else (None, None)
            self.nodes[number] = Node(number, self.directory / f"node{number}", client_port, self._reserve_port(),
                                      proxied_port=proxy_ports[0], proxy_port=proxy_ports[1],
                                      internal_port=internal_ports[0], internal_proxy_port=internal_ports[1],
                                      secured_port=self._reserve_port() if secured else None)
        self._small = small_disk
        self._mounted = False

    def _reserve_port(self):
        """Reserve a port as long as there is the cluster, also while its node is down."""
        self._reserved.append(ports.reserve())
        return ports.number_of(self._reserved[-1])

    @classmethod
    def attach(cls, directory):
        """Return the cluster that another process started in this directory."""
        cluster = cls(nodes=0, directory=directory)
        try:
            state = json.loads((cluster.directory / "cluster.json").read_text())
        except OSError:
            raise ClusterError(f"there is no cluster in {cluster.directory}") from None
        cluster.nodes = {node["number"]: Node(**node) for node in state["nodes"]}
        return cluster

    def _save(self):
        fields = ("number", "port", "controller_port", "proxied_port", "proxy_port", "secured_port", "internal_port",
                  "internal_proxy_port", "pid", "started")
        nodes = [{"directory": str(node.directory)} | {field: getattr(node, field) for field in fields}
                 for node in self.nodes.values()]
        scratch = self.directory / "cluster.json.new"
        scratch.write_text(json.dumps({"nodes": nodes}, indent=1) + "\n")
        scratch.rename(self.directory / "cluster.json")

    @property
    def small_disk(self):
        """Return the node's number and the mount point of its small disk."""
        return self._small[0], self.nodes[self._small[0]].directory / "small"

    def _mount(self):
        _, path = self.small_disk
        path.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self._small[1]}m", "gatepost-tests", path], check=True)
        self._mounted = True

    def _unmount(self):
        if self._mounted:
            subprocess.run(["umount", "--lazy", self.small_disk[1]], check=True)
            self._mounted = False

    @property
    def bootstrap(self):
        return ",".join(f"127.0.0.1:{node.port}" for node in self.nodes.values())

    @property
    def proxied_bootstrap(self):
        return ",".join(f"127.0.0.1:{node.proxy_port}" for node in self.nodes.values())

    @property
    def secured_bootstrap(self):
        return ",".join(f"127.0.0.1:{node.secured_port}" for node in self.nodes.values())

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def start(self):
        """Format new data directories, start all nodes, and wait until they are ready. Returns the cluster."""
        archive.ensure(self._make_archive)
        return self._start(archive.options())

    @classmethod
    def _make_archive(cls, path):
        cls()._start(archive.making(path)).stop()

    def _start(self, options):
        self._class_path = jars.class_path()
        try:
            self._format()
            for node in self.nodes.values():
                node.start(self._class_path, options)
            self._save()
            self._wait_until_ready(self.nodes.values())
        except BaseException:
            self.stop()
            raise
        return self

    def start_node(self, number):
        """Restart a node that was killed or stopped, and wait until it is ready."""
        node = self._node(number)
        if node.is_running():
            raise ClusterError(f"node {number} is running already")
        node.start(jars.class_path(), archive.options())
        self._save()
        self._wait_until_ready([node])

    def stop(self):
        """Stop all nodes with SIGTERM, or SIGKILL if that fails, and remove the data."""
        running = [node for node in self.nodes.values() if node.is_running()]
        for node in running:
            node.signal(signal.SIGCONT)
            node.signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        for node in running:
            if not node.wait_until_gone(max(0.0, deadline - time.monotonic())):
                node.signal(signal.SIGKILL)
                node.wait_until_gone(STOP_SECONDS)
        for holder in self._reserved:
            holder.close()
        self._unmount()
        self._remove_data()

    def _remove_data(self):
        if self._own_directory:
            shutil.rmtree(self.directory, ignore_errors=True)
            return
        for node in self.nodes.values():
            shutil.rmtree(node.directory, ignore_errors=True)
        (self.directory / "cluster.json").unlink(missing_ok=True)

    def kill(self, number):
        """Kill a node with SIGKILL."""
        node = self._node(number)
        node.signal(signal.SIGKILL)
        if not node.wait_until_gone(STOP_SECONDS):
            raise ClusterError(f"node {number} survived SIGKILL")

    def pause(self, number):
        """Suspend a node with SIGSTOP: its connections stay open, but it does not respond."""
        node = self._node(number)
        node.signal(signal.SIGSTOP)
        if not _wait(node.is_stopped, STOP_SECONDS):
            raise ClusterError(f"node {number} did not stop")

    def resume(self, number):
        self._node(number).signal(signal.SIGCONT)

    def _node(self, number):
        try:
            return self.nodes[number]
        except KeyError:
            raise ClusterError(f"there is no node {number}") from None

    def _format(self):
        """Write the properties of each node, and format all data directories in parallel."""
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        tools = []
        for node in self.nodes.values():
            shutil.rmtree(node.directory, ignore_errors=True)
            node.directory.mkdir()
            if self._small and self._small[0] == node.number:
                self._mount()
            node.properties.write_text(self._server_properties(node))
            tools.append(subprocess.Popen(
                [*JAVA, *archive.options(), "-cp", self._class_path, "kafka.tools.StorageTool", "format",
                 f"--cluster-id={cluster_id}", "-c", node.properties],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        for tool in tools:
            output, _ = tool.communicate()
            if tool.returncode != 0:
                raise ClusterError(f"the storage tool failed:\n{output}")

    def _server_properties(self, node):
        replicas = len(self.nodes)
        in_sync = 2 if replicas > 1 else 1
        listeners, advertised = self._listeners(node)
        voters = ",".join(f"{each.number}@127.0.0.1:{each.controller_port}" for each in self.nodes.values())
        return "".join(f"{name}={value}\n" for name, value in {
            "process.roles": "broker,controller",
            "node.id": node.number,
            "controller.quorum.voters": voters,
            "listeners": listeners,
            "advertised.listeners": advertised,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,INTERNAL:PLAINTEXT,SECURED:SASL_SSL,"
                                              "CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "INTERNAL" if node.internal_port else "PLAINTEXT",
            "log.dirs": ",".join(str(each) for each in self._log_directories(node)),
            "metadata.log.dir": node.directory / "data",
            "auto.create.topics.enable": "false",
            "default.replication.factor": replicas,
            "min.insync.replicas": in_sync,
            "offsets.topic.num.partitions": 4,
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.num.partitions": 4,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": in_sync,
            "share.coordinator.state.topic.replication.factor": replicas,
            "share.coordinator.state.topic.min.isr": in_sync,
            # Shorter than the defaults, so that tests need not wait.
            "group.initial.rebalance.delay.ms": 0,
            "broker.heartbeat.interval.ms": 1000,
            "broker.session.timeout.ms": 6000,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
            # Sized for a small machine.
            "num.network.threads": 2,
            "num.io.threads": 4,
            "background.threads": 2,
            "log.segment.bytes": 64 << 20,
            "log.index.size.max.bytes": 1 << 20,
            "log.cleaner.dedupe.buffer.size": 4 << 20,
            "log.cleaner.io.buffer.size": 128 << 10,
            **(self._security() if self._secured else {}),
            **self._properties,
        }.items())

    def _log_directories(self, node):
        has_small = self._small and self._small[0] == node.number
        return [node.directory / "data"] + ([self.small_disk[1] / "data"] if has_small else [])

    def _security(self):
        """Properties of a broker with authentication and authorization."""
        listener = "listener.name.secured."
        users = " ".join(f'user_{name}="{password}"' for name, password in self._passwords.items())
        return {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            listener + "ssl.keystore.type": "PEM",
            listener + "ssl.keystore.location": self._secured,
            listener + "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
            listener + "plain.sasl.jaas.config":
                f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};",
            listener + "scram-sha-512.sasl.jaas.config":
                "org.apache.kafka.common.security.scram.ScramLoginModule required;",
        }

    @staticmethod
    def _listeners(node):
        """Return the values of listeners and advertised.listeners."""
        listeners = [f"PLAINTEXT://127.0.0.1:{node.port}", f"CONTROLLER://127.0.0.1:{node.controller_port}"]
        advertised = [f"PLAINTEXT://127.0.0.1:{node.port}"]
        if node.proxied_port:
            listeners.append(f"PROXIED://127.0.0.1:{node.proxied_port}")
            advertised.append(f"PROXIED://127.0.0.1:{node.proxy_port}")
        if node.internal_port:
            listeners.append(f"INTERNAL://127.0.0.1:{node.internal_port}")
            advertised.append(f"INTERNAL://127.0.0.1:{node.internal_proxy_port}")
        if node.secured_port:
            listeners.append(f"SECURED://127.0.0.1:{node.secured_port}")
            advertised.append(f"SECURED://127.0.0.1:{node.secured_port}")
        return ",".join(listeners), ",".join(advertised)

    def _wait_until_ready(self, nodes):
        """Wait until each of these nodes serves clients and lists all nodes in its metadata that run and are not paused."""
        expected = {node.number for node in self.nodes.values() if node.is_running() and not node.is_stopped()}
        deadline = time.monotonic() + START_SECONDS
        for node in nodes:
            while not self._serves(node, expected):
                if not node.is_running() or time.monotonic() > deadline:
                    raise ClusterError(f"node {node.number} did not start\n{node.log_tail()}")
                time.sleep(0.05)

    @staticmethod
    def _serves(node, expected):
        try:
            return protocol.known_brokers(node.port) >= expected
        except OSError:
            return False
