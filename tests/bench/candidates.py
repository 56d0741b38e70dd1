"""Select the subjects: bare evhttp, Gatepost in the requested variants, and the alternatives. Each but the bare ones must
first pass the check in genuine.py; one that fails is reported with the reason, and skipped."""

import functools
import subprocess

from genuine import Check, NotGenuine
from subjects import Alternative, Bare, Gatepost

ALTERNATIVES = [("go-fasthttp", {"linger_ms": 0}), ("go-fasthttp", {"linger_ms": 1}), ("go-nethttp", {"linger_ms": 0})]
SPEAK_TLS = ["go-fasthttp", "go-nethttp"]
SLOW_ALTERNATIVES = [("node", {}), ("python", {})]  # both to build and to run


class Candidates:
    def __init__(self, arguments, build, directory, topics):
        """topics() returns a context with an installation that has its own topics."""
        self.arguments, self.build, self.directory, self.topics = arguments, build, directory, topics
        self.failed = {}  # reason by name

    @functools.cached_property
    def receivers(self):
        """Factories of all receivers; each takes an installation."""
        return [self._bare, functools.partial(self._bare, at_once=True), *self.genuine]

    def appending(self, place):
        """Bare evhttp that appends: the lower bound for accepted deliveries with evhttp and librdkafka."""
        return Bare(self.build, self.directory, at_once=True, appends_to=place)

    @functools.cached_property
    def genuine(self):
        """Factories of the receivers that pass the check."""
        return [make for make in self._gateposts() + self._alternatives() if self._passes(make)]

    @functools.cached_property
    def gatepost_passes(self):
        return self._passes(Gatepost)

    def _bare(self, _, at_once=False):
        return Bare(self.build, self.directory, at_once)

    def _gateposts(self):
        makers = []
        for lanes in self.arguments.lanes:
            name = "gatepost" if lanes == 1 else f"gatepost {lanes} lanes"
            makers.append(functools.partial(Gatepost, name=name, threads=lanes))
            if self.arguments.tls:
                makers.append(functools.partial(Gatepost, name=f"{name} tls", tls=self._certificate, threads=lanes))
        return makers

    def _alternatives(self):
        """Factories of the alternatives that can be built."""
        wanted = ALTERNATIVES + (SLOW_ALTERNATIVES if self.arguments.every_alternative else [])
        wanted = [(kind, settings) for kind, settings in wanted if kind not in self.arguments.without]
        for kind in dict.fromkeys(kind for kind, _ in wanted):
            print(f"  building {kind}".ljust(60), end="\r", flush=True)
            try:
                Alternative.make(kind, self.build)
            except (OSError, subprocess.CalledProcessError) as error:
                self._fail(kind, f"it could not be built: {error}")
        return [functools.partial(Alternative, kind=kind, build=self.build, tls=tls, **settings) for kind, settings in wanted
                for tls in ([None, self._certificate] if self.arguments.tls and kind in SPEAK_TLS else [None])
                if kind not in self.failed]

    @functools.cached_property
    def _certificate(self):
        key, certificate = self.directory / "key.pem", self.directory / "certificate.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-subj", "/CN=127.0.0.1", "-days", "2", "-keyout", key, "-out", certificate],
                       check=True, stderr=subprocess.DEVNULL)
        key.chmod(0o600)
        return certificate, key

    def _passes(self, make):
        with self.topics() as place:
            subject = make(place).whole()
            print(f"  checking {subject.name}".ljust(60), end="\r", flush=True)
            try:
                with subject:
                    Check(subject, place.kafka).run()
            except (NotGenuine, AssertionError) as error:
                self._fail(subject.name, str(error) + "\n" + subject.log())
        return subject.name not in self.failed

    def _fail(self, name, reason):
        self.failed[name] = reason.splitlines()[0]
        print(f"{name} is not measured: {reason}", flush=True)
