#include <check.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/kind_filter.h"
#include "suites.h"

static const struct {
        const char *asked;
        const char *kind;
        int is_meant;
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

START_TEST(test_kinds_are_meant_by_name_or_by_pattern)
{
        ck_assert_int_eq(kind_filter_matches(kinds[_i].asked, kinds[_i].kind, strlen(kinds[_i].kind)),
                         kinds[_i].is_meant);
}
END_TEST

static const struct {
        const char *asked;
        const char *patterns[4]; /* of the rules that are concerned */
} asked[] = {
    {"*", {"a.*", "a.b", "c"}}, {"a.b", {"a.b"}}, {"a.x", {"a.*"}}, {"a.*", {"a.*", "a.b"}},
    {"a.x.*", {"a.*"}},         {"c", {"c"}},     {"c.*", {NULL}},  {"d", {NULL}},
};

START_TEST(test_topics_that_may_have_a_kind_are_concerned)
{
        struct topic_table *topics = topic_table_new();
        struct error error;
        size_t n = 0;

        ck_assert_int_eq(topic_table_add(topics, "a.*", "t1", &error), 0);
        ck_assert_int_eq(topic_table_add(topics, "a.b", "t2", &error), 0);
        ck_assert_int_eq(topic_table_add(topics, "c", "t3", &error), 0);
        for (size_t i = 0; i < topic_table_size(topics); i++) {
                const struct topic_rule *rule = topic_table_rule(topics, i);

                if (!kind_filter_concerns(asked[_i].asked, topics, rule))
                        continue;
                ck_assert_ptr_nonnull(asked[_i].patterns[n]);
                ck_assert_str_eq(rule->pattern, asked[_i].patterns[n++]);
        }
        ck_assert_ptr_null(asked[_i].patterns[n]);
        topic_table_free(topics);
}
END_TEST

Suite *
suite_kind_filter(void)
{
        Suite *suite = suite_create("kind filter");
        TCase *tcase = tcase_create("kind filter");

        tcase_add_loop_test(tcase, test_kinds_are_meant_by_name_or_by_pattern, 0, ARRAY_LEN(kinds));
        tcase_add_loop_test(tcase, test_topics_that_may_have_a_kind_are_concerned, 0, ARRAY_LEN(asked));
        suite_add_tcase(suite, tcase);
        return suite;
}
