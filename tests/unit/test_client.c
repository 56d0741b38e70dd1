#include <check.h>
#include <string.h>

#include "kafka/client.h"
#include "logged.h"
#include "suites.h"

/* Log lines about an unreachable Kafka, when several clients notice it. */

static void
expect(const char *said)
{
        const char *text = logged_read();

        if (said == NULL)
                ck_assert_str_eq(text, "");
        else
                ck_assert_msg(strstr(text, said) != NULL, "not %s: %s", said, text);
}

START_TEST(test_kafka_that_is_away_is_told_once)
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

START_TEST(test_cause_that_is_known_only_later_is_told_too)
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
START_TEST(test_secret_that_librdkafka_quotes_is_not_told)
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

START_TEST(test_that_no_broker_is_left_is_told_with_the_cause_that_came_before)
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
        tcase_add_test(tcase, test_kafka_that_is_away_is_told_once);
        tcase_add_test(tcase, test_cause_that_is_known_only_later_is_told_too);
        tcase_add_test(tcase, test_secret_that_librdkafka_quotes_is_not_told);
        tcase_add_test(tcase, test_that_no_broker_is_left_is_told_with_the_cause_that_came_before);
        suite_add_tcase(suite, tcase);
        return suite;
}
