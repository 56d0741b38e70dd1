#include <check.h>
#include <string.h>

#include "kafka/client.h"
#include "logged.h"
#include "suites.h"

/* Log lines about an unreachable Kafka, if several clients report it. */

static void
expect(const char *expected)
{
        const char *text = logged_read();

        if (expected == NULL)
                ck_assert_str_eq(text, "");
        else
                ck_assert_msg(strstr(text, expected) != NULL, "not %s: %s", expected, text);
}

START_TEST(test_unreachable_kafka_is_logged_once)
{
        client_not_reached("timed out");
        expect("kafka is unreachable; waiting for it reason=\"timed out\"");
        client_not_reached("another time");
        client_log_error(NULL, RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, "1/1 brokers are down");
        expect(NULL);
        client_reached();
        expect("kafka is reachable again");
        client_reached();
        expect(NULL);
}
END_TEST

START_TEST(test_cause_found_later_is_logged_as_well)
{
        client_not_reached("timed out");
        expect("timed out");
        client_log_error(NULL, RD_KAFKA_RESP_ERR__SSL, "certificate verify failed");
        expect("kafka is unreachable; waiting for it reason=\"certificate verify failed\"");
        client_log_error(NULL, RD_KAFKA_RESP_ERR__SSL, "certificate verify failed");
        client_not_reached("timed out");
        expect(NULL);
        client_reached();
        expect("kafka is reachable again");
        client_log_error(NULL, RD_KAFKA_RESP_ERR__RESOLVE, "no such host");
        expect("no such host");
        client_not_reached("timed out");
        expect(NULL);
}
END_TEST

/* It quotes sasl.oauthbearer.config, which is masked everywhere else. */
START_TEST(test_secret_quoted_by_librdkafka_is_not_logged)
{
        client_log_error(NULL, RD_KAFKA_RESP_ERR__RESOLVE,
                         "Failed to acquire SASL OAUTHBEARER token: Unrecognized sasl.oauthbearer.config "
                         "beginning at: hunter2");
        expect("Failed to acquire SASL OAUTHBEARER token: Unrecognized sasl.oauthbearer.config\"");
        client_reached();
        expect("kafka is reachable again");
        client_log_error(NULL, RD_KAFKA_RESP_ERR__RESOLVE, "no such host");
        expect("reason=\"no such host\"");
        client_reached();
        expect("kafka is reachable again");
}
END_TEST

START_TEST(test_all_brokers_down_is_logged_with_the_preceding_cause)
{
        client_log_error(NULL, RD_KAFKA_RESP_ERR__TRANSPORT, "connection refused");
        expect(NULL);
        client_not_reached("timed out");
        expect("timed out");
        client_log_error(NULL, RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, "1/1 brokers are down");
        expect("reason=\"1/1 brokers are down, the last: connection refused\"");
}
END_TEST

Suite *
suite_client(void)
{
        Suite *suite = suite_create("client");
        TCase *tcase = tcase_create("away");

        tcase_add_checked_fixture(tcase, logged_setup, logged_teardown);
        tcase_add_test(tcase, test_unreachable_kafka_is_logged_once);
        tcase_add_test(tcase, test_cause_found_later_is_logged_as_well);
        tcase_add_test(tcase, test_secret_quoted_by_librdkafka_is_not_logged);
        tcase_add_test(tcase, test_all_brokers_down_is_logged_with_the_preceding_cause);
        suite_add_tcase(suite, tcase);
        return suite;
}
