"""Select the subjects: bare evhttp, Gatepost in the requested variants, and the alternatives. Each but the bare ones must
first pass the check in genuine.py, or that in genuine_peer.py; one that fails is reported with the reason, and skipped."""

import functools
import subprocess

from genuine import Check, NotGenuine
from genuine_peer import PeerCheck
from subjects import Alternative, Bare, Gatepost, Peer, build_alternative

ALTERNATIVES = [("go-fasthttp", {"linger_ms": 0}), ("go-fasthttp", {"linger_ms": 1}), ("go-nethttp", {"linger_ms": 0})]
SPEAK_TLS = ["go-fasthttp", "go-nethttp"]
SLOW_ALTERNATIVES = [("node", {}), ("python", {})]  # both to build and to run
PEERS = [("go-router", {})]
SLOW_PEERS = [("kafka-streams", {})]  # to download


class Candidates:
    def __init__(self, arguments, build, directory, topics):
        """topics() returns a context with an installation that has its own topics."""
        self.arguments, self.build, self.directory, self.topics = arguments, build, directory, topics
        self.failed, self.failed_peers = {}, {}  # reasons by name

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
    def peers(self):
        """Factories of the programs in the router's place that pass the check."""
        makers = [functools.partial(Peer, kind=kind, build=self.build, **settings)
                  for kind, settings in self._built(PEERS, SLOW_PEERS, self.failed_peers)]
        return [make for make in makers if self._routes_alike(make)]

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
        return [functools.partial(Alternative, kind=kind, build=self.build, tls=tls, **settings)
                for kind, settings in self._built(ALTERNATIVES, SLOW_ALTERNATIVES, self.failed)
                for tls in ([None, self._certificate] if self.arguments.tls and kind in SPEAK_TLS else [None])]

    def _built(self, usual, slow, failed):
        """Build the requested ones of these kinds. Returns those that can be built, with their settings; adds others to failed."""
        wanted = [(kind, settings) for kind, settings in usual + (slow if self.arguments.every_alternative else [])
                  if kind not in self.arguments.without]
        for kind in dict.fromkeys(kind for kind, _ in wanted):
            print(f"  building {kind}".ljust(60), end="\r", flush=True)
            try:
                build_alternative(kind, self.build)
            except (OSError, subprocess.CalledProcessError) as error:
                self._fail(failed, kind, f"it could not be built: {error}")
        return [(kind, settings) for kind, settings in wanted if kind not in failed]

    @functools.cached_property
    def _certificate(self):
        key, certificate = self.directory / "key.pem", self.directory / "certificate.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-subj", "/CN=127.0.0.1", "-days", "2", "-keyout", key, "-out", certificate],
                       check=True, stderr=subprocess.DEVNULL)
        key.chmod(0o600)
        return certificate, key

    def _passes(self, make):
        def run(subject, place):
            with subject.whole():
                Check(subject, place.kafka).run()
        return self._checked(make, run, self.failed)

    def _routes_alike(self, make):
        return self._checked(make, lambda subject, place: PeerCheck(subject, Gatepost(place, roles="router")).run(),
                             self.failed_peers)

    def _checked(self, make, run, failed):
        """Return whether the subject passes the check run(subject, place); if not, add it to failed."""
        with self.topics() as place:
            subject = make(place)
            print(f"  checking {subject.name}".ljust(60), end="\r", flush=True)
            try:
                run(subject, place)
            except (NotGenuine, AssertionError) as error:
                self._fail(failed, subject.name, str(error) + "\n" + subject.log())
        return subject.name not in failed

    @staticmethod
    def _fail(failed, name, reason):
        failed[name] = reason.splitlines()[0]
        print(f"{name} is not measured: {reason}", flush=True)
