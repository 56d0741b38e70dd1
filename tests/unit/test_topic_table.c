#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "model/topic_table.h"
#include "suites.h"

static struct topic_table *table;

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

static void
add(const char *pattern, const char *topic)
{
        struct error error;

        ck_assert_int_eq(topic_table_add(table, pattern, topic, &error), 0);
}

/* The topic of a kind, or "none". */
static const char *
topic_of(const char *kind)
{
        const struct topic_rule *rule = topic_table_find(table, kind, strlen(kind));

        return rule == NULL ? "none" : rule->topic;
}

START_TEST(test_exact_name_takes_precedence_over_patterns)
{
        add("invoice.*", "family");
        add("invoice.accepted", "exact");
        add("invoice.rejected", "exact2");
        ck_assert_str_eq(topic_of("invoice.accepted"), "exact");
        ck_assert_str_eq(topic_of("invoice.rejected"), "exact2");
        ck_assert_str_eq(topic_of("invoice.accepte"), "family");
        ck_assert_str_eq(topic_of("invoice.accepted."), "family");
        ck_assert_str_eq(topic_of("invoice.accepted.again"), "family");
        ck_assert_str_eq(topic_of("Invoice.accepted"), "none");
}
END_TEST

START_TEST(test_longest_pattern_wins)
{
        add("a.b.*", "two");
        add("a.*", "one");
        add("a.b.c.*", "three");
        ck_assert_str_eq(topic_of("a.x"), "one");
        ck_assert_str_eq(topic_of("a.b"), "one");
        ck_assert_str_eq(topic_of("a.b.c"), "two");
        ck_assert_str_eq(topic_of("a.bb.c"), "one");
        ck_assert_str_eq(topic_of("a.b.c.d"), "three");
        ck_assert_str_eq(topic_of("a.b.c.d.e.f"), "three");
}
END_TEST

START_TEST(test_pattern_requires_text_after_its_dot)
{
        add("a.*", "family");
        ck_assert_str_eq(topic_of("a"), "none");
        ck_assert_str_eq(topic_of("a."), "none");
        ck_assert_str_eq(topic_of("ab"), "none");
        ck_assert_str_eq(topic_of("ab.c"), "none");
        ck_assert_str_eq(topic_of(".a.b"), "none");
        ck_assert_str_eq(topic_of("a.b"), "family");
        ck_assert_str_eq(topic_of("a.b.c"), "family");
        ck_assert_str_eq(topic_of("a.."), "family");
}
END_TEST

START_TEST(test_every_one_of_a_thousand_rules_is_found)
{
        char pattern[32], topic[32];

        for (int i = 0; i < 1000; i++) {
                int mixed = i * 617 % 1000; /* neither sorted nor reversed */

                (void)snprintf(pattern, sizeof(pattern), mixed % 2 ? "kind.%d" : "kind.%d.*", mixed);
                (void)snprintf(topic, sizeof(topic), "topic-%d", mixed);
                add(pattern, topic);
        }
        ck_assert_uint_eq(topic_table_size(table), 1000);
        for (int i = 0; i < 1000; i++) {
                (void)snprintf(pattern, sizeof(pattern), i % 2 ? "kind.%d" : "kind.%d.x", i);
                (void)snprintf(topic, sizeof(topic), "topic-%d", i);
                ck_assert_str_eq(topic_of(pattern), topic);
                (void)snprintf(pattern, sizeof(pattern), i % 2 ? "kind.%d.x" : "kind.%d", i);
                ck_assert_str_eq(topic_of(pattern), "none");
        }
        for (size_t i = 0; i < 1000; i++)
                ck_assert_uint_eq(topic_table_rule(table, i)->index, i);
        ck_assert_str_eq(topic_table_rule(table, 1)->pattern, "kind.617");
        ck_assert_str_eq(topic_table_rule(table, 1)->topic, "topic-617");
}
END_TEST

START_TEST(test_defaults_are_added_where_there_is_no_rule)
{
        add("payment.*", "payments");
        add("invoice.pending", "later");
        topic_table_add_defaults(table, "x");
        ck_assert_uint_eq(topic_table_size(table), 10);
        ck_assert_str_eq(topic_of("payment.made"), "payments");
        ck_assert_str_eq(topic_of("invoice.pending"), "later");
        ck_assert_str_eq(topic_of("invoice.accepted"), "x.invoice.accepted");
        ck_assert_str_eq(topic_of("reporting_batch.filed"), "x.reporting_batch");
}
END_TEST

START_TEST(test_rules_for_a_family_precede_the_defaults_of_its_kinds)
{
        add("invoice.*", "invoices");
        add("reporting_batch.filed", "filed");
        topic_table_add_defaults(table, "x");
        ck_assert_uint_eq(topic_table_size(table), 4);
        ck_assert_str_eq(topic_of("invoice.accepted"), "invoices");
        ck_assert_str_eq(topic_of("held_unmapped_decision"), "x.held_unmapped_decision");
        ck_assert_str_eq(topic_of("reporting_batch.filed"), "filed");
        ck_assert_str_eq(topic_of("reporting_batch.sent"), "x.reporting_batch");
}
END_TEST

START_TEST(test_none_takes_kinds_out)
{
        add("invoice.pending", "none");
        add("reporting_batch.*", "none");
        topic_table_add_defaults(table, "x");
        ck_assert_uint_eq(topic_table_size(table), 7);
        ck_assert_str_eq(topic_of("invoice.pending"), "none");
        ck_assert_str_eq(topic_of("reporting_batch.sent"), "none");
        ck_assert_str_eq(topic_of("invoice.accepted"), "x.invoice.accepted");
        for (size_t i = 0; i < topic_table_size(table); i++)
                ck_assert_ptr_nonnull(topic_table_rule(table, i)->topic);
}
END_TEST

START_TEST(test_kind_is_not_terminated_by_a_nul)
{
        add("a", "exact");
        add("a.*", "family");
        ck_assert_ptr_null(topic_table_find(table, "a\0b", 3));
        ck_assert_ptr_null(topic_table_find(table, "a\0", 2));
        ck_assert_ptr_null(topic_table_find(table, "a.b\0", 4));
        ck_assert_ptr_null(topic_table_find(table, "a.\0", 3));
        /* Bytes beyond its length are not part of the kind. */
        ck_assert_str_eq(topic_table_find(table, "a.b\0", 3)->topic, "family");
        ck_assert_str_eq(topic_table_find(table, "abc", 1)->topic, "exact");
        ck_assert_ptr_null(topic_table_find(table, "", 0));
}
END_TEST

START_TEST(test_kind_with_a_star_is_unknown)
{
        add("a.*", "family");
        ck_assert_str_eq(topic_of("a.*"), "none");
        ck_assert_str_eq(topic_of("a.b*"), "none");
        ck_assert_str_eq(topic_of("a.*.b"), "none");
        ck_assert_str_eq(topic_of("*"), "none");
}
END_TEST

START_TEST(test_kind_over_255_bytes_is_unknown)
{
        char *kind = malloc(10000); /* not NUL-terminated */

        ck_assert_ptr_nonnull(kind);
        memset(kind, 'x', 10000);
        memcpy(kind, "a.", 2);
        add("a.*", "family");
        ck_assert_str_eq(topic_table_find(table, kind, 255)->topic, "family");
        ck_assert_ptr_null(topic_table_find(table, kind, 256));
        ck_assert_ptr_null(topic_table_find(table, kind, 10000));
        memset(kind, '.', 10000);
        ck_assert_ptr_null(topic_table_find(table, kind, 10000));
        ck_assert_ptr_null(topic_table_find(table, kind, 255));
        free(kind);
}
END_TEST

START_TEST(test_rule_for_a_kind_over_255_bytes_is_refused)
{
        char kind[257];
        struct error error;

        memset(kind, 'x', sizeof(kind));
        kind[256] = '\0';
        ck_assert_int_eq(topic_table_add(table, kind, "topic", &error), -1);
        ck_assert_ptr_nonnull(strstr(error.text, "255"));
        kind[255] = '\0';
        add(kind, "topic");
        ck_assert_str_eq(topic_of(kind), "topic");
        memcpy(kind + 253, ".*", 2);
        add(kind, "family");
        memcpy(kind + 253, ".x", 2);
        ck_assert_str_eq(topic_of(kind), "family");
}
END_TEST

static const char *const wrong_patterns[] = {"",    "*",     ".*",    "a*",   "a.*.b",
                                             "*.a", "a.*.*", "a.b*c", "a.**", "a.* "};

START_TEST(test_malformed_pattern_is_refused)
{
        struct error error;

        ck_assert_int_eq(topic_table_add(table, wrong_patterns[_i], "topic", &error), -1);
        ck_assert_uint_eq(topic_table_size(table), 0);
}
END_TEST

START_TEST(test_duplicate_pattern_is_refused)
{
        struct error error;

        add("a.*", "first");
        add("a", "first");
        ck_assert_int_eq(topic_table_add(table, "a.*", "second", &error), -1);
        ck_assert_ptr_nonnull(strstr(error.text, "a.*"));
        ck_assert_int_eq(topic_table_add(table, "a", "second", &error), -1);
        ck_assert_uint_eq(topic_table_size(table), 2);
        ck_assert_str_eq(topic_of("a.b"), "first");
}
END_TEST

START_TEST(test_topic_name_must_be_valid_in_kafka)
{
        char name[251];
        struct error error;

        ck_assert(topic_name_is_valid("a"));
        ck_assert(topic_name_is_valid("..."));
        ck_assert(topic_name_is_valid("AZaz09._-"));
        ck_assert(!topic_name_is_valid(""));
        ck_assert(!topic_name_is_valid("."));
        ck_assert(!topic_name_is_valid(".."));
        ck_assert(!topic_name_is_valid("a b"));
        ck_assert(!topic_name_is_valid("a/b"));
        ck_assert(!topic_name_is_valid("a\n"));
        ck_assert(!topic_name_is_valid("\xc3\xa4"));
        memset(name, 'x', sizeof(name));
        name[250] = '\0';
        ck_assert(!topic_name_is_valid(name));
        ck_assert_int_eq(topic_table_add(table, "kind", name, &error), -1);
        name[249] = '\0';
        ck_assert(topic_name_is_valid(name));
        add("kind", name);
}
END_TEST

START_TEST(test_defaults_are_the_documented_kinds)
{
        topic_table_add_defaults(table, "invoicing");
        ck_assert_uint_eq(topic_table_size(table), 9);
        ck_assert_str_eq(topic_of("invoice.accepted"), "invoicing.invoice.accepted");
        ck_assert_str_eq(topic_of("invoice.rejected"), "invoicing.invoice.rejected");
        ck_assert_str_eq(topic_of("invoice.received"), "invoicing.invoice.received");
        ck_assert_str_eq(topic_of("invoice.duplicate"), "invoicing.invoice.duplicate");
        ck_assert_str_eq(topic_of("invoice.pending"), "invoicing.invoice.pending");
        ck_assert_str_eq(topic_of("invoice.amended"), "invoicing.invoice.amended");
        ck_assert_str_eq(topic_of("invoice.cancelled"), "invoicing.invoice.cancelled");
        ck_assert_str_eq(topic_of("held_unmapped_decision"), "invoicing.held_unmapped_decision");
        ck_assert_str_eq(topic_of("reporting_batch.due"), "invoicing.reporting_batch");
        ck_assert_str_eq(topic_of("reporting_batch"), "none");
        ck_assert_str_eq(topic_of("invoice"), "none");
        ck_assert_str_eq(topic_of("invoice.exploded"), "none");
}
END_TEST

START_TEST(test_topic_table_free_accepts_null)
{
        topic_table_free(NULL);
}
END_TEST

Suite *
suite_topic_table(void)
{
        Suite *suite = suite_create("topic_table");
        TCase *tcase = tcase_create("topic_table");

        tcase_add_checked_fixture(tcase, set_up, tear_down);
        tcase_add_test(tcase, test_exact_name_takes_precedence_over_patterns);
        tcase_add_test(tcase, test_longest_pattern_wins);
        tcase_add_test(tcase, test_pattern_requires_text_after_its_dot);
        tcase_add_test(tcase, test_every_one_of_a_thousand_rules_is_found);
        tcase_add_test(tcase, test_defaults_are_added_where_there_is_no_rule);
        tcase_add_test(tcase, test_rules_for_a_family_precede_the_defaults_of_its_kinds);
        tcase_add_test(tcase, test_none_takes_kinds_out);
        tcase_add_test(tcase, test_kind_is_not_terminated_by_a_nul);
        tcase_add_test(tcase, test_kind_with_a_star_is_unknown);
        tcase_add_test(tcase, test_kind_over_255_bytes_is_unknown);
        tcase_add_test(tcase, test_rule_for_a_kind_over_255_bytes_is_refused);
        tcase_add_loop_test(tcase, test_malformed_pattern_is_refused, 0, ARRAY_LEN(wrong_patterns));
        tcase_add_test(tcase, test_duplicate_pattern_is_refused);
        tcase_add_test(tcase, test_topic_name_must_be_valid_in_kafka);
        tcase_add_test(tcase, test_defaults_are_the_documented_kinds);
        tcase_add_test(tcase, test_topic_table_free_accepts_null);
        suite_add_tcase(suite, tcase);
        return suite;
}
