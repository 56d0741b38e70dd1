"""Every program has its own account with the permissions listed in gatepost-guide(7), on a Kafka that enforces ACLs."""

import re
import subprocess

import confluent_kafka
import pytest
from cluster import Cluster
from confluent_kafka.admin import (AclBinding, AclOperation, AclPermissionType, AdminClient, AlterConfigOpType, ConfigEntry,
                                   ConfigResource, NewTopic, ResourcePatternType, ResourceType)

import waiting
from accounts import Accounts, error_of, guide_commands
from authority import Authority
from installation import Installation
from signing import Delivery, event_body
from test_partitions import deliveries_of, published, wait_for_state, wait_until_published

NAMES = ("gatepost-receiver", "gatepost-router", "gatepost-admin", "gatepost-operator", "erp")
EX_UNAVAILABLE, EX_NOPERM, EX_CONFIG = 69, 77, 78
DENIED = "TOPIC_AUTHORIZATION_FAILED"
SECONDS = 30


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def secured(authority):
    """A Kafka that requires authentication and is reached by its address; its certificate does not name `localhost`. It creates
    topics for any account that is allowed to."""
    with Cluster(secured=authority.issue_joined("broker", names="IP:127.0.0.1"),
                 passwords={name: Accounts.password(name) for name in NAMES},
                 properties={"auto.create.topics.enable": "true"}) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def site(secured, authority, tmp_path_factory):
    """An installation whose accounts have the permissions from the guide and whose topics exist."""
    each = Installation(tmp_path_factory.mktemp("site"), secured.bootstrap)
    each.accounts = Accounts(secured, authority, each.directory, each.prefix)
    for name in NAMES:
        each.accounts.set_password(name, each.accounts.password(name))
    each.bindings = each.accounts.grant_all()
    config = each.accounts.use(each.config(), "gatepost-admin", "PLAIN")
    listed = each.gatepost("topics", "list", config=config)
    assert (listed.returncode, listed.stdout.count("topics create")) == (65, 11), listed
    assert each.kafka.topics() == []  # asking for them did not create them
    each.create_topics(config, partitions=2)
    yield each
    each.clean_up()


@pytest.fixture
def installation(site):
    yield site
    for daemon in site.daemons:
        daemon.clean_up()
    site.daemons.clear()
    missing = [binding for binding in site.bindings if binding not in site.accounts.granted()]
    for binding in missing:
        site.accounts.grant(binding)


@pytest.fixture
def accounts(installation):
    return installation.accounts


def configure(installation, role, account=None, mechanism="PLAIN"):
    roles = role if role in ("receiver", "router") else "receiver, router"
    config = installation.config(roles)
    config["gatepost"]["instance"] = "always-the-same"  # so that a router need not wait for the previous one's session to time out
    return installation.accounts.use(config, account or f"gatepost-{role}", mechanism)


def binding_of(installation, account, resource, operation):
    """The account's permission for this operation on the resource with this suffix."""
    (found,) = [each for each in installation.bindings
                if each.principal == f"User:{account}" and each.operation.name == operation
                and f"{each.restype.name} {each.name}".endswith(resource)]
    return found


@pytest.mark.slow
def test_guide_commands_grant_the_same_permissions_as_these_tests(site):
    prefix = f"{site.prefix}x"
    site.accounts.run_all(guide_commands("kafka-acls.sh"), prefix)
    waiting.until(lambda: set(site.accounts.bindings(prefix)) <= set(site.accounts.granted()), SECONDS, "the permissions")
    granted = [each for each in site.accounts.granted() if each.name.startswith(prefix) or each not in site.bindings]
    assert set(granted) == set(site.accounts.bindings(prefix)) - set(site.bindings)
    for binding in granted:
        site.accounts.revoke(binding)
    (command,) = guide_commands("kafka-configs.sh")
    site.accounts.run_all([command], prefix)
    try:
        client = site.accounts.client("gatepost-receiver", **{"sasl.password": "PASSWORD"})
        waiting.until(lambda: AdminClient(client).list_topics(timeout=SECONDS), SECONDS, "a login with the new password")
    finally:
        site.accounts.set_password("gatepost-receiver", Accounts.password("gatepost-receiver"))


# What the accounts can do

def test_whole_chain_works_with_permissions_from_the_guide(installation, new_library):
    """By SCRAM over TLS, as the guide configures it."""
    def run(*arguments, account="gatepost-operator"):
        config = configure(installation, "operator", account, "SCRAM-SHA-512")
        config["topics"]["prefix"] = installation.prefix
        return installation.gatepost(*arguments, config=config, environment=new_library)

    daemons = []
    for role in ("receiver", "router"):
        daemon = installation.daemon(configure(installation, role, mechanism="SCRAM-SHA-512"))
        daemon.environment = new_library
        daemons.append(daemon.start())
    receiver, router = (daemon.wait_until_ready() for daemon in daemons)
    for command in (["topics", "list"], ["topics", "create"]):
        done = run(*command, account="gatepost-admin")
        assert done.returncode == 0, (command, done.stderr, done.stdout)
        assert done.stdout and not done.stderr
    for daemon in (receiver, router):
        done = installation.gatepost("doctor", config=daemon.config, environment=new_library)
        assert (done.returncode, done.stderr) == (0, "") and done.stdout.endswith("no trouble found\n"), done
        assert "topic" not in daemon.log
    good, odd = receiver.accept(), receiver.accept(Delivery(event_body("no.such_kind")))
    installation.kafka.wait_until_routed()
    assert good.body.decode() in run("tail", "--from", "beginning", "--until-end").stdout
    assert "no.such_kind" in run("quarantine", "list").stdout
    released = run("quarantine", "release", "--reason", "unknown-kind")
    assert released.returncode == 0 and " released, " in released.stdout, released
    installation.kafka.wait_until_routed()
    audited = run("audit")
    assert (audited.returncode, audited.stderr) == (0, ""), audited
    consumer = confluent_kafka.Consumer(installation.accounts.client(
        "erp", **{"group.id": "erp.ledger", "auto.offset.reset": "earliest", "isolation.level": "read_committed"}))
    consumer.subscribe([f"{installation.prefix}.invoice.accepted"])
    records = []
    waiting.until(lambda: records.extend(consumer.consume(100, 0.2)) or any(
        not each.error() and each.value() == good.body for each in records), SECONDS, lambda: f"the event: {records}")
    consumer.close()


def test_standby_follows_over_tls_with_the_permissions_of_a_router(installation):
    """And takes over: the repeats of what the other router has published are dropped."""
    def router(name, **options):
        config = configure(installation, "router")
        config["gatepost"]["instance"] = name
        config.sections["router"] = options
        return installation.start(config)

    first = router("first")
    deliveries = [Delivery() for _ in range(200)]
    installation.kafka.append(deliveries)
    installation.kafka.wait_until_routed()
    standby = router("second", standby="on")
    waiting.until(lambda: "following a partition" in standby.log and standby.metric("gatepost_remembered_ids") >= 200, SECONDS,
                  lambda: standby.log)
    first.stop()
    installation.kafka.append(deliveries)
    installation.kafka.wait_until_routed()
    assert published(installation.kafka, deliveries) == [1] * 200
    assert not re.search("AUTHORIZATION|cannot follow| error ", standby.log), standby.log


def produce(client, topic):
    """The error of a record that was appended, or None."""
    errors = []
    try:
        client.produce(topic, b"forged", on_delivery=lambda error, message: errors.append(error))
    except confluent_kafka.KafkaException as raised:  # denied by an earlier response
        return raised.args[0].name()
    client.flush(2 * SECONDS)
    return errors[0].name() if errors[0] else None


def read(client, topic, topics_error=False):
    """The name of the first error when reading a topic, with topics_error of the topic only; None when a record or the
    end arrives."""
    client.assign([confluent_kafka.TopicPartition(topic, 0, 0)]) if topics_error else client.subscribe([topic])
    return first_answer(client, lambda code: topics_error and code.startswith("GROUP_"))


def first_answer(client, passes_over=lambda code: False):
    found = []

    def answered():
        message = client.poll(0.2)
        if message is not None and not (message.error() and passes_over(message.error().name())):
            found.append(message.error() and message.error().name())
        return found
    waiting.until(answered, SECONDS, "a record or an error")
    client.close()
    return None if found[0] == "_PARTITION_EOF" else found[0]


def test_receiver_account_can_only_write_deliveries(installation):
    account, prefix = installation.accounts.client("gatepost-receiver"), installation.prefix
    topics = installation.kafka.topics()
    producer = confluent_kafka.Producer(account | {"message.timeout.ms": SECONDS * 1000})
    allowed = [topic for topic in topics if produce(producer, topic) is None]
    assert allowed == [installation.kafka.deliveries]
    assert set(AdminClient(account).list_topics(timeout=SECONDS).topics) == set(allowed)
    reader = confluent_kafka.Consumer(account | {"group.id": "any"})
    assert read(reader, installation.kafka.deliveries, topics_error=True) == DENIED
    reader = confluent_kafka.Consumer(account | {"group.id": "any"})
    assert read(reader, installation.kafka.deliveries) == "GROUP_AUTHORIZATION_FAILED"
    admin = AdminClient(account)
    new = NewTopic(f"{prefix}.new", 1, 1)
    assert error_of(admin.create_topics([new])[new.topic]) == DENIED
    for topic in topics:
        entry = ConfigEntry("retention.ms", "1", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        assert error_of(admin.incremental_alter_configs([resource])[resource]) == DENIED
        assert error_of(admin.describe_configs([resource])[resource]) == (None if topic in allowed else DENIED)
        assert error_of(admin.delete_topics([topic])[topic]) == DENIED
    wanted = AclBinding(ResourceType.TOPIC, prefix, ResourcePatternType.PREFIXED, "User:gatepost-receiver", "*",
                        AclOperation.ALL, AclPermissionType.ALLOW)
    assert error_of(admin.create_acls([wanted])[wanted]) == "CLUSTER_AUTHORIZATION_FAILED"
    for identity in (f"{prefix}.router-gw1", "any"):
        transactional = confluent_kafka.Producer(account | {"transactional.id": identity})
        with pytest.raises(confluent_kafka.KafkaException) as raised:
            transactional.init_transactions(SECONDS)
        assert raised.value.args[0].name() == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"


def test_consumer_account_can_only_read_events_in_its_own_groups(installation):
    account = installation.accounts.client("erp")

    def consumer(group):
        return confluent_kafka.Consumer(account | {"group.id": group, "enable.partition.eof": True,
                                                   "auto.offset.reset": "earliest"})

    topics = installation.kafka.topics()
    events = [topic for topic in topics if ".invoice." in topic]
    assert set(AdminClient(account).list_topics(timeout=SECONDS).topics) == set(events)
    assert read(consumer("erp.any"), events[0]) is None
    assert read(consumer("erp.any"), installation.kafka.deliveries) == DENIED
    assert read(consumer(f"{installation.prefix}.router"), events[0]) == "GROUP_AUTHORIZATION_FAILED"
    for topic in topics:
        producer = confluent_kafka.Producer(account | {"message.timeout.ms": SECONDS * 1000})
        assert produce(producer, topic) == DENIED, topic


# A missing permission is reported

NOT_SEEN = "the account may not see it"
AT_START = [  # account, resource, operation, text in the log (and in /readyz if the daemon keeps running), whether the daemon exits
    ("receiver", "deliveries", "WRITE", NOT_SEEN, True),
    ("router", "deliveries", "READ", NOT_SEEN, True),
    ("router", "quarantine", "WRITE", NOT_SEEN, True),
    ("router", "reporting_batch", "WRITE", NOT_SEEN, True),
    ("router", "held_unmapped_decision", "WRITE", NOT_SEEN, True),
    ("router", "invoice.", "WRITE", NOT_SEEN, True),
    ("router", "router", "READ", "Group authorization failed", False),
    ("router", "router-", "WRITE", "Transactional Id authorization failed", False),
]


@pytest.mark.parametrize("role, resource, operation, message, ends", AT_START)
def test_missing_permission_is_reported_at_startup(installation, role, resource, operation, message, ends):
    binding = binding_of(installation, f"gatepost-{role}", f".{resource}", operation)
    installation.accounts.revoke(binding)
    daemon = installation.daemon(configure(installation, role)).launch()
    line = daemon.wait_for_log(message)
    assert "gatepost-guide(7)" in line or not ends
    if ends:
        daemon.wait_for_exit(EX_CONFIG)
        return
    waiting.until(lambda: message.encode() in daemon.admin("/readyz").body, SECONDS, lambda: daemon.admin("/readyz").body)
    installation.accounts.grant(binding)
    daemon.wait_until_ready()


UNREADABLE = [("receiver", "deliveries"), ("router", "deliveries"), ("router", "quarantine"), ("router", "invoice."),
              ("router", "held_unmapped_decision"), ("router", "reporting_batch")]


@pytest.mark.parametrize("role, resource", UNREADABLE)
def test_unreadable_topic_settings_are_reported_and_tolerated(installation, role, resource):
    binding = binding_of(installation, f"gatepost-{role}", f".{resource}", "DESCRIBE_CONFIGS")
    installation.accounts.revoke(binding)
    daemon = installation.daemon(configure(installation, role)).start().wait_until_ready()
    assert f"topic={binding.name}" in daemon.log and "DescribeConfigs" in daemon.log


def test_receiver_whose_deliveries_would_not_fit_into_the_topic_does_not_start(installation):
    """Its account may read the settings of the topic."""
    config = configure(installation, "receiver")
    config["receiver"]["max_body"] = "4MiB"
    daemon = installation.daemon(config).launch()
    daemon.wait_for_exit(EX_CONFIG)
    assert "max.message.bytes is 1114112, less than max_body and 64 KiB\" remedy=" in daemon.log, daemon.log
    checkup = installation.gatepost("doctor", config=config)
    assert f" topics {installation.kafka.deliveries}: max.message.bytes is 1114112, less than max_body" in checkup.stdout, checkup


COMMANDS = [  # account, resource, operation, command, exit status, message
    ("admin", "", "CREATE", ("topics", "create"), EX_NOPERM, "authorization failed"),
    ("admin", "", "DESCRIBE", ("topics", "list"), 65, NOT_SEEN),
    ("admin", "", "ALTER_CONFIGS", ("topics", "list"), 0, "DescribeConfigs"),
    ("operator", "", "READ", ("tail", "--until-end"), EX_UNAVAILABLE, "may not read"),
    ("operator", "", "READ", ("quarantine", "list"), EX_NOPERM, "authorization failed"),
    ("operator", "router", "DESCRIBE", ("audit",), EX_NOPERM, "Group authorization failed"),
    *[("operator", resource, "WRITE", ("quarantine", "release", "--reason", "unknown-kind"), EX_NOPERM, "authorization failed")
      for resource in ("deliveries", "quarantine")],
]


@pytest.mark.parametrize("account, resource, operation, command, status, message", COMMANDS)
def test_missing_permission_is_reported_by_command(installation, account, resource, operation, command, status, message):
    binding = binding_of(installation, f"gatepost-{account}", f"{installation.prefix}.{resource}", operation)
    config = configure(installation, account)
    if command[0] == "quarantine":
        installation.start(configure(installation, "router"))
        installation.kafka.append([Delivery(event_body("no.such_kind"))])
        installation.kafka.wait_until_routed()
    if command == ("topics", "create"):
        config["events"]["new.*"] = f"{installation.prefix}.new"
    installation.accounts.revoke(binding)
    done = installation.gatepost(*command, config=config)
    assert done.returncode == status and message.lower() in (done.stdout + done.stderr).lower(), done
    assert command == ("topics", "list") or "KAFKA ACCOUNTS in gatepost-guide(7)" in done.stderr, done


def test_every_permission_in_the_guide_is_covered_by_a_test(installation):
    """The guide lists no unnecessary permission. A consumer needs both permissions to read in a group."""
    prefix = installation.prefix
    needed = [binding_of(installation, f"gatepost-{role}", f".{resource}", operation)
              for role, resource, operation, *_ in AT_START]
    needed += [binding_of(installation, f"gatepost-{role}", f".{resource}", "DESCRIBE_CONFIGS") for role, resource in UNREADABLE]
    needed += [binding_of(installation, f"gatepost-{account}", f"{prefix}.{resource}", operation)
               for account, resource, operation, *_ in COMMANDS]
    needed += [binding_of(installation, "erp", resource, "READ") for resource in (f"TOPIC {prefix}.invoice.", "GROUP erp.")]
    assert {str(each) for each in installation.bindings} == {str(each) for each in needed}


# Revoked and granted again at run time

def test_receiver_answers_503_while_permission_is_revoked_and_recovers(installation):
    receiver = installation.start(configure(installation, "receiver"))
    router = installation.start(configure(installation, "router"))
    sent = [receiver.accept()]
    binding = binding_of(installation, "gatepost-receiver", ".deliveries", "WRITE")
    installation.accounts.revoke(binding)
    waiting.until(lambda: receiver.post().status == 503, SECONDS, "a 503")
    waiting.until(lambda: b"authorization failed" in receiver.admin("/readyz").body, SECONDS,
                  lambda: f"the reason in /readyz: {receiver.admin('/readyz').body} {receiver.log[-3000:]}")
    assert receiver.log.count("a producer has failed") <= 3, receiver.log
    installation.accounts.grant(binding)
    receiver.wait_until_ready()
    sent.append(receiver.accept())
    installation.kafka.wait_until_routed()
    published = [record.delivery_id for record in installation.kafka.read()]
    assert [published.count(each.delivery_id) for each in sent] == [1, 1]
    assert router.ready()


@pytest.mark.parametrize("resource, operation, message", [
    ("deliveries", "READ", "Topic authorization failed"), ("invoice.", "WRITE", "Topic authorization failed"),
    ("router", "READ", "Group authorization failed"), ("router-", "WRITE", "Transactional Id authorization failed")])
def test_router_waits_while_permission_is_revoked_and_recovers(installation, resource, operation, message):
    router = installation.start(configure(installation, "router"))
    kafka = installation.kafka
    sent = [Delivery() for _ in range(20)]
    kafka.append(sent[:10])
    kafka.wait_until_routed()
    binding = binding_of(installation, "gatepost-router", f".{resource}", operation)
    installation.accounts.revoke(binding)
    kafka.append(sent[10:])
    waiting.until(lambda: message.encode() in router.admin("/readyz").body, SECONDS,
                  lambda: f"the reason in /readyz: {router.admin('/readyz').body} {router.log[-3000:]}")
    assert router.log.count(" warning ") <= 8, router.log
    installation.accounts.grant(binding)
    router.wait_until_ready()
    kafka.wait_until_routed()
    published = [record.delivery_id for record in kafka.read()]
    assert [published.count(each.delivery_id) for each in sent] == [1] * len(sent)


def test_unwritable_output_topic_does_not_stop_other_partitions(installation):
    router = installation.start(configure(installation, "router"))
    kafka = installation.kafka
    denial = AclBinding(ResourceType.TOPIC, f"{kafka.prefix}.invoice.rejected", ResourcePatternType.LITERAL,
                        "User:gatepost-router", "*", AclOperation.WRITE, AclPermissionType.DENY)
    denied, others = (deliveries_of(partition, 5, 2, kind=kind)
                      for partition, kind in ((0, "invoice.rejected"), (1, "invoice.accepted")))
    installation.accounts.grant(denial)
    kafka.append(denied)
    wait_for_state(router, 0, "waiting", "output-topic")
    wait_for_state(router, 1, "routing", "")
    assert "Topic authorization failed" in router.admin("/readyz").body.decode()
    kafka.append(others)
    wait_until_published(kafka, others)
    installation.accounts.revoke(denial)
    wait_until_published(kafka, denied, 60)
    router.wait_until_ready()


# Logging in

def password_file(config, password):
    config["kafka"]["sasl.password_file"] = str(config.secret_file("password", password))


WRONG_LOGINS = [
    ("wrong password", lambda config: password_file(config, b"wrong"), "Invalid username or password"),
    ("no such user", lambda config: config["kafka"].update({"sasl.username": "nobody"}), "Invalid username or password"),
    ("another authority", lambda config: config["kafka"].update({"ssl.ca.location": str(config.directory / "other/ca.pem")}),
     "certificate verify failed"),
    ("another name", lambda config: config["kafka"].update({
        "bootstrap.servers": config["kafka"]["bootstrap.servers"].replace("127.0.0.1", "localhost")}), "certificate"),
    ("no TLS", lambda config: config["kafka"].update({"security.protocol": "SASL_PLAINTEXT"}), "security.protocol"),
    ("mechanism", lambda config: config["kafka"].update({"sasl.mechanism": "SCRAM-SHA-256"}), "SCRAM-SHA-512"),
]


def wait_for_cause(daemon, message):
    """Wait for the log to say why Kafka is away."""
    lines = lambda: [line for line in daemon.log.splitlines() if "kafka is unreachable" in line]
    waiting.until(lambda: any(message in line for line in lines()), SECONDS, lambda: f"{message!r}: {lines()}")
    assert len(lines()) <= 2  # a second line only if the first did not give the reason


@pytest.mark.slow
@pytest.mark.parametrize("name, spoil, message", WRONG_LOGINS, ids=[each[0] for each in WRONG_LOGINS])
def test_failed_login_is_reported_with_its_cause(installation, name, spoil, message):
    config = configure(installation, "router")
    (config.directory / "other").mkdir()
    Authority(config.directory / "other")
    spoil(config)
    router = installation.daemon(config).launch()
    wait_for_cause(router, message)
    assert not router.ready()


def test_kafka_tls_files_are_checked_with_the_configuration(offline):
    config = offline.config()
    key = config.secret_file("key.pem", b"a key", 0o604)
    config["kafka"].update({"ssl.ca.location": "/nonexistent/ca.pem", "ssl.key.location": key,
                            "sasl.password_file": config.secret_file("password", b"a password", 0o644)})
    done = offline.gatepost("check", config=config)
    assert done.returncode == EX_CONFIG
    for line in ("cannot open /nonexistent/ca.pem", f"chmod o= {key}", f"chmod o= {config.directory}/password"):
        assert line in done.stderr, done.stderr


def test_password_change_does_not_affect_open_connections(installation, new_library):
    """Kafka checks it at the next connection only; then the daemon waits until the new password is accepted."""
    config = configure(installation, "receiver", mechanism="SCRAM-SHA-512")
    receiver = installation.daemon(config)
    receiver.environment = new_library
    receiver.start().wait_until_ready()
    try:
        installation.accounts.set_password("gatepost-receiver", "another password")
        receiver.accept()
        receiver.stop()
        receiver.launch()
        wait_for_cause(receiver, "uthentication failed")
        assert not receiver.ready()
        assert receiver.post().status == 503
        installation.accounts.set_password("gatepost-receiver", Accounts.password("gatepost-receiver"))
        receiver.wait_until_ready()
        receiver.accept()
    finally:
        installation.accounts.set_password("gatepost-receiver", Accounts.password("gatepost-receiver"))


def test_scram_login_reports_unsupported_librdkafka_version(installation):
    linked = subprocess.run(["pkg-config", "--modversion", "rdkafka"], stdout=subprocess.PIPE, text=True).stdout
    if tuple(map(int, linked.strip().split(".")[:3])) >= (2, 6, 1):
        pytest.skip("this version supports it")
    done = installation.gatepost("doctor", config=configure(installation, "router", mechanism="SCRAM-SHA-512"))
    cause = done.stdout.splitlines()[-1]
    assert done.returncode == EX_NOPERM and "wrong password, or Kafka 4, where librdkafka before 2.6.1 cannot log in by SCRAM" in cause, done
