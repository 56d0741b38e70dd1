#include <stdio.h>
#include <string.h>

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

START_TEST(test_properties_are_taken_as_they_are)
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

START_TEST(test_property_that_would_break_a_guarantee_is_refused_with_the_reason)
{
        static const char *const names[] = {"acks",
                                            "request.required.acks",
                                            "enable.idempotence",
                                            "max.in.flight",
                                            "max.in.flight.requests.per.connection",
                                            "enable.gapless.guarantee",
                                            "partitioner",
                                            "message.max.bytes",
                                            "message.timeout.ms",
                                            "delivery.timeout.ms",
                                            "enable.auto.commit",
                                            "auto.commit.enable",
                                            "enable.auto.offset.store",
                                            "auto.offset.reset",
                                            "isolation.level",
                                            "transactional.id",
                                            "group.id",
                                            "group.instance.id",
                                            "partition.assignment.strategy",
                                            "allow.auto.create.topics",
                                            "delivery.report.only.error",
                                            "enabled_events",
                                            "statistics.interval.ms",
                                            "plugin.library.paths",
                                            "test.mock.num.brokers",
                                            "test.mock.broker.rtt"};
        char more[128], words[128];

        (void)snprintf(more, sizeof(more), "%s = 1\n", names[_i]);
        (void)snprintf(words, sizeof(words), "%s: may not be set: ", names[_i]);
        scratch_expect_refused(more, words);
}
END_TEST

START_TEST(test_unknown_property_gets_a_suggestion)
{
        static const char *const cases[][2] = {
            {"lingr.ms = 1\n", "linger.ms"},                   /* an alias */
            {"boostrap.servers = k:1\n", "bootstrap.servers"}, /* an alias */
            {"sasl.usernam = x\n", "sasl.username"},           /* has no value by default */
            {"compression.levl = 1\n", "compression.level"},   /* of topics */
            {"socket.keepalive.enabel = true\n", "socket.keepalive.enable"},
        };

        scratch_expect_refused(cases[_i][0], cases[_i][1]);
}
END_TEST

START_TEST(test_unknown_property_like_no_other_is_refused)
{
        scratch_expect_refused("no.such.property.anywhere = 1\n",
                               "no.such.property.anywhere: librdkafka has no such property");
}
END_TEST

START_TEST(test_value_that_librdkafka_does_not_take_is_refused_with_its_reason)
{
        scratch_expect_refused("security.protocol = tls\n", "security.protocol");
        scratch_expect_refused("linger.ms = soon\n", "linger.ms");
        scratch_expect_refused("socket.timeout.ms = 1\n", "range");
        scratch_expect_refused("ssl.truststore.location = /x\n", "TrustStore");
        scratch_expect_refused("log_cb = x\n", "log_cb");
        scratch_expect_refused("linger.ms =\n", "value is missing");
}
END_TEST

/* sasl.oauthbearer.client.secret is one too, but not every librdkafka has it. */
START_TEST(test_password_stands_in_the_file_or_in_one_of_its_own)
{
        static const char *const names[] = {"sasl.password", "ssl.key.password", "ssl.keystore.password",
                                            "ssl.key.pem", "sasl.oauthbearer.config"};
        char more[256];
        struct loaded loaded;

        (void)snprintf(more, sizeof(more), "%s = p\n", names[_i]);
        loaded = scratch_load_more(more);
        ck_assert_str_eq(property(&loaded, names[_i])->value, "p");
        ck_assert_int_eq(property(&loaded, names[_i])->secret, 1);
        scratch_release(&loaded);

        (void)snprintf(more, sizeof(more), "%s_file = %s\n", names[_i],
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

START_TEST(test_one_property_by_two_names_is_refused)
{
        char more[256];

        (void)snprintf(more, sizeof(more), "sasl.password = p\nsasl.password_file = %s\n",
                       scratch_file("password", "p", 1, 0600));
        scratch_expect_refused(more, "sasl.password");
        scratch_expect_refused("metadata.broker.list = k:1\n", "set already");
}
END_TEST

START_TEST(test_old_name_of_the_brokers_counts)
{
        struct loaded loaded =
            scratch_load("[receiver]\nlisten = 127.0.0.1:0\n[source s]\npath = /s\n"
                         "secret = sixteen bytes or more\n[kafka]\nmetadata.broker.list = k:1\n");

        ck_assert_str_eq(property(&loaded, "bootstrap.servers")->value, "k:1");
        scratch_release(&loaded);
}
END_TEST

START_TEST(test_embedded_broker_is_no_property)
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
        Suite *suite = suite_create("config kafka");
        TCase *tests = tcase_create("properties");

        tcase_add_checked_fixture(tests, scratch_setup, scratch_teardown);
        tcase_add_test(tests, test_properties_are_taken_as_they_are);
        tcase_add_loop_test(tests, test_property_that_would_break_a_guarantee_is_refused_with_the_reason, 0,
                            25);
        tcase_add_loop_test(tests, test_unknown_property_gets_a_suggestion, 0, 5);
        tcase_add_test(tests, test_unknown_property_like_no_other_is_refused);
        tcase_add_test(tests, test_value_that_librdkafka_does_not_take_is_refused_with_its_reason);
        tcase_add_loop_test(tests, test_password_stands_in_the_file_or_in_one_of_its_own, 0, 5);
        tcase_add_test(tests, test_password_file_follows_the_rule_for_secrets);
        tcase_add_test(tests, test_one_property_by_two_names_is_refused);
        tcase_add_test(tests, test_old_name_of_the_brokers_counts);
        tcase_add_test(tests, test_embedded_broker_is_no_property);
        suite_add_tcase(suite, tests);
        return suite;
}
