"""Containerfile and compose.yaml of etc/examples. No container engine runs here: linters check the files, and their commands run
as processes, or in a chroot."""

import contextlib
import os
import pathlib
import re
import shlex
import subprocess
import sys

import compose_spec
import pytest
import yaml
from confluent_kafka.admin import ConfigResource, ResourceType

import examples
import http_client
import image
import ports
import waiting
from daemon import ENVIRONMENT
from examples import ORDERLY_END, adapt, assert_guarded
from signing import Delivery

ROOT = pathlib.Path(__file__).parents[2]
CONTAINERFILE = examples.DIRECTORY / "Containerfile"
COMPOSE = yaml.safe_load(examples.read("compose.yaml"))
SERVICES = COMPOSE["services"]
VERSION = re.search(r"AC_INIT\(\[gatepost\], \[([\d.]+)\]", (ROOT / "configure.ac").read_text())[1]
SECONDS = 60


def test_images_have_the_version_of_the_release():
    for name in ("Containerfile", "compose.yaml", "kubernetes.yaml"):
        versions = set(re.findall(r"(?:gatepost:|VERSION=)(\d[\d.]*\d)", examples.read(name)))
        assert versions == {VERSION}, name


# Containerfile

def test_hadolint_finds_nothing():
    done = subprocess.run([pathlib.Path(sys.executable).parent / "hadolint", CONTAINERFILE], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_image_has_the_libraries_of_the_programs(plain_build):
    needed = set()
    for program in ("gatepostd", "gatepost", "gatepost-sandbox"):
        needed |= set(re.findall(r"NEEDED.*\[(.+)\]", examples.run("readelf", "-d", plain_build / program)))
    owners = {examples.run("dpkg", "-S", f"*/{library}").split(":")[0] for library in needed}
    assert image.packages(image.stages(CONTAINERFILE.read_text())[-1]) == owners - {"libc6"} | {"ca-certificates", "curl"}


def test_image_is_not_run_by_root_and_ends_in_order():
    build, final = (dict(stage) for stage in image.stages(CONTAINERFILE.read_text()))
    assert final["USER"] == "10001:10001" and final["STOPSIGNAL"] == "SIGTERM"
    assert final["ENTRYPOINT"].startswith("[") and final["CMD"].startswith("[") and " CMD [" in final["HEALTHCHECK"]
    assert "ADD" not in final and "ENV" not in final and "ARG" not in final


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="debootstrap and chroot need root")
def test_image_is_built_and_run_in_a_chroot(installation, tmp_path):
    release = tmp_path / "release"
    release.mkdir()
    for command in ([ROOT / "configure", "--quiet"], ["make", "--no-print-directory", "-s", "dist"]):
        examples.run(*command, cwd=release, timeout=image.SECONDS)
    built = image.Image(CONTAINERFILE.read_text(), release, {"VERSION": VERSION}, tmp_path)
    stage = built.last
    installation.create_topics()
    configuration = stage.path("/etc/gatepost")
    configuration.mkdir()
    secret = configuration / "invoicing"
    secret.write_bytes(Delivery().secret + b"\n")
    secret.chmod(0o440)
    os.chown(secret, 0, 10001)  # as fsGroup does
    with ports.reserved() as receiver, ports.reserved() as admin:
        (configuration / "gatepost.conf").write_text(
            f"[receiver]\nlisten = 127.0.0.1:{receiver}\n"
            f"[source invoicing]\npath = {examples.PATH}\nsecret_file = /etc/gatepost/invoicing\n"
            f"[topics]\nprefix = {installation.prefix}\n[kafka]\nbootstrap.servers = {installation.bootstrap}\n"
            f"[admin]\nlisten = 127.0.0.1:{admin}\n")
        command = stage.command(*stage.words("ENTRYPOINT"), *stage.words("CMD"))
        with examples.running(tmp_path, command, receiver) as log:
            waiting.until(lambda: " ready\n" in log(), SECONDS, log)

            def post(delivery):
                return http_client.request(f"127.0.0.1:{receiver}", "POST", examples.PATH, delivery.headers(), delivery.body)
            assert_guarded(installation, post)
            health = [word.replace("9464", str(admin)) for word in stage.words("HEALTHCHECK")]
            stage.run(*health)
            assert "ready" in stage.run("gatepost", "status")
            (daemon,) = [path for path in pathlib.Path("/proc").glob("[0-9]*") if is_inside(path, built)]
            assert set(re.findall(r"^(?:Uid|Gid):\t(.*)", (daemon / "status").read_text(), re.M)) == {"\t".join(["10001"] * 4)}
        assert log().splitlines()[-1].endswith("stopped status=0")
    assert VERSION in stage.run("gatepost-sandbox", "--version")


def is_inside(path, built):
    with contextlib.suppress(OSError):
        return pathlib.Path(os.readlink(path / "exe")) == built.last.path("/usr/sbin/gatepostd")
    return False


# Compose

def test_compose_file_is_valid():
    compose_spec.PyOptions().from_yaml(examples.read("compose.yaml")).validate()
    for name, service in SERVICES.items():
        shared = service.get("network_mode", "service:kafka").removeprefix("service:")
        assert shared in SERVICES and set(service.get("depends_on", {})) <= set(SERVICES), name
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert source in COMPOSE["volumes"] or (examples.DIRECTORY / source).is_file(), volume
    kafka = re.search(r"<kafka.version>(.+)</kafka.version>", (ROOT / "tests" / "kafka" / "pom.xml").read_text())[1]
    assert SERVICES["kafka"]["image"].endswith(f":{kafka}")
    assert int(SERVICES["gatepost"]["stop_grace_period"].removesuffix("s")) > ORDERLY_END


def test_compose_sets_options_that_kafka_has(installation):
    resource = ConfigResource(ResourceType.BROKER, "1")
    known = installation.kafka.admin.describe_configs([resource])[resource].result(SECONDS)
    names = {name.removeprefix("KAFKA_").lower().replace("_", ".") for name in SERVICES["kafka"]["environment"]}
    assert names <= set(known), names - set(known)


class Composition:
    """The services of compose.yaml as processes, except for Kafka, which the tests have."""

    def __init__(self, installation, directory, receiver, sandbox, admin):
        self.installation = installation
        self.directory = directory
        self.changes = {"/run/secrets": f"{directory}/secrets", ":8500": f":{sandbox}", ":8080": f":{receiver}"}
        text = adapt(examples.read("compose.conf"), self.changes | {
            "kafka:9092": installation.bootstrap, "0.0.0.0:9464": f"127.0.0.1:{admin}"})
        self.config = directory / "compose.conf"
        self.config.write_text(f"{text}[topics]\nprefix = {installation.prefix}\n")
        self.environment = ENVIRONMENT | {"PATH": f"{directory}:{os.environ['PATH']}"}
        # The programs, with the configuration where the volume would be.
        (directory / "gatepost").write_text(f'#!/bin/sh\nexec {installation.build}/gatepost -c {self.config} "$@"\n')
        (directory / "gatepost").chmod(0o755)
        (directory / "gatepost-sandbox").symlink_to(installation.build / "gatepost-sandbox")

    def here(self, word):
        word = word.replace("$$", "$")
        for old, new in self.changes.items():
            word = word.replace(old, new)
        return word

    def command(self, service):
        service = SERVICES[service]
        return [self.here(word) for word in service["entrypoint"] + service.get("command", [])]

    def run(self, words):
        return examples.run(*words, env=self.environment, cwd=self.directory)

    def is_healthy(self, service):
        kind, *words = SERVICES[service]["healthcheck"]["test"]
        assert kind == "CMD-SHELL"
        return subprocess.run(self.here(words[0]), shell=True, env=self.environment).returncode == 0

    @contextlib.contextmanager
    def started(self, command, name):
        log = self.directory / f"{name}.log"
        with open(log, "wb") as output:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=self.environment,
                                       cwd=self.directory)
        try:
            yield log.read_text
        finally:
            process.terminate()
            try:
                assert process.wait(SECONDS) == 0, log.read_text()
            finally:
                process.kill()
                print(log.read_text())


def comment_commands():
    """The commands in the comment at the beginning of compose.yaml."""
    comment = examples.read("compose.yaml").partition("\nservices:")[0].replace(" \\\n#  ", "")
    return [line.removeprefix("#   ") for line in comment.splitlines() if line.startswith("#   ")]


def test_services_of_compose_work_together(installation, tmp_path):
    with ports.reserved() as receiver, ports.reserved() as sandbox, ports.reserved() as admin:
        make, fill, _, _, fire, tail = comment_commands()
        each = Composition(installation, tmp_path, receiver, sandbox, admin)
        each.run(["sh", "-e", "-c", f"{make}\n{fill}"])
        each.run(each.command("topics"))
        with each.started([installation.build / "gatepostd", "-c", each.config], "gatepostd") as log:
            waiting.until(lambda: " ready\n" in log(), SECONDS, log)
            with each.started(each.command("sandbox"), "sandbox"):
                waiting.until(lambda: each.is_healthy("sandbox"), SECONDS, "the sandbox to be healthy")
                assert "added " in each.run(each.command("register"))
                words = shlex.split(fire)
                assert words[:4] == ["docker", "compose", "exec", "sandbox"]
                assert '"ok":true' in each.run(map(each.here, words[4:]))
                waiting.until(installation.kafka.read, SECONDS, log)
                words = shlex.split(tail)
                assert words[:4] == ["docker", "compose", "exec", "gatepost"]
                assert '"event":"invoice.accepted"' in each.run([*words[4:], "--until-end"])
            forged = http_client.request(f"127.0.0.1:{receiver}", "POST", examples.PATH, Delivery().headers(), Delivery().body)
            assert forged.status == 401
