"""Kafka's command-line tools, by their names in its distribution."""

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
    """Return the command that runs a tool, as a list."""
    return ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *archive.options(), "-cp",
            jars.class_path(), CLASSES[name], *arguments]


def run(name, *arguments):
    """Run a tool. Returns its output, or raises RuntimeError if it fails."""
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(command(name, *arguments), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=SECONDS, cwd=directory, env=os.environ)
    # Some tools print an error and exit 0.
    if done.returncode != 0 or "Exception" in done.stdout or "Error: " in done.stdout:
        raise RuntimeError(f"{name} {' '.join(arguments)} failed:\n{done.stdout}")
    return done.stdout
