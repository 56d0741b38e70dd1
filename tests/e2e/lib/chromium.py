"""Headless Chromium, controlled over a pipe with the DevTools protocol."""

import base64
import fcntl
import itertools
import json
import os
import select
import shutil
import subprocess
import time

import waiting

ANSWER_SECONDS = 60
END_SECONDS = 20
FREE_FROM = 10
QUIET = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
         "--no-default-browser-check", "--disable-background-networking", "--disable-component-update",
         "--disable-extensions", "--disable-sync", "--disable-breakpad", "--no-proxy-server",
         "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]


class Chromium:
    """A browser with its own profile that can reach only this machine. A context manager."""

    def __init__(self, directory):
        self._profile = directory / "chromium"
        self._log = directory / "chromium.log"
        self._numbers = itertools.count(1)
        self._unread = b""
        self._process = None
        self.events = []  # (session, method, params)

    def __enter__(self):
        program = shutil.which("chromium")
        assert program, "chromium is not installed; tests/run installs it"
        (commands, self._out), (self._in, answers) = os.pipe(), os.pipe()
        # The browser reads commands from descriptor 3 and answers on 4; use higher ones here to avoid a conflict.
        theirs = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, FREE_FROM) for fd in (commands, answers)]
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                ["bash", "-c", 'exec "$0" "$@" 3<&%d 4>&%d' % tuple(theirs), program, *QUIET,
                 "--remote-debugging-pipe", f"--user-data-dir={self._profile}"], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, pass_fds=theirs, start_new_session=True,
                env={**os.environ, "HOME": str(self._profile)})
        for fd in (commands, answers, *theirs):
            os.close(fd)
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
            self._process.wait(END_SECONDS)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        os.close(self._in)

    def call(self, method, session=None, **params):
        """Call a method. Returns the result."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            answer = self._next(deadline, method)
            if answer.get("id") == number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]

    def _next(self, deadline, method):
        """The next message; events are also recorded."""
        while b"\0" not in self._unread:
            readable, _, _ = select.select([self._in], [], [], max(0, deadline - time.monotonic()))
            data = os.read(self._in, 1 << 16) if readable else b""
            assert data, f"chromium does not answer to {method}:\n{self._log.read_text(errors='replace')[-2000:]}"
            self._unread += data
        text, _, self._unread = self._unread.partition(b"\0")
        message = json.loads(text)
        if "method" in message:
            self.events.append((message.get("sessionId"), message["method"], message["params"]))
        return message

    def open(self, url, *size, **how):
        """Open this address in a new tab, and wait until it is loaded."""
        return Tab(self, url, *size, **how)


class Tab:
    def __init__(self, browser, url, width=1280, height=900, dark=False, scripts=True):
        self._browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._target = target
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.size(width, height)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        assert "errorText" not in self.call("Page.navigate", url=url)
        waiting.until(lambda: self._events("Page.loadEventFired"), ANSWER_SECONDS, f"{url} to be loaded")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._browser.call("Target.closeTarget", targetId=self._target)

    def call(self, method, **params):
        return self._browser.call(method, self._session, **params)

    def _events(self, method):
        self._browser.call("Browser.getVersion")  # reads pending events
        return [params for session, name, params in self._browser.events if (session, name) == (self._session, method)]

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)

    def value(self, expression):
        """The value of an expression in the page; works even if the page's scripts are disabled."""
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def wait_for(self, expression, seconds=ANSWER_SECONDS):
        return waiting.until(lambda: self.value(expression), seconds, lambda: f"{expression} in {self.text}")

    @property
    def text(self):
        return self.value("document.body.innerText")

    def complaints(self):
        """The messages on the browser's console: from scripts, errors, violations of the content security policy."""
        logged = [params["entry"]["text"] for params in self._events("Log.entryAdded")]
        thrown = [params["exceptionDetails"]["text"] for params in self._events("Runtime.exceptionThrown")]
        printed = [params["args"] for params in self._events("Runtime.consoleAPICalled")]
        return logged + thrown + printed

    def requested(self):
        """The requested addresses."""
        return [params["request"]["url"] for params in self._events("Network.requestWillBeSent")]

    def screenshot(self, path):
        self.call("Page.bringToFront")
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))

    def computed(self, selector, *properties):
        """Computed style values of the first matching element."""
        names = json.dumps(properties)
        return self.value(f"(() => {{ const s = getComputedStyle(document.querySelector({json.dumps(selector)}));"
                          f" return {names}.map((name) => s.getPropertyValue(name)); }})()")
