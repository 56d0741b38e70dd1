#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "config/current.h"
#include "config/options.h"
#include "config/restart.h"
#include "scratch.h"
#include "suites.h"

/* Append a difference to a list of `section.name`, separated by spaces. */
static void
note(const char *section, const char *name, void *arg)
{
        char *differences = arg;
        size_t len = strlen(differences);

        (void)snprintf(differences + len, 256 - len, "%s%s.%s", len == 0 ? "" : " ", section,
                       name == NULL ? "" : name);
}

/* Fail unless the report lists the differences between the minimal configuration with two sets of lines. */
static void
expect_differences(const char *more, const char *other, const char *expected)
{
        struct loaded now = scratch_load_more(more), then = scratch_load_more(other);
        char differences[256] = "";

        ck_assert_msg(now.config != NULL, "%s", now.messages);
        ck_assert_msg(then.config != NULL, "%s", then.messages);
        restart_needed(now.config, then.config, note, differences);
        ck_assert_str_eq(differences, expected);
        scratch_release(&now);
        scratch_release(&then);
}

/* A value other than the default for each option that needs a restart. */
static const struct {
        const char *section;
        const char *name;
        const char *value;
} others[] = {
    {"gatepost", "roles", "receiver"},
    {"gatepost", "instance", "another"},
    {"receiver", "listen", "127.0.0.1:8081"},
    {"receiver", "threads", "2"},
    {"receiver", "max_body", "2MiB"},
    {"receiver", "ack_timeout", "9s"},
    {"receiver", "spool", "/var/lib/gatepost/spool"},
    {"router", "state", "/var/lib/gatepost/state"},
    {"router", "standby", "on"},
    {"receiver", "spool_max", "1GiB"},
    {"router", "dedup_window", "4d"},
    {"topics", "prefix", "another"},
    {"admin", "listen", "off"},
    {"admin", "allow_remote", "on"},
};

START_TEST(test_changed_option_that_needs_a_restart_is_reported)
{
        char more[128], expected[64];

        (void)snprintf(more, sizeof(more), "[%s]\n%s = %s\n", others[_i].section, others[_i].name,
                       others[_i].value);
        (void)snprintf(expected, sizeof(expected), "%s.%s", others[_i].section, others[_i].name);
        expect_differences("", more, expected);
        expect_differences(more, "", expected);
        expect_differences(more, more, "");
}
END_TEST

/* The option table and the list above must agree, so that no option changes its class by accident. */
START_TEST(test_option_table_marks_options_that_need_a_restart)
{
        for (size_t i = 0; i < options_count(); i++) {
                const struct option_row *option = options_at(i);
                int found = 0;

                for (size_t k = 0; k < ARRAY_LEN(others); k++)
                        found |= strcmp(others[k].section, option->section) == 0 &&
                                 strcmp(others[k].name, option->name) == 0;
                ck_assert_msg(found == ((option->flags & OPTION_RESTART) != 0), "[%s] %s", option->section,
                              option->name);
        }
}
END_TEST

#define SASL "security.protocol = SASL_SSL\nsasl.mechanism = PLAIN\nsasl.username = u\n"

START_TEST(test_kafka_properties_are_compared_in_any_order)
{
        expect_differences("[kafka]\nlinger.ms = 5\nclient.id = a\n",
                           "[kafka]\nclient.id = a\nlinger.ms = 5\n", "");
        expect_differences("[kafka]\nlinger.ms = 5\n", "[kafka]\nlinger.ms = 6\n", "kafka.");
        expect_differences("[kafka]\nlinger.ms = 5\n", "", "kafka.");
        expect_differences("", "[kafka]\nlinger.ms = 5\n", "kafka.");
        expect_differences("[kafka]\n" SASL "sasl.password = one\n", "[kafka]\n" SASL "sasl.password = two\n",
                           "kafka.");
}
END_TEST

START_TEST(test_reloadable_options_are_not_reported)
{
        expect_differences("",
                           "[source more]\npath = /more\nsecret = sixteen bytes or more\ntolerance = 1s\n"
                           "[service]\nbase_url = https://api.example/v1\n"
                           "[gatepost]\nlog_level = debug\n[events]\na = t.a\n[router]\nmax_batch = 5\n"
                           "[receiver]\nmax_headers = 11\ntrusted_proxy = unix\nidle_timeout = 1s\n",
                           "");
}
END_TEST

START_TEST(test_configuration_is_freed_by_its_last_holder)
{
        struct loaded loaded = scratch_load_more(""), other = scratch_load_more("[router]\nmax_batch = 5\n");
        struct current *current = current_new(loaded.config);
        const struct config *held = current_hold(current);

        ck_assert_ptr_eq(held, loaded.config);
        ck_assert(current_is(current, held));
        current_set(current, other.config);
        ck_assert(!current_is(current, held));
        ck_assert_ptr_eq(current_first(current), held);
        scratch_release(&loaded);
        scratch_release(&other);
        ck_assert_uint_eq(held->max_batch, 30000);
        config_free(held);
        held = current_hold(current);
        current_free(current);
        ck_assert_uint_eq(held->max_batch, 5);
        config_free(held);
}
END_TEST

Suite *
suite_restart(void)
{
        Suite *suite = suite_create("restart");
        TCase *all = tcase_create("all");

        tcase_add_checked_fixture(all, scratch_setup, scratch_teardown);
        tcase_add_loop_test(all, test_changed_option_that_needs_a_restart_is_reported, 0,
                            (int)ARRAY_LEN(others));
        tcase_add_test(all, test_option_table_marks_options_that_need_a_restart);
        tcase_add_test(all, test_kafka_properties_are_compared_in_any_order);
        tcase_add_test(all, test_reloadable_options_are_not_reported);
        tcase_add_test(all, test_configuration_is_freed_by_its_last_holder);
        suite_add_tcase(suite, all);
        return suite;
}
