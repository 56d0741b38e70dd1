"""Rules: actions of a proxy on single requests."""

import asyncio
import random
import threading
import time

CUT, KEEP, OVERTAKE = "cut", "keep", "overtake"


class Rule:
    """Acts on the first matching requests of an API: on `times` of them, on all (times=None), or on a random share. The base
    class only watches.

    Methods that begin with on_ run in the proxies' thread, the others in the tests' thread."""

    def __init__(self, proxies, api, match=None, times=1, probability=1.0, seed=0):
        self.count = 0  # number of actions
        self.requests = []  # requests that it has acted on
        self.answered = []  # time.monotonic() at which each answer is passed on; only of rules that only watch
        self._proxies = proxies
        self._api = api
        self._match = match
        self._left = times
        self._probability = probability
        self._random = random.Random(seed)
        self._changed = threading.Condition()

    def wait(self, seconds, count=1):
        """Wait until the rule has acted this often. Returns False when the time is over."""
        with self._changed:
            return self._changed.wait_for(lambda: self.count >= count, seconds)

    def end(self):
        """Stop acting."""
        with self._changed:
            self._left = 0

    def takes(self, request):
        """Return whether the rule applies to the request, which then counts as one of its times."""
        with self._changed:
            if request.api != self._api or self._left == 0 or (self._match and not self._match(request)):
                return False
            if self._random.random() >= self._probability:
                return False
            if self._left is not None:
                self._left -= 1
            return True

    def on_end(self, request):
        """Handle a connection that ended before the answer: if the rule has not acted, it may act on another request."""
        with self._changed:
            if self._left is not None and request not in self.requests:
                self._left += 1

    def _act(self, request, text):
        self._proxies.log(f"{request}: {text}")
        with self._changed:
            self.count += 1
            self.requests.append(request)
            self._changed.notify_all()

    async def on_request(self, connection, request):
        self._act(request, "seen")
        await connection.to_broker(request.frame)

    async def on_response(self, connection, response):
        self.answered.append(time.monotonic())
        await connection.to_client(response.frame)


class LoseResponse(Rule):
    """The broker processes the request, but the client gets no response."""

    def __init__(self, proxies, api, connection=CUT, **options):
        super().__init__(proxies, api, **options)
        self._connection = connection

    async def on_request(self, connection, request):
        await connection.to_broker(request.frame)

    async def on_response(self, connection, response):
        if self._connection == CUT:
            connection.cut()
        self._act(response.request, f"response lost (error {response.error}), connection {self._connection}")


class Refuse(Rule):
    """The response is replaced with this error."""

    def __init__(self, proxies, api, error, **options):
        super().__init__(proxies, api, **options)
        self._error = error

    async def on_request(self, connection, request):
        await connection.to_broker(request.frame)

    async def on_response(self, connection, response):
        self._act(response.request, f"answered with error {self._error}")
        await connection.to_client(response.with_error(self._error))


class Delay(Rule):
    """Requests or responses are delayed, with everything behind them on the connection."""

    def __init__(self, proxies, api, seconds, of="response", **options):
        super().__init__(proxies, api, **options)
        self._seconds = seconds
        self._of = of

    async def _delay(self, of, request):
        if of == self._of:
            self._act(request, f"{of} delayed {self._seconds} s")
            await asyncio.sleep(self._seconds)

    async def on_request(self, connection, request):
        await self._delay("request", request)
        await connection.to_broker(request.frame)

    async def on_response(self, connection, response):
        await self._delay("response", response.request)
        await connection.to_client(response.frame)


class HoldRequest(Rule):
    """One request is held until release(). Meanwhile its client's connection is closed; or kept, and later requests are held
    as well; or later requests overtake it."""

    def __init__(self, proxies, api, connection=CUT, **options):
        super().__init__(proxies, api, **options)
        self.response = None
        self._connection = connection
        self._released = asyncio.Event()
        self._answered = asyncio.Event()

    def release(self):
        """Send the request to the broker, on its original connection."""
        self._proxies.call(self._released.set)

    def wait_for_response(self, seconds):
        """Wait for the broker's response after release(). Returns it, or None if there is none within this time."""
        with self._changed:
            self._changed.wait_for(lambda: self.response is not None, seconds)
        return self.response

    async def on_request(self, connection, request):
        if self._connection == CUT:
            connection.cut_client()
        self._act(request, f"held, connection {self._connection}")
        if self._connection == OVERTAKE:
            connection.start(self._pass_on(connection, request))
        else:
            await self._pass_on(connection, request)
        if self._connection == CUT:
            await self._answered.wait()  # keep the connection to the broker until then

    async def _pass_on(self, connection, request):
        await self._released.wait()
        self._proxies.log(f"{request}: released")
        await connection.to_broker(request.frame)

    async def on_response(self, connection, response):
        self._proxies.log(f"{response.request}: answered after release, error {response.error}")
        with self._changed:
            self.response = response
            self._changed.notify_all()
        await connection.to_client(response.frame)
        self._answered.set()


class RefuseProduce(Rule):
    """Answers with an error for each partition."""

    def __init__(self, proxies, error, **options):
        super().__init__(proxies, "Produce", **options)
        self._error = error

    async def on_request(self, connection, request):
        self._act(request, "refused")
        await connection.to_client(request.refused_produce(self._error))


class RefuseFirst(Rule):
    """Simulates a broker that becomes leader between two Produce requests in flight: the first is refused and never stored, the
    second is accepted."""

    def __init__(self, proxies, error, **options):
        super().__init__(proxies, "Produce", times=2, **options)
        self._error = error
        self._first = None

    async def on_request(self, connection, request):
        if self._first is None:
            self._first = request
            self._act(request, "held")
            return
        await connection.to_client(self._first.refused_produce(self._error))
        self._act(request, f"passed on, {self._first} answered with error {self._error}")
        await connection.to_broker(request.frame)

    async def on_response(self, connection, response):
        await connection.to_client(response.frame)
