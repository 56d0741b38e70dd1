"""An installation of Gatepost under test: its topics, daemons and command line."""

import itertools
import os
import pathlib
import subprocess
import uuid

import ports
from config import Config
from daemon import ENVIRONMENT, Daemon, assert_no_sanitizer_report
from kafka_side import Kafka

BUILD = pathlib.Path(os.environ.get("GATEPOST_BUILD", pathlib.Path(__file__).parents[3] / "build" / "sanitized"))
# Without sanitizers, which prevent failing allocations and preloaded libraries.
PLAIN_BUILD = pathlib.Path(os.environ.get("GATEPOST_PLAIN_BUILD", BUILD.parent / "plain"))
COMMAND_SECONDS = 60


class Installation:
    def __init__(self, directory, bootstrap, build=BUILD):
        self.directory = directory
        self.build = build
        self.bootstrap = bootstrap
        self.prefix = f"t{uuid.uuid4().hex[:8]}"
        self.kafka = Kafka(bootstrap, self.prefix)
        self.daemons = []
        self._ports = []
        self._numbers = itertools.count(1)

    def config(self, roles="receiver, router", instance=None):
        """The default configuration, for tests to modify."""
        instance = instance or f"gw{next(self._numbers)}"
        directory = self.directory / instance
        directory.mkdir()
        return Config.usual(directory, self.bootstrap, self.prefix, instance).roles(roles)

    def port(self):
        """A free port of 127.0.0.1 that is reserved for a daemon until the end of the test."""
        self._ports.append(ports.reserve())
        return ports.number_of(self._ports[-1])

    def release_ports(self):
        for holder in self._ports:
            holder.close()

    def create_topics(self, config=None, partitions=3, *options):
        done = self.gatepost("topics", "create", "--partitions", str(partitions), "--replication-factor", "1",
                             *options, config=config)
        assert done.returncode == 0, done.stderr

    def daemon(self, config=None):
        """A daemon that is not started yet and is stopped after the test."""
        config = config or self.config()
        daemon = Daemon(self.build / "gatepostd", config, config["gatepost"]["instance"])
        self.daemons.append(daemon)
        return daemon

    def start(self, config=None):
        """A daemon that is ready."""
        return self.daemon(config).start().wait_until_ready()

    def gatepost(self, *arguments, config=None, input="", environment=None, wrapper=()):
        """Run the command line with a configuration: a Config, a path, None for the default one, False for none; and
        with additional environment variables, by a command that executes its arguments."""
        if config is None:
            config = self.config()
        path = config.write("gatepost.conf") if isinstance(config, Config) else config
        chosen = ["-c", path] if path else []
        done = subprocess.run([*wrapper, self.build / "gatepost", *chosen, *arguments], input=input, env=ENVIRONMENT | (environment or {}),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=COMMAND_SECONDS,
                              errors="surrogateescape", cwd=self.directory)
        assert_no_sanitizer_report(done.stderr)
        return done

    def clean_up(self):
        """Stop the daemons and clients, and print the daemons' logs (pytest shows them if the test failed)."""
        errors = []
        for daemon in self.daemons:
            try:
                daemon.clean_up()
            except AssertionError as error:
                errors.append(str(error))
        for daemon in self.daemons:
            if daemon.process:
                print(f"--- end of the log of {daemon.name}\n{daemon.log[-6000:]}")
        self.release_ports()
        self.kafka.close()
        assert not errors, "\n".join(errors)

    def remove(self):
        """Clean up, and delete the topics: those of all tests together are more than a shared broker has memory for."""
        try:
            self.clean_up()
        finally:
            if names := self.kafka.topics():
                for future in self.kafka.admin.delete_topics(names).values():
                    future.result(COMMAND_SECONDS)
            self.kafka.close()
