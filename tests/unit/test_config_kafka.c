#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/compiler.h"
#include "config/kafka_properties.h"
#include "scratch.h"
#include "suites.h"

static const struct config_property *
property(const struct loaded *loaded, const char *name)
{
        ck_assert_str_eq(loaded->messages, "");
        for (size_t i = 0; i < loaded->config->n_kafka; i++) {
                if (strcmp(loaded->config->kafka[i].name, name) == 0)
                        return &loaded->config->kafka[i];
        }
        return NULL;
}

START_TEST(test_properties_are_passed_unchanged)
{
        struct loaded loaded =
            scratch_load_more("linger.ms = 5\nclient.rack = a\nsecurity.protocol = sasl_ssl\n"
                              "compression.type = zstd\n");

        ck_assert_str_eq(property(&loaded, "bootstrap.servers")->value, "kafka1:9092");
        ck_assert_str_eq(property(&loaded, "linger.ms")->value, "5");
        ck_assert_str_eq(property(&loaded, "compression.type")->value, "zstd");
        ck_assert_uint_eq(loaded.config->n_kafka, 5);
        ck_assert_int_eq(property(&loaded, "linger.ms")->secret, 0);
        scratch_release(&loaded);
}
END_TEST

/* By its own name, its aliases, and with the prefix that librdkafka accepts for topic properties. */
static const char *const refused[] = {"acks = 1",
                                      "request.required.acks = 1",
                                      "topic.acks = 1",
                                      "topic.request.required.acks = all",
                                      "enable.idempotence = true",
                                      "topic.enable.idempotence = false",
                                      "max.in.flight = 1",
                                      "max.in.flight.requests.per.connection = 1",
                                      "enable.gapless.guarantee = true",
                                      "retries = 0",
                                      "message.send.max.retries = 0",
                                      "queue.buffering.max.kbytes = 512",
                                      "queue.buffering.max.messages = 1",
                                      "queuing.strategy = lifo",
                                      "topic.queuing.strategy = lifo",
                                      "partitioner = random",
                                      "topic.partitioner = random",
                                      "message.max.bytes = 1000",
                                      "message.timeout.ms = 1",
                                      "topic.message.timeout.ms = 1",
                                      "delivery.timeout.ms = 1",
                                      "topic.delivery.timeout.ms = 1",
                                      "enable.auto.commit = true",
                                      "topic.enable.auto.commit = true",
                                      "auto.commit.enable = true",
                                      "topic.auto.commit.enable = true",
                                      "enable.auto.offset.store = true",
                                      "offset.store.method = file",
                                      "topic.offset.store.method = file",
                                      "auto.offset.reset = latest",
                                      "topic.auto.offset.reset = latest",
                                      "isolation.level = read_uncommitted",
                                      "enable.partition.eof = true",
                                      "transactional.id = a",
                                      "group.id = a",
                                      "group.instance.id = a",
                                      "partition.assignment.strategy = range",
                                      "group.protocol = consumer",
                                      "group.protocol.type = a",
                                      "group.remote.assignor = uniform",
                                      "allow.auto.create.topics = true",
                                      "topic.blacklist = .*",
                                      "delivery.report.only.error = true",
                                      "enabled_events = 1",
                                      "statistics.interval.ms = 1",
                                      "log.queue = true",
                                      "internal.termination.signal = 9",
                                      "api.version.request = false",
                                      "api.version.fallback.ms = 1",
                                      "broker.version.fallback = 0.9.0",
                                      "plugin.library.paths = /x.so",
                                      "interceptors = a",
                                      "ssl.engine.location = /x.so",
                                      "ssl.engine.id = a",
                                      "ssl.providers = a",
                                      "sasl.kerberos.kinit.cmd = true",
                                      "sasl.kerberos.min.time.before.relogin = 0",
                                      "test.mock.num.brokers = 1",
                                      "test.mock.broker.rtt = 1"};

START_TEST(test_property_that_would_break_a_guarantee_is_refused_with_the_reason)
{
        char more[128], words[128];

        (void)snprintf(more, sizeof(more), "%s\n", refused[_i]);
        (void)snprintf(words, sizeof(words), "%.*s: may not be set: ", (int)strcspn(refused[_i], " "),
                       refused[_i]);
        scratch_expect_refused(more, words);
}
END_TEST

/* All accepted properties of librdkafka 2.0.2 to 2.16.0, reviewed by hand: none breaks a guarantee. */
static const char taken[] =
    " builtin.features client.id metadata.broker.list bootstrap.servers message.copy.max.bytes "
    "receive.message.max.bytes topic.metadata.refresh.interval.ms metadata.max.age.ms "
    "topic.metadata.refresh.fast.interval.ms topic.metadata.refresh.fast.cnt topic.metadata.refresh.sparse "
    "topic.metadata.propagation.max.ms debug socket.timeout.ms socket.blocking.max.ms "
    "socket.send.buffer.bytes socket.receive.buffer.bytes socket.keepalive.enable socket.nagle.disable "
    "socket.max.fails broker.address.ttl broker.address.family socket.connection.setup.timeout.ms "
    "connections.max.idle.ms reconnect.backoff.jitter.ms reconnect.backoff.ms reconnect.backoff.max.ms "
    "log_level log.thread.name enable.random.seed log.connection.close api.version.request.timeout.ms "
    "security.protocol ssl.cipher.suites ssl.curves.list ssl.sigalgs.list ssl.key.location ssl.key.password "
    "ssl.key.pem ssl.certificate.location ssl.certificate.pem ssl.ca.location ssl.ca.pem "
    "ssl.ca.certificate.stores ssl.crl.location ssl.keystore.location ssl.keystore.password "
    "enable.ssl.certificate.verification ssl.endpoint.identification.algorithm https.ca.location "
    "https.ca.pem sasl.mechanisms sasl.mechanism sasl.kerberos.service.name sasl.kerberos.principal "
    "sasl.kerberos.keytab sasl.username sasl.password "
    "sasl.oauthbearer.config enable.sasl.oauthbearer.unsecure.jwt sasl.oauthbearer.method "
    "sasl.oauthbearer.client.id sasl.oauthbearer.client.credentials.client.id "
    "sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.client.secret "
    "sasl.oauthbearer.scope sasl.oauthbearer.extensions sasl.oauthbearer.token.endpoint.url "
    "sasl.oauthbearer.sub.claim.name sasl.oauthbearer.grant.type sasl.oauthbearer.assertion.algorithm "
    "sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase "
    "sasl.oauthbearer.assertion.private.key.pem sasl.oauthbearer.assertion.file "
    "sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds "
    "sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include "
    "sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub "
    "sasl.oauthbearer.assertion.jwt.template.file sasl.oauthbearer.metadata.authentication.type "
    "session.timeout.ms heartbeat.interval.ms coordinator.query.interval.ms max.poll.interval.ms "
    "auto.commit.interval.ms queued.min.messages queued.max.messages.kbytes fetch.wait.max.ms "
    "fetch.queue.backoff.ms fetch.message.max.bytes max.partition.fetch.bytes fetch.max.bytes "
    "fetch.min.bytes fetch.error.backoff.ms check.crcs client.rack client.dns.lookup "
    "enable.metrics.push metadata.recovery.strategy metadata.recovery.rebootstrap.trigger.ms "
    "max.poll.records share.acknowledgement.mode transaction.timeout.ms "
    "queue.buffering.max.ms linger.ms retry.backoff.ms retry.backoff.max.ms "
    "queue.buffering.backpressure.threshold compression.codec compression.type batch.num.messages "
    "batch.size sticky.partitioning.linger.ms request.timeout.ms produce.offset.report "
    "compression.level offset.store.path offset.store.sync.interval.ms consume.callback.max.messages ";

static int
is_taken(const char *name)
{
        char word[128];

        (void)snprintf(word, sizeof(word), " %s ", name);
        return strstr(taken, word) != NULL;
}

/* Properties that a program sets by a function; librdkafka does not accept a text for them. */
static int
is_set_by_function(const char *name)
{
        size_t len = strlen(name);

        return (len > 3 && strcmp(name + len - 3, "_cb") == 0) || strcmp(name, "opaque") == 0 ||
               strcmp(name, "default_topic_conf") == 0 || strcmp(name, "msg_order_cmp") == 0 ||
               strncmp(name, "ssl_", 4) == 0;
}

/* Return the name of which a line of librdkafka's documentation says that its own is an alias, or that. Cuts it. */
static const char *
own_name(char *line)
{
        char *own = strstr(line, "Alias for `");

        if (own != NULL) {
                own += strlen("Alias for `");
                own[strcspn(own, "`")] = '\0';
        }
        line[strcspn(line, " ")] = '\0';
        return own == NULL ? line : own;
}

/* A property of a later librdkafka may break a guarantee: somebody must decide. */
START_TEST(test_every_librdkafka_property_is_accepted_or_refused)
{
        char *text, *save = NULL;
        size_t len, n = 0;
        FILE *out = open_memstream(&text, &len);

        rd_kafka_conf_properties_show(out);
        (void)fclose(out);
        for (char *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
                int is_title = strchr(line, '|') == NULL || strchr("P-", *line) != NULL;
                const char *own = own_name(line);

                if (is_title || is_set_by_function(line))
                        continue;
                n++;
                if (rd_kafka_version() <= 0x021000ff)
                        ck_assert_msg(is_taken(line) != (kafka_property_refused(own) != NULL),
                                      "%s: is it to be taken?", line);
        }
        ck_assert_uint_gt(n, 130);
        free(text);
}
END_TEST

START_TEST(test_topic_property_may_have_the_topic_prefix)
{
        struct loaded loaded = scratch_load_more("topic.compression.level = 3\n");

        ck_assert_str_eq(property(&loaded, "topic.compression.level")->value, "3");
        scratch_release(&loaded);
        scratch_expect_refused("topic.topic.acks = 1\n", "no such property");
}
END_TEST

START_TEST(test_secret_property_is_recognised_by_its_suffix)
{
        static const char *const secret[] = {"sasl.password",
                                             "ssl.key.password",
                                             "ssl.keystore.password",
                                             "ssl.truststore.password",
                                             "ssl.key.pem",
                                             "ssl_key",
                                             "sasl.jaas.config",
                                             "sasl.oauthbearer.config",
                                             "sasl.oauthbearer.client.secret",
                                             "sasl.oauthbearer.client.credentials.client.secret",
                                             "sasl.oauthbearer.assertion.private.key.passphrase",
                                             "sasl.oauthbearer.assertion.private.key.pem",
                                             "topic.sasl.password",
                                             "some.later.token"};
        static const char *const open[] = {"sasl.username", "ssl.certificate.pem", "ssl.key.location",
                                           "sasl.oauthbearer.client.id",
                                           "sasl.oauthbearer.token.endpoint.url"};

        for (size_t i = 0; i < ARRAY_LEN(secret); i++)
                ck_assert_msg(kafka_property_is_secret(secret[i]), "%s", secret[i]);
        for (size_t i = 0; i < ARRAY_LEN(open); i++)
                ck_assert_msg(!kafka_property_is_secret(open[i]), "%s", open[i]);
}
END_TEST

START_TEST(test_secret_value_is_in_no_message)
{
        static const char *const wrong[] = {"sasl.pasword = hunter2\n", "topic.sasl.password = hunter2\n",
                                            "ssl.truststore.password = hunter2\n",
                                            "sasl.jaas.config = hunter2\n", "ssl_key = hunter2\n"};
        struct loaded loaded = scratch_load_more(wrong[_i]);

        ck_assert_ptr_null(loaded.config);
        ck_assert_ptr_null(strstr(loaded.messages, "hunter2"));
        scratch_release(&loaded);
}
END_TEST

START_TEST(test_fifo_is_refused_as_a_file)
{
        static const char *const names[] = {"ssl.ca.location",       "ssl.certificate.location",
                                            "ssl.crl.location",      "ssl.key.location",
                                            "ssl.keystore.location", "sasl.kerberos.keytab"};
        const char *fifo = scratch_path("fifo");
        char more[256];

        ck_assert_int_eq(mkfifo(fifo, 0600), 0);
        (void)snprintf(more, sizeof(more), "%s = %s\n", names[_i], fifo);
        scratch_expect_refused(more, fifo);
}
END_TEST

START_TEST(test_unknown_property_is_refused)
{
        scratch_expect_refused("no.such.property.anywhere = 1\n",
                               "no.such.property.anywhere: librdkafka has no such property");
}
END_TEST

START_TEST(test_value_rejected_by_librdkafka_is_refused_with_its_reason)
{
        scratch_expect_refused("security.protocol = tls\n", "security.protocol");
        scratch_expect_refused("linger.ms = soon\n", "linger.ms");
        scratch_expect_refused("socket.timeout.ms = 1\n", "range 10..300000");
        scratch_expect_refused("ssl.truststore.location = /x\n", "TrustStore");
        scratch_expect_refused("log_cb = x\n", "log_cb");
        scratch_expect_refused("linger.ms =\n", "value is missing");
}
END_TEST

/* sasl.oauthbearer.client.secret is another, but not every librdkafka has it. */
START_TEST(test_password_may_be_inline_or_in_a_file)
{
        static const char *const names[] = {"sasl.password", "ssl.key.password", "ssl.keystore.password",
                                            "ssl.key.pem", "sasl.oauthbearer.config"};
        const char *protocol =
            _i == 0 ? "security.protocol = SASL_SSL\nsasl.mechanism = PLAIN\nsasl.username = u\n" : "";
        char more[256];
        struct loaded loaded;

        (void)snprintf(more, sizeof(more), "%s%s = p\n", protocol, names[_i]);
        loaded = scratch_load_more(more);
        ck_assert_str_eq(property(&loaded, names[_i])->value, "p");
        ck_assert_int_eq(property(&loaded, names[_i])->secret, 1);
        scratch_release(&loaded);

        (void)snprintf(more, sizeof(more), "%s%s_file = %s\n", protocol, names[_i],
                       scratch_file("password", "line\nline\n", 10, 0600));
        loaded = scratch_load_more(more);
        ck_assert_str_eq(property(&loaded, names[_i])->value, "line\nline");
        ck_assert_int_eq(property(&loaded, names[_i])->secret, 1);
        scratch_release(&loaded);
}
END_TEST

START_TEST(test_password_file_follows_the_rule_for_secrets)
{
        char more[256];

        (void)snprintf(more, sizeof(more), "sasl.password_file = %s\n", scratch_file("open", "p", 1, 0644));
        scratch_expect_refused(more, "chmod o= ");
        (void)snprintf(more, sizeof(more), "sasl.password_file = %s\n", scratch_file("empty", "\n", 1, 0600));
        scratch_expect_refused(more, "empty");
        (void)snprintf(more, sizeof(more), "sasl.password_file = %s\n", scratch_file("nul", "a\0b", 3, 0600));
        scratch_expect_refused(more, "NUL");
        scratch_expect_refused("sasl.username_file = /x\n", "sasl.username_file");
}
END_TEST

START_TEST(test_embedded_broker_sets_no_property)
{
        struct loaded loaded =
            scratch_load("[receiver]\nlisten = 127.0.0.1:0\n[source s]\npath = /s\n"
                         "secret = sixteen bytes or more\n[kafka]\nbootstrap.servers = embedded\n");

        ck_assert_str_eq(loaded.messages, "");
        ck_assert_int_eq(loaded.config->embedded, 1);
        ck_assert_uint_eq(loaded.config->n_kafka, 0);
        scratch_release(&loaded);
}
END_TEST

Suite *
suite_config_kafka(void)
{
        Suite *suite = suite_create("config_kafka");
        TCase *tests = tcase_create("properties");

        tcase_add_checked_fixture(tests, scratch_setup, scratch_teardown);
        tcase_add_test(tests, test_properties_are_passed_unchanged);
        tcase_add_loop_test(tests, test_property_that_would_break_a_guarantee_is_refused_with_the_reason, 0,
                            ARRAY_LEN(refused));
        tcase_add_test(tests, test_topic_property_may_have_the_topic_prefix);
        tcase_add_test(tests, test_every_librdkafka_property_is_accepted_or_refused);
        tcase_add_test(tests, test_secret_property_is_recognised_by_its_suffix);
        tcase_add_loop_test(tests, test_secret_value_is_in_no_message, 0, 5);
        tcase_add_loop_test(tests, test_fifo_is_refused_as_a_file, 0, 6);
        tcase_add_test(tests, test_unknown_property_is_refused);
        tcase_add_test(tests, test_value_rejected_by_librdkafka_is_refused_with_its_reason);
        tcase_add_loop_test(tests, test_password_may_be_inline_or_in_a_file, 0, 5);
        tcase_add_test(tests, test_password_file_follows_the_rule_for_secrets);
        tcase_add_test(tests, test_embedded_broker_sets_no_property);
        suite_add_tcase(suite, tests);
        return suite;
}
