#include <check.h>
#include <string.h>

#include "kafka/client.h"
#include "kafka/client_error.h"
#include "kafka/outage.h"
#include "logged.h"
#include "suites.h"

/* What is logged and shown of an unreachable Kafka, if several clients report it. */

static void
expect(const char *expected)
{
        const char *text = logged_read();

        if (expected == NULL)
                ck_assert_str_eq(text, "");
        else
                ck_assert_msg(strstr(text, expected) != NULL, "not %s: %s", expected, text);
}

/* What /status says of the outage. */
static void
expect_cause(const char *expected)
{
        char cause[OUTAGE_CAUSE_SIZE];
        int64_t since_s;

        ck_assert_int_eq(outage_read(cause, &since_s), expected != NULL);
        if (expected != NULL) {
                ck_assert_str_eq(cause, expected);
                ck_assert_int_gt(since_s, 1700000000);
        }
}

START_TEST(test_outage_is_logged_once)
{
        outage_note("timed out");
        expect("kafka is unreachable; waiting for it reason=\"timed out\"");
        outage_note("another time");
        client_error_log(NULL, RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, "1/1 brokers are down");
        expect(NULL);
        expect_cause("timed out");
        outage_end();
        expect("kafka is reachable again");
        expect_cause(NULL);
        outage_end();
        expect(NULL);
}
END_TEST

START_TEST(test_cause_found_later_is_logged_as_well)
{
        outage_note("timed out");
        expect("timed out");
        client_error_log(NULL, RD_KAFKA_RESP_ERR__SSL, "no shared cipher");
        expect("kafka is unreachable; waiting for it reason=\"no shared cipher\"");
        client_error_log(NULL, RD_KAFKA_RESP_ERR__SSL, "no shared cipher");
        outage_note("timed out");
        expect(NULL);
        expect_cause("no shared cipher");
        outage_end();
        expect("kafka is reachable again");
        client_error_log(NULL, RD_KAFKA_RESP_ERR__RESOLVE, "no such host");
        expect("no such host");
        outage_note("timed out");
        expect(NULL);
}
END_TEST

START_TEST(test_later_cause_replaces_an_earlier_one)
{
        client_error_log(NULL, RD_KAFKA_RESP_ERR__TRANSPORT, "a:1/bootstrap: Connect to a:1 failed: refused");
        expect(NULL);
        outage_note("timed out");
        expect("reason=\"a:1/bootstrap: Connect to a:1 failed: refused\"");
        client_error_log(NULL, RD_KAFKA_RESP_ERR__AUTHENTICATION, "a:1/1: SASL: no such user");
        expect("reason=\"wrong user name or password: a:1/1: SASL: no such user\"");
        expect_cause("wrong user name or password: a:1/1: SASL: no such user");
        client_error_log(NULL, RD_KAFKA_RESP_ERR__TRANSPORT, "a:1/1: Disconnected");
        client_error_log(NULL, RD_KAFKA_RESP_ERR__TRANSPORT, "a:1/bootstrap: Connect to a:1 failed: refused");
        outage_note("timed out");
        expect(NULL);
        expect_cause("a:1/bootstrap: Connect to a:1 failed: refused");
}
END_TEST

START_TEST(test_brokers_with_different_causes_do_not_flood_the_log)
{
        char text[64];

        outage_note("timed out");
        (void)logged_read();
        for (int i = 0; i < 1000; i++) {
                outage_explain("a:1/1: refused");
                outage_explain("b:2/2: no such user");
                expect(i == 0 ? "no such user" : NULL);
                outage_explain("c:3/3: refused"); /* of the same kind on another broker */
                expect(NULL);
        }
        for (int i = 0; i < 1000; i++) {
                (void)snprintf(text, sizeof(text), "cause %d", i);
                outage_explain(text);
        }
        expect("cause 5");
        outage_explain("cause 1000");
        expect(NULL);
        expect_cause("cause 1000");
        outage_end();
        expect("kafka is reachable again");
        outage_explain("a:1/1: refused");
        expect("a:1/1: refused");
}
END_TEST

START_TEST(test_failed_connection_without_an_outage_is_not_logged)
{
        client_error_log(NULL, RD_KAFKA_RESP_ERR__TRANSPORT, "a:1/1: Disconnected");
        expect(NULL);
        expect_cause(NULL);
        outage_end(); /* another broker has answered */
        expect(NULL);
        outage_note("timed out");
        expect("reason=\"timed out\"");
}
END_TEST

START_TEST(test_duration_is_not_part_of_the_cause)
{
        outage_explain(
            "a:1/1: Connection refused (after 3ms in state CONNECT, 5 identical error(s) suppressed)");
        expect_cause("a:1/1: Connection refused");
}
END_TEST

/* It quotes sasl.oauthbearer.config, which is masked everywhere else. */
START_TEST(test_secret_quoted_by_librdkafka_is_not_logged)
{
        static const char text[] = "Failed to acquire SASL OAUTHBEARER token: Unrecognized "
                                   "sasl.oauthbearer.config beginning at: hunter2";

        client_error_log(NULL, RD_KAFKA_RESP_ERR__RESOLVE, text);
        expect("Failed to acquire SASL OAUTHBEARER token: Unrecognized sasl.oauthbearer.config\"");
        expect_cause("Failed to acquire SASL OAUTHBEARER token: Unrecognized sasl.oauthbearer.config");
        outage_end();
        expect("kafka is reachable again");
        client_error_log(NULL, RD_KAFKA_RESP_ERR__TRANSPORT, text);
        outage_note("timed out");
        expect("sasl.oauthbearer.config\"");
}
END_TEST

START_TEST(test_long_cause_is_cut_between_characters)
{
        char text[2 * OUTAGE_CAUSE_SIZE] = "x", cause[OUTAGE_CAUSE_SIZE];
        int64_t since_s;

        for (size_t i = 1; i + 2 < sizeof(text); i += 2)
                memcpy(text + i, "\u00e4", 3);
        outage_explain(text);
        ck_assert_int_eq(outage_read(cause, &since_s), 1);
        ck_assert_uint_eq(strlen(cause), OUTAGE_CAUSE_SIZE - 2);
}
END_TEST

START_TEST(test_description_ends_in_the_cause)
{
        char text[64];

        ck_assert_str_eq(outage_describe("Kafka is away", text, sizeof(text)), "Kafka is away");
        outage_explain("refused");
        ck_assert_str_eq(outage_describe("Kafka is away", text, sizeof(text)), "Kafka is away: refused");
}
END_TEST

START_TEST(test_cause_begins_with_what_to_check)
{
        client_error_log(NULL, RD_KAFKA_RESP_ERR__SSL,
                         "a:1: error:0A000086:SSL routines::certificate verify failed");
        expect("ssl.ca.location");
        client_error_log(NULL, RD_KAFKA_RESP_ERR__TRANSPORT, "a:1: Receive failed: Connection reset by peer");
        outage_note("timed out");
        expect_cause("a:1: Receive failed: Connection reset by peer");
}
END_TEST

/* librdkafka reports it by a code of its own, and takes the first bytes for a length. */
START_TEST(test_port_of_another_service_is_a_cause)
{
        static const char text[] = "a:1/bootstrap: Receive failed: Invalid response size 1213486160 "
                                   "(0..100000000): increase receive.message.max.bytes";

        client_error_log(NULL, RD_KAFKA_RESP_ERR__TRANSPORT, "a:1/bootstrap: Connect to a:1 failed: refused");
        outage_note("timed out");
        expect("refused");
        client_error_log(NULL, RD_KAFKA_RESP_ERR__BAD_MSG, text);
        expect(NULL); /* other brokers may be well */
        outage_note("timed out");
        expect("the port may not be Kafka's");
        client_error_log(NULL, RD_KAFKA_RESP_ERR__BAD_MSG, text);
        outage_note("timed out");
        expect(NULL);
}
END_TEST

Suite *
suite_outage(void)
{
        Suite *suite = suite_create("outage");
        TCase *tcase = tcase_create("outage");

        tcase_add_checked_fixture(tcase, logged_setup, logged_teardown);
        tcase_add_test(tcase, test_outage_is_logged_once);
        tcase_add_test(tcase, test_cause_found_later_is_logged_as_well);
        tcase_add_test(tcase, test_later_cause_replaces_an_earlier_one);
        tcase_add_test(tcase, test_brokers_with_different_causes_do_not_flood_the_log);
        tcase_add_test(tcase, test_failed_connection_without_an_outage_is_not_logged);
        tcase_add_test(tcase, test_duration_is_not_part_of_the_cause);
        tcase_add_test(tcase, test_secret_quoted_by_librdkafka_is_not_logged);
        tcase_add_test(tcase, test_long_cause_is_cut_between_characters);
        tcase_add_test(tcase, test_description_ends_in_the_cause);
        tcase_add_test(tcase, test_cause_begins_with_what_to_check);
        tcase_add_test(tcase, test_port_of_another_service_is_a_cause);
        suite_add_tcase(suite, tcase);
        return suite;
}
