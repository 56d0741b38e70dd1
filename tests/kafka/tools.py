"""Kafka's own command line tools, by the names that they have in its distribution."""

import os
import subprocess
import tempfile

import archive
import jars

CLASSES = {
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
    "connect-mirror-maker.sh": "org.apache.kafka.connect.mirror.MirrorMaker",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
    "kafka-consumer-groups.sh": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
}
SECONDS = 120


def command(name, *arguments):
    """What runs a tool: the words of a command."""
    return ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *archive.options(), "-cp",
            jars.class_path(), CLASSES[name], *arguments]


def run(name, *arguments):
    """Run a tool to its end. Returns what it printed; raises when it failed."""
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(command(name, *arguments), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=SECONDS, cwd=directory, env=os.environ)
    # Some tools report an error and exit 0.
    if done.returncode != 0 or "Exception" in done.stdout or "Error: " in done.stdout:
        raise RuntimeError(f"{name} {' '.join(arguments)} failed:\n{done.stdout}")
    return done.stdout
