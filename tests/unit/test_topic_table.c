#include <stdio.h>
#include <string.h>

#include "model/topic_table.h"
#include "suites.h"

static struct topic_table *table;
static struct error error;

static void
set_up(void)
{
        table = topic_table_new();
}

static void
tear_down(void)
{
        topic_table_free(table);
}

static const char *
topic_of(const char *kind)
{
        const struct topic_rule *rule = topic_table_find(table, kind, strlen(kind));

        return rule == NULL ? "none" : rule->topic;
}

START_TEST(test_documented_kinds_have_a_topic_by_default)
{
        topic_table_add_defaults(table, "inv");
        ck_assert_uint_eq(topic_table_size(table), 9);
        ck_assert_str_eq(topic_of("invoice.accepted"), "inv.invoice.accepted");
        ck_assert_str_eq(topic_of("held_unmapped_decision"), "inv.held_unmapped_decision");
        ck_assert_str_eq(topic_of("reporting_batch.overdue"), "inv.reporting_batch");
        ck_assert_str_eq(topic_of("reporting_batch"), "none");
        ck_assert_str_eq(topic_of("reporting_batch."), "none");
        ck_assert_str_eq(topic_of("invoice.teleported"), "none");
        ck_assert_str_eq(topic_of("INVOICE.ACCEPTED"), "none");
}
END_TEST

START_TEST(test_exact_beats_pattern_and_the_longest_pattern_wins)
{
        ck_assert_int_eq(topic_table_add(table, "a.*", "short", &error), 0);
        ck_assert_int_eq(topic_table_add(table, "a.b.*", "long", &error), 0);
        ck_assert_int_eq(topic_table_add(table, "a.b.c", "exact", &error), 0);
        ck_assert_str_eq(topic_of("a.b.c"), "exact");
        ck_assert_str_eq(topic_of("a.b.d"), "long");
        ck_assert_str_eq(topic_of("a.b.c.d"), "long");
        ck_assert_str_eq(topic_of("a.c"), "short");
        ck_assert_str_eq(topic_of("a"), "none");
        ck_assert_str_eq(topic_of("a.*"), "none");
        ck_assert_str_eq(topic_of("ab.c"), "none");
}
END_TEST

START_TEST(test_hostile_kinds_have_no_topic)
{
        char longest[10001];

        ck_assert_int_eq(topic_table_add(table, "a.*", "topic", &error), 0);
        memset(longest, 'a', sizeof(longest) - 1);
        longest[sizeof(longest) - 1] = '\0';
        longest[1] = '.';
        ck_assert_str_eq(topic_of(longest), "none");
        ck_assert_ptr_null(topic_table_find(table, "a.b\0c", 5));
        ck_assert_ptr_null(topic_table_find(table, "", 0));
}
END_TEST

START_TEST(test_wrong_rules_are_refused)
{
        ck_assert_int_eq(topic_table_add(table, "a", "topic", &error), 0);
        ck_assert_int_eq(topic_table_add(table, "a", "other", &error), -1);
        ck_assert_int_eq(topic_table_add(table, "*", "topic", &error), -1);
        ck_assert_int_eq(topic_table_add(table, "a*", "topic", &error), -1);
        ck_assert_int_eq(topic_table_add(table, "a.*.b", "topic", &error), -1);
        ck_assert_int_eq(topic_table_add(table, "b", "no spaces", &error), -1);
        ck_assert_int_eq(topic_table_add(table, "b", "..", &error), -1);
}
END_TEST

START_TEST(test_a_thousand_kinds_are_found)
{
        char kind[32], topic[32];

        for (int i = 0; i < 1000; i++) {
                (void)snprintf(kind, sizeof(kind), "kind.%d", i * 7919 % 1000);
                (void)snprintf(topic, sizeof(topic), "topic.%d", i * 7919 % 1000);
                ck_assert_int_eq(topic_table_add(table, kind, topic, &error), 0);
        }
        for (int i = 0; i < 1000; i++) {
                (void)snprintf(kind, sizeof(kind), "kind.%d", i);
                (void)snprintf(topic, sizeof(topic), "topic.%d", i);
                ck_assert_str_eq(topic_of(kind), topic);
        }
}
END_TEST

Suite *
suite_topic_table(void)
{
        Suite *suite = suite_create("topic_table");
        TCase *all = tcase_create("all");

        tcase_add_checked_fixture(all, set_up, tear_down);
        tcase_add_test(all, test_documented_kinds_have_a_topic_by_default);
        tcase_add_test(all, test_exact_beats_pattern_and_the_longest_pattern_wins);
        tcase_add_test(all, test_hostile_kinds_have_no_topic);
        tcase_add_test(all, test_wrong_rules_are_refused);
        tcase_add_test(all, test_a_thousand_kinds_are_found);
        suite_add_tcase(suite, all);
        return suite;
}
