"""gatepost-guide(7): the table of capacity, keys and partitions, and the commands of its sections for those in trouble."""

import json
import re
import shlex

import confluent_kafka
import pytest
from confluent_kafka import TopicPartition

import tools
from accounts import GUIDE, guide_commands, literals
from kafka_side import murmur2_partition
from reloading import reload
from sandbox import Sandbox
from signing import SECRET, Delivery, event_body, unique

EX_USAGE = 64
UNITS = {"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "s": 1, "min": 60, "h": 3600, "d": 86400}


def section(name):
    found = GUIDE.read_text().partition(f"\n.Sh {name}\n")[2].partition("\n.Sh ")[0]
    assert found, name
    return found


def rows(text):
    """The cells of the rows of a table, without the heading."""
    table = text.partition("\n.Bl -column")[2].partition("\n.El")[0]
    return [line.removeprefix(".It ").split(" Ta ") for line in table.splitlines()[1:] if not line.startswith(".It Em")]


# Capacity

def quantity(text):
    number, unit = re.fullmatch(r"([0-9.]+) ?([a-zA-Z]+)", text).groups()
    return float(number) * UNITS[unit]


def number_before(words, text):
    (found,) = re.findall(rf"([0-9]+) {words}", text)
    return int(found)


def test_table_of_capacity_follows_from_the_formulas_below_it():
    text = section("CAPACITY").partition("\n.Ss ")[0]
    entry, restore = number_before("bytes for each delivery within", text), number_before("seconds for a million", text) / 1e6
    record = number_before("bytes for headers", text) + 1000
    assert "bodies of 1 KB" in text and len(rows(text)) >= 4
    for rate, window, *cells in rows(text):
        rate, seconds = int(rate.removesuffix(" a second")), quantity(window)
        disk = rate * (seconds + UNITS["d"]) * record
        for cell, exact in zip(cells, (entry * rate * seconds, restore * rate * seconds, disk, 3 * disk), strict=True):
            assert quantity(cell) == pytest.approx(exact, rel=0.05), (rate, window, cell)


def test_table_of_state_follows_from_the_formulas_below_it():
    text = section("CAPACITY").partition("\n.Ss With the dedup tables on disk\n")[2]
    entry, more = number_before("bytes for each delivery within", text), number_before("MB for those that", text) * 1e6
    on_disk, start = number_before("bytes on disk", text), number_before("seconds for at most", text)
    assert len(rows(text)) >= 4 and "2.5 seconds for a thousand million" in text
    for rate, window, *cells in rows(text):
        n = int(rate.removesuffix(" a second")) * quantity(window)
        for cell, exact in zip(cells, (entry * n + more, on_disk * n, start + 2.5e-9 * n), strict=True):
            assert quantity(cell) == pytest.approx(exact, rel=0.05), (rate, window, cell)


def test_manuals_and_benchmarks_state_the_same_sizes():
    """What tests/bench measured, rounded up or down to the safe side."""
    measured = (GUIDE.parents[1] / "tests" / "bench" / "README").read_text()
    (per_second,) = re.findall(r"restore`\) reaches ([0-9,]+) records a second", measured)
    text = section("CAPACITY").partition("\n.Ss ")[0]
    assert 0.8e6 / int(per_second.replace(",", "")) <= number_before("seconds for a million", text)
    assert f"44 bytes each" in measured and number_before("bytes for each delivery within", text) == 44


def test_record_of_a_delivery_takes_no_more_than_its_body_and_the_documented_bytes(installation):
    config = installation.config("receiver")
    installation.create_topics(config)
    delivery = installation.start(config).accept(Delivery(event_body(text="x" * 1000)))
    (record,) = installation.kafka.read(installation.kafka.deliveries)
    batch, fields = 61 + 20, 2 + 3 * len(record.headers)  # of the format of a batch of one record, and lengths
    size = len(record.key) + sum(len(name) + len(value) for name, value in record.headers) + batch + fields
    assert 300 < size <= number_before("bytes for headers", section("CAPACITY"))
    assert record.value == delivery.body


# Keys and partitions

def test_each_key_keeps_the_documented_events_together(installation):
    """One kind, 12 invoices with three events each, two subscriptions: which events share a partition."""
    documented = {key: together for key, together, _ in rows(section("KEYS AND PARTITIONS"))}
    assert set(documented) == {"kind", "webhook-id", "delivery-id", "/invoiceId"}
    config = installation.config()
    names = {key: f"by{number}" for number, key in enumerate(documented)}
    for key, name in names.items():
        config.source(name, SECRET, key=key)
    installation.create_topics(config, 6)
    daemon = installation.start(config)
    webhooks, invoices = [unique(), unique()], [unique() for _ in range(12)]
    for name in names.values():
        for number, invoice in enumerate(3 * invoices):
            daemon.accept(Delivery(event_body(invoiceId=invoice, number=number), webhook_id=webhooks[number % 2]), source=name)
    installation.kafka.wait_until_routed()
    found = {key: {} for key in documented}
    for record in installation.kafka.read(f"{installation.prefix}.invoice.accepted"):
        key = next(key for key, name in names.items() if record.header("ce_source") == "/" + name)
        groups = {"of one kind": record.header("ce_type"), "of one subscription": record.header("ce_webhookid"),
                  "none": record.delivery_id, "of one invoice, in each topic": json.loads(record.value)["invoiceId"]}
        group = groups[documented[key]]
        assert record.partition == murmur2_partition(group.encode(), 6), (key, group)
        found[key].setdefault(group, set()).add(record.partition)
    assert {key: len(groups) for key, groups in found.items()} == \
        {"kind": 1, "webhook-id": 2, "delivery-id": 36, "/invoiceId": 12}
    assert len(set().union(*found["/invoiceId"].values())) > 2


def recipe(installation, config):
    """Apply the guide's configuration for all events of an invoice in one partition."""
    (text,) = [block for block in literals(section("KEYS AND PARTITIONS")) if "[events]" in block]
    settings, name = {}, None
    for line in text.splitlines():
        if line.startswith("["):
            name = line.strip("[]")
        elif line:
            option, value = line.split(" = ")
            settings.setdefault(name, {})[option] = value.replace("gatepost.", installation.prefix + ".")
    for option in ("path", "secret_file"):
        del settings["source invoicing"][option]  # the test has its own
    config["source invoicing"].update(settings["source invoicing"])
    config["events"].update(settings["events"])
    return settings


def run_lines(installation, config, daemon, text):
    """Run the lines of an example; systemd is represented by its signal."""
    unit = (GUIDE.parents[1] / "systemd" / "service.inc").read_text()
    assert "ExecReload=/bin/kill -HUP $MAINPID" in unit
    for line in text.splitlines():
        if line == "systemctl reload gatepostd":
            reload(daemon)
        else:
            done = installation.gatepost(*shlex.split(line)[1:], *(["--replication-factor", "1"] if "create" in line else []),
                                         config=config)
            assert done.returncode == 0, (line, done.stdout, done.stderr)


def test_recipe_puts_all_events_of_an_invoice_into_one_partition_in_order(installation):
    """It is applied to a running daemon. Each event is sent when the one before is published, as the guide says."""
    config = installation.config()
    installation.create_topics(config)
    daemon = installation.start(config)
    settings = recipe(installation, config)
    (lines,) = [block for block in literals(section("KEYS AND PARTITIONS")) if "topics create" in block]
    run_lines(installation, config, daemon, lines)
    kinds = ["invoice.pending", "invoice.accepted", "invoice.cancelled", "invoice.of_the_future"]
    sent = {unique(): [] for _ in range(5)}
    for kind in kinds:
        for invoice, ids in sent.items():
            ids.append(daemon.accept(Delivery(event_body(kind, invoiceId=invoice))).delivery_id)
        installation.kafka.wait_until_routed()
    topic = settings["events"]["invoice.*"]
    records = installation.kafka.read(topic)
    for invoice, ids in sent.items():
        own = sorted((record for record in records if json.loads(record.value)["invoiceId"] == invoice),
                     key=lambda record: record.offset)
        assert len({record.partition for record in own}) == 1
        assert [record.delivery_id for record in own] == ids and [record.header("ce_type") for record in own] == kinds
    assert len({record.partition for record in records}) > 1


def test_kinds_of_an_invoice_are_in_different_topics_by_default(installation):
    """So there is no order across kinds, whatever the key is."""
    config = installation.config()
    config["source invoicing"]["key"] = "/invoiceId"
    installation.create_topics(config)
    daemon = installation.start(config)
    for kind in ("invoice.pending", "invoice.accepted"):
        daemon.accept(Delivery(event_body(kind, invoiceId="I-1")))
    installation.kafka.wait_until_routed()
    assert {record.topic.removeprefix(installation.prefix + ".") for record in installation.kafka.read()} == \
        {"invoice.pending", "invoice.accepted"}


# The commands of the sections for those in trouble

@pytest.fixture
def site(installation):
    """An installation with a published and a quarantined delivery, and the service's API."""
    config = installation.config()
    installation.create_topics(config)
    with Sandbox(installation.build, installation.directory) as sandbox:
        config["service"].update(base_url=sandbox.url, api_key_file=config.secret_file("key", sandbox.key.encode()))
        config["admin"]["listen"] = f"unix:{installation.directory}/admin.sock"  # which the command line can find
        installation.configured = config
        installation.running = installation.start(config)
        installation.running.accept()
        installation.running.accept(Delivery(event_body("invoice.of_the_future")))
        installation.kafka.wait_until_routed()
        yield installation


def consume(installation):
    """A group of consumers that has read everything."""
    topic = f"{installation.prefix}.invoice.accepted"
    ends = installation.kafka.ends(topic)
    group = confluent_kafka.Consumer({"bootstrap.servers": installation.bootstrap, "group.id": f"{installation.prefix}.bookkeeping"})
    group.commit(offsets=[TopicPartition(topic, partition, end) for partition, end in ends.items()], asynchronous=False)
    group.close()
    return topic, sum(ends.values())


def example_lines(name):
    return [line.removeprefix(".Dl ") for line in section(name).splitlines() if line.startswith(".Dl ")]


def as_here(site, line):
    """The line with the names that it has in this test."""
    (record,) = site.kafka.read(site.kafka.quarantine)
    names = {"BROKER": site.bootstrap, "bookkeeping": f"{site.prefix}.bookkeeping", "ID": f"{record.partition}-{record.offset}",
             "headers": str(site.directory / "headers"), "body": str(site.directory / "body")}
    return [names.get(word, word) for word in shlex.split(line)]


def test_every_command_for_those_in_trouble_works(site):
    consume(site)
    delivery = Delivery()
    (site.directory / "body").write_bytes(delivery.body)
    (site.directory / "headers").write_text("".join(f"{name}: {value}\n" for name, value in delivery.headers().items()))
    seen = {}
    for line in example_lines("TROUBLESHOOTING"):
        program, *words = as_here(site, line)
        if program == "gatepost":
            done = site.gatepost(*words, config=site.configured)
            assert done.returncode != EX_USAGE and (done.returncode == 0 or words[0] == "doctor"), (line, done.stderr)
            seen[" ".join(words[:2])] = done.stdout
        elif program == "systemctl":
            run_lines(site, site.configured, site.running, line)
        else:
            seen[program] = tools.run(program, *words)
    assert "invoice.of_the_future" in seen["quarantine list"] and "invoice.accepted" in seen["tail --from"]
    assert "answer: 200" in seen["verify " + str(site.directory / "headers")]
    assert re.search(r"invoice\.accepted +[0-9]+ +[0-9]+ +[0-9]+ +0 ", seen["kafka-consumer-groups.sh"])
    assert len(seen) >= 9


def test_errors_named_for_those_in_trouble_are_those_of_the_receiver():
    answers = re.findall(r"Ta ([0-9]{3}) Ta ([A-Z_]+)$", (GUIDE.parent / "gatepostd.8").read_text(), re.M)
    named = re.findall(r"^\.It Sy ([0-9]{3}) ([A-Z_]+)", section("TROUBLESHOOTING"), re.M)
    assert len(named) >= 6 and set(named) <= set(answers)


def test_a_secret_is_replaced_as_in_the_answer_about_a_lost_one(site):
    (text,) = [block for block in literals(section("FREQUENTLY ASKED QUESTIONS")) if "secret new" in block]
    path = str(site.directory / "invoicing-2")
    url = "https://gateway.example/webhooks/invoicing"
    lines = [shlex.split(line)[1:] for line in text.replace("\\\n", " ").splitlines()]
    assert [words[:2] for words in lines] == [["secret", "new"], ["subscriptions", "ensure"]]
    with_name = [[path if word == "/etc/gatepost/secrets/invoicing-2" else word for word in words] for words in lines]
    assert all(path in words for words in with_name) and url in with_name[1]
    for words in with_name:
        done = site.gatepost(*words, config=site.configured)
        assert done.returncode == 0, (words, done.stderr)
    site.configured["source invoicing"]["secret_file"] = [site.configured["source invoicing"]["secret_file"], path]
    reload(site.running)
    secret = (site.directory / "invoicing-2").read_bytes().strip()
    for delivery in (Delivery(), Delivery(secret=secret)):
        site.running.accept(delivery)


def test_events_are_replayed_as_in_the_answer_about_it(site):
    topic, count = consume(site)
    (command,) = [each for each in guide_commands("kafka-consumer-groups.sh") if "bookkeeping" in each]
    (site.directory / "super.properties").touch()
    names = {"BROKER": site.bootstrap, "SUPER": str(site.directory / "super.properties"),
             "bookkeeping": f"{site.prefix}.bookkeeping", "gatepost.invoice.accepted": topic}
    tools.run(*[names.get(word, word) for word in command])
    committed = site.kafka.committed(f"{site.prefix}.bookkeeping", topic)
    assert count > 0 and sum(committed.values()) == 0
