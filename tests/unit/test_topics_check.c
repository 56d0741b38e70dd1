#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kafka/topics_check.h"
#include "suites.h"

#define UNLIMITED "9223372036854775807"

/* Of the last check. */
static char found[FINDING_TEXT_SIZE];
static struct topic_change change;

/* Check an otherwise suitable topic with these limits; NULL: the broker has no such option. */
static int
check_limits(const char *before, const char *after, const char *difference, uint64_t ack_timeout_ms)
{
        static const struct topic_need need = {"t.events", TOPIC_EVENTS};
        struct config config = {.file = "some.conf", .ack_timeout_ms = ack_timeout_ms, .max_body = 1};
        struct topic_state state = {.exists = 1, .settings_known = 1, .replicas = 1, .retention_ms = -1};
        struct findings findings = {0};
        struct topic_changes changes = {0};
        int n;
        const char *const values[] = {
            [TOPIC_BEFORE_MAX] = before, [TOPIC_AFTER_MAX] = after, [TOPIC_DIFFERENCE_MAX] = difference};

        state.max_message_bytes = config_max_record(&config);
        for (enum topic_limit l = 0; l < TOPIC_N_LIMITS; l++) {
                if (values[l] != NULL)
                        topic_settings_read_limit(&state, topic_settings_limit(l), values[l]);
        }
        topics_check(&config, &need, &state, 0, &findings, &changes);
        n = (int)findings.n;
        ck_assert_uint_eq(changes.n, findings.n);
        ck_assert_uint_eq(findings_count(&findings, FINDING_ERROR), findings.n);
        if (n > 0) {
                (void)snprintf(found, sizeof(found), "%s", findings.items[0].text);
                ck_assert_str_eq(findings.items[0].remedy, "gatepost -c some.conf topics fix --yes");
                change = changes.items[0];
        }
        free(changes.items);
        findings_clear(&findings);
        return n;
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
        ck_assert_str_eq(change.setting, "message.timestamp.difference.max.ms");
        ck_assert_str_eq(change.after, UNLIMITED);
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
