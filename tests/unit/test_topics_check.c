#include <check.h>
#include <stdio.h>
#include <string.h>

#include "kafka/topics_check.h"
#include "suites.h"

#define UNLIMITED "9223372036854775807"

static char found[sizeof(((struct topic_finding *)0)->text)];
static int n_found;

static void
on_finding(const struct topic_finding *finding, void *arg)
{
        (void)arg;
        n_found++;
        ck_assert_int_eq(finding->fatal, 1);
        ck_assert_int_eq(finding->routing_only, 0);
        (void)snprintf(found, sizeof(found), "%s", finding->text);
}

/* Check an otherwise suitable topic with these limits; NULL: the broker has no such option. */
static int
check_limits(const char *before, const char *after, const char *difference, uint64_t ack_timeout_ms)
{
        static const struct topic_need need = {"t.events", TOPIC_EVENTS};
        struct config config = {.ack_timeout_ms = ack_timeout_ms, .max_body = 1};
        struct topic_state state = {.exists = 1, .settings_known = 1, .replicas = 1, .retention_ms = -1};
        const char *const values[] = {
            [TOPIC_BEFORE_MAX] = before, [TOPIC_AFTER_MAX] = after, [TOPIC_DIFFERENCE_MAX] = difference};

        state.max_message_bytes = config_max_record(&config);
        for (enum topic_limit l = 0; l < TOPIC_N_LIMITS; l++) {
                if (values[l] != NULL)
                        topic_settings_read_limit(&state, topic_settings_limit(l), values[l]);
        }
        n_found = 0;
        topics_check(&config, &need, &state, on_finding, NULL);
        return n_found;
}

START_TEST(test_brokers_without_the_options_have_no_limit)
{
        ck_assert_int_eq(check_limits(NULL, NULL, NULL, 8000), 0);
}
END_TEST

START_TEST(test_defaults_of_each_version_are_suitable)
{
        ck_assert_int_eq(check_limits(NULL, NULL, UNLIMITED, 8000), 0);
        ck_assert_int_eq(check_limits(UNLIMITED, UNLIMITED, UNLIMITED, 8000), 0);
        ck_assert_int_eq(check_limits(UNLIMITED, "3600000", NULL, 8000), 0);
}
END_TEST

START_TEST(test_limit_of_old_brokers_counts_once_for_both_directions)
{
        ck_assert_int_eq(check_limits(NULL, NULL, "0", 8000), 1);
        ck_assert_ptr_nonnull(strstr(found, "message.timestamp.difference.max.ms is 0, less than 60000: "));
        ck_assert_ptr_nonnull(strstr(found, "--add-config message.timestamp.difference.max.ms=" UNLIMITED));
        ck_assert_int_eq(check_limits(UNLIMITED, UNLIMITED, "0", 8000), 1);
        ck_assert_ptr_nonnull(strstr(found, "message.timestamp.difference.max.ms is 0, "));
}
END_TEST

START_TEST(test_limit_of_one_direction_replaces_that_of_both)
{
        ck_assert_int_eq(check_limits("60000", "30000", "0", 8000), 0);
        ck_assert_int_eq(check_limits("60000", UNLIMITED, "45000", 8000), 0);
        ck_assert_int_eq(check_limits("60000", UNLIMITED, "20000", 8000), 1);
        ck_assert_ptr_nonnull(
            strstr(found, "message.timestamp.difference.max.ms is 20000, less than 30000: "));
}
END_TEST

START_TEST(test_records_may_wait_for_ack_timeout)
{
        ck_assert_int_eq(check_limits("59999", "30000", NULL, 8000), 1);
        ck_assert_int_eq(check_limits("60000", "29999", NULL, 8000), 1);
        ck_assert_ptr_nonnull(strstr(found, "message.timestamp.after.max.ms is 29999, less than 30000: "));
        ck_assert_int_eq(check_limits("329999", "30000", NULL, 300000), 1);
        ck_assert_int_eq(check_limits("330000", "30000", NULL, 300000), 0);
}
END_TEST

Suite *
suite_topics_check(void)
{
        Suite *suite = suite_create("topics_check");
        TCase *tests = tcase_create("timestamps");

        tcase_add_test(tests, test_brokers_without_the_options_have_no_limit);
        tcase_add_test(tests, test_defaults_of_each_version_are_suitable);
        tcase_add_test(tests, test_limit_of_old_brokers_counts_once_for_both_directions);
        tcase_add_test(tests, test_limit_of_one_direction_replaces_that_of_both);
        tcase_add_test(tests, test_records_may_wait_for_ack_timeout);
        suite_add_tcase(suite, tests);
        return suite;
}
