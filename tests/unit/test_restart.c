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

/* What differs, as `section.name` with spaces between. */
static void
note(const char *section, const char *name, void *arg)
{
        char *told = arg;
        size_t len = strlen(told);

        (void)snprintf(told + len, 256 - len, "%s%s.%s", len == 0 ? "" : " ", section,
                       name == NULL ? "" : name);
}

/* Fail unless the report lists the differences between the minimal configuration with two sets of lines. */
static void
expect_told(const char *more, const char *other, const char *expected)
{
        struct loaded now = scratch_load_more(more), then = scratch_load_more(other);
        char told[256] = "";

        ck_assert_msg(now.config != NULL, "%s", now.messages);
        ck_assert_msg(then.config != NULL, "%s", then.messages);
        restart_needed(now.config, then.config, note, told);
        ck_assert_str_eq(told, expected);
        scratch_release(&now);
        scratch_release(&then);
}

/* A value that is not the default for each option that takes a restart. */
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
    {"router", "dedup_window", "4d"},
    {"topics", "prefix", "another"},
    {"admin", "listen", "off"},
    {"admin", "allow_remote", "on"},
};

START_TEST(test_each_option_that_takes_a_restart_is_told)
{
        char more[128], expected[64];

        (void)snprintf(more, sizeof(more), "[%s]\n%s = %s\n", others[_i].section, others[_i].name,
                       others[_i].value);
        (void)snprintf(expected, sizeof(expected), "%s.%s", others[_i].section, others[_i].name);
        expect_told("", more, expected);
        expect_told(more, "", expected);
        expect_told(more, more, "");
}
END_TEST

START_TEST(test_a_table_of_topics_that_comes_with_another_prefix_is_told)
{
        static const char other[] = "[topics]\nprefix = another\n[events]\ninvoice.* = x\n";

        expect_told("", other, "topics.prefix events.");
        expect_told("[events]\ninvoice.* = x\n", other, "topics.prefix");
        expect_told("[events]\ninvoice.* = y\n", other, "topics.prefix events.");
        expect_told("[events]\ninvoice.a = x\n", other, "topics.prefix events.");
        expect_told("", "[events]\ninvoice.* = x\n", "");
}
END_TEST

/* Whether the table says what is in the list above: nothing changes sides unnoticed. */
START_TEST(test_the_table_knows_what_takes_a_restart)
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

START_TEST(test_properties_of_kafka_are_compared_whatever_their_order)
{
        expect_told("[kafka]\nlinger.ms = 5\nclient.id = a\n", "[kafka]\nclient.id = a\nlinger.ms = 5\n", "");
        expect_told("[kafka]\nlinger.ms = 5\n", "[kafka]\nlinger.ms = 6\n", "kafka.");
        expect_told("[kafka]\nlinger.ms = 5\n", "", "kafka.");
        expect_told("", "[kafka]\nlinger.ms = 5\n", "kafka.");
        expect_told("[kafka]\n" SASL "sasl.password = one\n", "[kafka]\n" SASL "sasl.password = two\n",
                    "kafka.");
}
END_TEST

START_TEST(test_what_is_taken_over_is_not_told)
{
        expect_told("",
                    "[source more]\npath = /more\nsecret = sixteen bytes or more\ntolerance = 1s\n"
                    "[service]\nbase_url = https://api.example/v1\n"
                    "[gatepost]\nlog_level = debug\n[events]\na = t.a\n[router]\nmax_batch = 5\n"
                    "[receiver]\nmax_headers = 11\ntrusted_proxy = unix\nidle_timeout = 1s\n",
                    "");
}
END_TEST

START_TEST(test_configuration_goes_with_the_last_who_holds_it)
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
        ck_assert_uint_eq(held->max_batch, 10000);
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
        tcase_add_loop_test(all, test_each_option_that_takes_a_restart_is_told, 0, (int)ARRAY_LEN(others));
        tcase_add_test(all, test_a_table_of_topics_that_comes_with_another_prefix_is_told);
        tcase_add_test(all, test_the_table_knows_what_takes_a_restart);
        tcase_add_test(all, test_properties_of_kafka_are_compared_whatever_their_order);
        tcase_add_test(all, test_what_is_taken_over_is_not_told);
        tcase_add_test(all, test_configuration_goes_with_the_last_who_holds_it);
        suite_add_tcase(suite, all);
        return suite;
}
