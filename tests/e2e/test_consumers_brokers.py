"""The examples for consumers in etc/examples, at brokers that create topics."""

import pytest
from cluster import Cluster

from installation import Installation
from test_consumers import SECONDS, Topic, example, in_each_language, java, languages


@pytest.fixture(scope="module")
def cluster():
    """A Kafka that creates topics, as by default."""
    with Cluster(properties={"auto.create.topics.enable": "true"}) as cluster:
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
