"""TCP proxies between Kafka clients and the brokers of a Cluster(proxied=True), which can act on single requests.

    with Proxies(cluster, log) as proxies:
        rule = proxies.lose_response("EndTxn")
        ... clients of cluster.proxied_bootstrap ...
        assert rule.wait(10)

Frames are passed on whole; if no rule acts on them, only the header of requests is parsed. A connection is closed when one
of its sides is, so that clients of a dead broker see a closed connection, and then connections that close at once.
"""

import asyncio
import collections
import contextlib
import threading
import time

import rules
import wire

REMEMBERED_REQUESTS = 1000  # of each API
ENDS = (asyncio.IncompleteReadError, OSError)


class Connection:
    """A client's connection, and its counterpart to the broker."""

    def __init__(self, proxy, client, broker):
        self._proxy = proxy
        self._from_client, self._to_client = client
        self._from_broker, self._to_broker = broker
        self._client_is_cut = False
        self._awaited = {}  # (rule, request) by correlation id
        self._tasks = []

    async def run(self):
        """Pass on frames until a side closes."""
        pumps = [self.start(self._requests()), self.start(self._responses())]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in self._tasks:
                task.cancel()
            results = await asyncio.gather(*self._tasks, return_exceptions=True)
            self.cut()
            for rule, request in self._awaited.values():
                rule.on_end(request)
        for result in results:
            if isinstance(result, Exception) and not isinstance(result, ENDS):
                raise result

    def start(self, coroutine):
        """Run a coroutine as long as the connection exists."""
        self._tasks.append(asyncio.ensure_future(coroutine))
        return self._tasks[-1]

    async def _requests(self):
        while True:
            frame = await wire.read_frame(self._from_client)
            await self._proxy.thawed.wait()
            request = wire.Request.parse(self._proxy.node.number, frame)
            rule = self._proxy.proxies.rule_for(request)
            if rule is None:
                await self.to_broker(frame)
            else:
                self._awaited[request.correlation] = rule, request
                await rule.on_request(self, request)

    async def _responses(self):
        while True:
            frame = await wire.read_frame(self._from_broker)
            await self._proxy.thawed.wait()
            rule, request = self._awaited.pop(wire.correlation_of(frame), (None, None))
            if rule is None:
                await self.to_client(frame)
            else:
                await rule.on_response(self, wire.Response(request, frame))

    async def to_broker(self, frame):
        self._to_broker.write(frame)
        await self._to_broker.drain()

    async def to_client(self, frame):
        if self._client_is_cut:
            return
        self._to_client.write(frame)
        await self._to_client.drain()

    def cut_client(self):
        """Close the client's connection after sending pending bytes; keep the connection to the broker."""
        self._client_is_cut = True
        self._to_client.close()

    def cut(self):
        self.cut_client()
        self._to_broker.close()


class Proxy:
    """The proxy of one listener of a broker."""

    def __init__(self, proxies, node, port, broker_port):
        self.proxies = proxies
        self.node = node
        self._port = port
        self._broker_port = broker_port
        self.thawed = asyncio.Event()
        self.thawed.set()
        self._connections = {}  # by task; None until connected
        self._server = None

    async def open(self):
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)

    async def close(self):
        self._server.close()
        tasks = list(self._connections)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, *client):
        task = asyncio.current_task()
        self._connections[task] = None
        try:
            await self._serve(task, client)
        except asyncio.CancelledError:
            pass  # by close(); asyncio logs an error if a server's handler is cancelled
        finally:
            del self._connections[task]
            client[1].transport.abort()  # harmless if already closed

    async def _serve(self, task, client):
        await self.thawed.wait()
        try:
            broker = await asyncio.open_connection("127.0.0.1", self._broker_port)
        except OSError:
            return
        self._connections[task] = Connection(self, client, broker)
        await self._connections[task].run()

    def cut(self):
        for connection in filter(None, self._connections.values()):
            connection.cut()


class Proxies:
    """The proxies of all nodes of a cluster, in one thread."""

    def __init__(self, cluster, log=print, internal=False):
        """log is called with each line, from the proxies' thread. With internal, the proxies are between the brokers."""
        self._log = log
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._proxies = {number: Proxy(self, node, *((node.internal_proxy_port, node.internal_port) if internal else
                                                     (node.proxy_port, node.proxied_port)))
                         for number, node in cluster.nodes.items()}
        self._rules = []
        self._seen = collections.defaultdict(lambda: collections.deque(maxlen=REMEMBERED_REQUESTS))
        self._changed = threading.Condition()

    def __enter__(self):
        self._thread.start()
        self._run(*(proxy.open() for proxy in self._proxies.values()))
        return self

    def __exit__(self, *_):
        with contextlib.suppress(Exception):
            self._run(*(proxy.close() for proxy in self._proxies.values()))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, *coroutines):
        """Run these coroutines in the proxies' thread, and wait until they are done."""
        async def together():
            await asyncio.gather(*coroutines)
        asyncio.run_coroutine_threadsafe(together(), self._loop).result(30)

    def call(self, function):
        """Call a function in the proxies' thread, and wait until it returns."""
        async def run():
            function()
        self._run(run())

    def log(self, text):
        now = time.time()
        self._log(f"{time.strftime('%H:%M:%S', time.localtime(now))}.{int(now % 1 * 1000):03} proxy: {text}")

    # Rules. Each accepts `match` (a predicate of wire.Request), `times` (default 1; None: all), `probability` and `seed`.

    def watch(self, api, **options):
        """Watch for requests, without changing anything."""
        return self._add(rules.Rule(self, api, **options))

    def lose_response(self, api, connection=rules.CUT, **options):
        """Drop the broker's response."""
        return self._add(rules.LoseResponse(self, api, connection, **options))

    def refuse(self, api, error, **options):
        """Replace the broker's response with an error."""
        return self._add(rules.Refuse(self, api, error, **options))

    def refuse_first(self, error, **options):
        """Refuse the first of two Produce requests without storing it, and pass on the second."""
        return self._add(rules.RefuseFirst(self, error, **options))

    def refuse_produce(self, error, **options):
        """Refuse a Produce request without storing it."""
        return self._add(rules.RefuseProduce(self, error, **options))

    def delay(self, api, seconds, of="response", **options):
        """Delay requests or responses."""
        return self._add(rules.Delay(self, api, seconds, of, **options))

    def hold_request(self, api, connection=rules.CUT, **options):
        """Hold the request until rule.release()."""
        return self._add(rules.HoldRequest(self, api, connection, **options))

    def clear(self):
        """End all rules. Requests on hold stay on hold."""
        with self._changed:
            ended, self._rules = self._rules, []
        for rule in ended:
            rule.end()

    def _add(self, rule):
        with self._changed:
            self._rules.append(rule)
        return rule

    def rule_for(self, request):
        """Record the request, and return the first rule that applies to it, or None."""
        with self._changed:
            head = wire.Request(request.node, request.api, request.version, request.correlation, b"", request.seconds)
            self._seen[request.api].append(head)
            self._changed.notify_all()
            return next((rule for rule in self._rules if rule.takes(request)), None)

    # Nodes

    def cut(self, node=None):
        """Close all connections of a node, or of all nodes."""
        chosen = self._chosen(node)
        self.call(lambda: [proxy.cut() for proxy in chosen])
        self.log(f"node {node or 'any'}: connections cut")

    def freeze(self, node=None):
        """Stop passing frames; connections are still accepted."""
        chosen = self._chosen(node)
        self.call(lambda: [proxy.thawed.clear() for proxy in chosen])
        self.log(f"node {node or 'any'}: frozen")

    def thaw(self, node=None):
        chosen = self._chosen(node)
        self.call(lambda: [proxy.thawed.set() for proxy in chosen])
        self.log(f"node {node or 'any'}: thawed")

    def _chosen(self, node):
        return [self._proxies[node]] if node else list(self._proxies.values())

    # Requests that were seen

    def wait_for_request(self, api, since, seconds=30):
        """Wait for a request of the API that arrives after the time `since` (time.monotonic()). Returns its header, or None
        if none arrives within this time."""
        def found():
            return next((request for request in self._seen[api] if request.seconds >= since), None)
        with self._changed:
            return self._changed.wait_for(found, seconds)
