#include <check.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/arguments.h"
#include "suites.h"

static const struct {
        const char *filter;
        const char *kind;
        int matches;
} kinds[] = {
    {"invoice.accepted", "invoice.accepted", 1},
    {"invoice.accepted", "invoice.accepted.late", 0},
    {"invoice.*", "invoice.accepted", 1},
    {"invoice.*", "invoice.", 0},
    {"invoice.*", "invoice", 0},
    {"invoice.*", "invoices.accepted", 0},
    {"*", "invoice.accepted", 1},
    {"*", "", 1},
    {"", "invoice.accepted", 0},
    {"invoice*", "invoice.accepted", 0},
    {"a.b.*", "a.b.c.d", 1},
    {"a.b.*", "a.c", 0},
};

START_TEST(test_kind_filter_matches_name_or_prefix)
{
        ck_assert_int_eq(arguments_kind_matches(kinds[_i].filter, kinds[_i].kind, strlen(kinds[_i].kind)),
                         kinds[_i].matches);
}
END_TEST

static const struct {
        const char *filter;
        const char *patterns[4]; /* of the rules that may match */
} filters[] = {
    {"*", {"a.*", "a.b", "c"}}, {"a.b", {"a.b"}}, {"a.x", {"a.*"}}, {"a.*", {"a.*", "a.b"}},
    {"a.x.*", {"a.*"}},         {"c", {"c"}},     {"c.*", {NULL}},  {"d", {NULL}},
};

START_TEST(test_kind_filter_selects_topics_that_may_contain_the_kind)
{
        struct topic_table *topics = topic_table_new();
        struct error error;
        size_t n = 0;

        ck_assert_int_eq(topic_table_add(topics, "a.*", "t1", &error), 0);
        ck_assert_int_eq(topic_table_add(topics, "a.b", "t2", &error), 0);
        ck_assert_int_eq(topic_table_add(topics, "c", "t3", &error), 0);
        for (size_t i = 0; i < topic_table_size(topics); i++) {
                const struct topic_rule *rule = topic_table_rule(topics, i);

                if (!arguments_kind_may_match(filters[_i].filter, topics, rule))
                        continue;
                ck_assert_ptr_nonnull(filters[_i].patterns[n]);
                ck_assert_str_eq(rule->pattern, filters[_i].patterns[n++]);
        }
        ck_assert_ptr_null(filters[_i].patterns[n]);
        topic_table_free(topics);
}
END_TEST

Suite *
suite_arguments(void)
{
        Suite *suite = suite_create("arguments");
        TCase *tcase = tcase_create("arguments");

        tcase_add_loop_test(tcase, test_kind_filter_matches_name_or_prefix, 0, ARRAY_LEN(kinds));
        tcase_add_loop_test(tcase, test_kind_filter_selects_topics_that_may_contain_the_kind, 0,
                            ARRAY_LEN(filters));
        suite_add_tcase(suite, tcase);
        return suite;
}
