"""The examples for consumers in etc/examples, at brokers that create topics, and that require a login."""

import os
import re
import shutil
import subprocess

import pytest
from cluster import Cluster

import waiting
from accounts import Accounts, literals
from asyncapi import ROOT
from authority import Authority
from installation import Installation
from test_consumers import EX_SIGTERM_OF_JAVA, PREPARED, SECONDS, Topic, example, in_each_language, java, languages


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def cluster(authority):
    """A Kafka that creates topics, as by default, with a plain listener and one that requires TLS and a password."""
    with Cluster(secured=authority.issue_joined("broker", names="IP:127.0.0.1"),
                 properties={"auto.create.topics.enable": "true"}) as cluster:
        yield cluster


@pytest.fixture
def site(cluster, tmp_path):
    each = Installation(tmp_path, cluster.bootstrap)
    yield each
    each.remove()


# Topics that do not exist

def show_missing_topic(example, site):
    """It says so and stops, also when another topic exists, and does not have the brokers create the topic."""
    topic = Topic(site)
    bootstrap, group, name = topic.arguments()
    existing = site.kafka.topics()
    misspelt = name.replace("accepted", "acepted")
    for names in ([misspelt], [name, misspelt]):
        example.start(bootstrap, group, *names)
        assert example.process.wait(SECONDS) == 1, example.errors
        assert misspelt in example.errors, example.errors
        assert "no topic" in example.errors or "not available" in example.errors or "not host" in example.errors, example.errors
    assert site.kafka.topics() == existing


@in_each_language
def test_consumer_says_that_a_topic_does_not_exist_and_does_not_create_it(example, site):
    show_missing_topic(example, site)


@pytest.mark.slow
def test_java_consumer_says_that_a_topic_does_not_exist_and_does_not_create_it(java, site):
    show_missing_topic(java, site)


@languages("python", "cloudevents")
def test_consumer_reads_topics_by_a_pattern(example, site):
    topic = Topic(site)
    bootstrap, group, _ = topic.arguments()
    example.start(bootstrap, group, rf"^{site.prefix}\.invoice\..*").wait_for(topic.accept())
    example.stop()


# A login

CA_FILE = "/etc/ssl/kafka-ca.pem"
LANGUAGES = {".py": "Python", ".go": "Go", ".js": "JavaScript", ".java": "Java"}


def lines_of_the_manual(language):
    """The literal blocks for this language, each as text."""
    section = (ROOT / "man" / "gatepost-consumers.7").read_text().partition("\n.Sh LOGIN\n")[2].partition("\n.Sh ")[0]
    items = dict(item.split("\n", 1) for item in section.split("\n.It ")[1:])
    assert set(items) == set(LANGUAGES.values())
    return literals("\n" + items[language])


def insert_lines(example, ca_file):
    """Put the lines of the manual into the example, at the comment that names the place."""
    path = example.directory / os.path.basename(example.name)
    *imports, lines = lines_of_the_manual(LANGUAGES[path.suffix])
    text, places = re.subn(r"^.* put the lines of gatepost-consumers\(7\), LOGIN, here.*\n",
                           lambda _: lines.replace(CA_FILE, str(ca_file)), path.read_text(), flags=re.M)
    assert places == 1
    for each in imports:
        text = text.replace("\nimport (\n", f"\nimport (\n{each}", 1)
    path.write_text(text)
    if path.suffix == ".go":
        for name in ("go.mod", "go.sum"):
            shutil.copy(PREPARED / "go" / name, example.directory)
        subprocess.run(["go", "build", "-buildvcs=false", "-o", "consume", "."], cwd=example.directory, check=True,
                       env=os.environ | {"GOPROXY": "off"})  # the example's go.mod has all that the lines need
        example.command = [example.directory / "consume"]
        example.environment = os.environ | {"SSL_CERT_FILE": str(ca_file)}


class Account:
    """The account of the guide, and its permissions."""

    def __init__(self, cluster, authority, site):
        self.accounts = Accounts(cluster, authority, site.directory, site.prefix)
        self.accounts.set_password("erp", self.accounts.password("erp"))
        self.accounts.grant_all()
        self.group = f"erp.{site.prefix}"

    def start(self, example, topic, password=None):
        insert_lines(example, self.accounts.authority.certificate)
        password = password or self.accounts.password("erp")
        example.environment = (example.environment or os.environ) | {"KAFKA_PASSWORD": password}
        return example.start(self.accounts.cluster.secured_bootstrap, self.group, topic)


@pytest.fixture
def account(cluster, authority, site):
    return Account(cluster, authority, site)


def show_login(example, account, site, stopped=0):
    topic = Topic(site)
    delivery = topic.accept()
    account.start(example, topic.name).wait_for(delivery)
    example.stop(stopped)
    assert sum(site.kafka.committed(account.group, topic.name).values()) > 0


@in_each_language
def test_consumer_logs_in_with_the_lines_of_the_manual(example, account, site):
    show_login(example, account, site)


@pytest.mark.slow
def test_java_consumer_logs_in_with_the_lines_of_the_manual(java, account, site):
    show_login(java, account, site, EX_SIGTERM_OF_JAVA)


def show_reason(example, *reasons):
    waiting.until(lambda: all(each in example.errors for each in reasons), SECONDS, lambda: f"{reasons}: {example.errors}")


@in_each_language
def test_consumer_says_that_the_password_is_wrong(example, account):
    show_reason(account.start(example, "any", "not the password"), "invalid credentials")


@pytest.mark.slow
def test_java_consumer_says_that_the_password_is_wrong(java, account):
    show_reason(account.start(java, "any", "not the password"), "SaslAuthenticationException", "invalid credentials")


def start_without_lines(example, cluster):
    return example.start(cluster.secured_bootstrap, "any", "any")


def quoted():
    """What clients print without TLS, according to the manual."""
    page = (ROOT / "man" / "gatepost-consumers.7").read_text().partition("\n.Sh LOGIN\n")[2]
    return re.findall(r"^\.Dq (.*?) ,$", page, re.M)


@in_each_language
def test_consumer_says_without_the_lines_what_the_manual_quotes(example, cluster):
    of_librdkafka, of_kafkajs = quoted()
    reason = {".py": of_librdkafka, ".js": of_kafkajs, ".go": "is this a plaintext connection speaking to a tls endpoint?"}
    show_reason(start_without_lines(example, cluster), reason[os.path.splitext(example.name)[1]])


@pytest.mark.slow
def test_java_consumer_runs_out_of_memory_without_the_lines(java, cluster):
    show_reason(start_without_lines(java, cluster), "OutOfMemoryError")
