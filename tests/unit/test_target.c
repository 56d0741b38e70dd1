#include <string.h>

#include "base/compiler.h"
#include "http/head.h"
#include "suites.h"

START_TEST(test_path_is_the_part_before_the_query)
{
        static const char *const rows[][2] = {
            {"/hook", "/hook"},
            {"/hook?a=b?c", "/hook"},
            {"http://h:1/hook?x", "/hook"},
            {"https://h/a%20b", "/a%20b"},
            {"http://h", ""},
            {"http://h?/hook", ""},
            {"/a?b=http://c/d", "/a"},
            {"//h/hook", "//h/hook"},
            {"*", "*"},
            {"/", "/"},
        };
        size_t len;

        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                const char *path = head_path(rows[i][0], strlen(rows[i][0]), &len);

                ck_assert_uint_eq(len, strlen(rows[i][1]));
                ck_assert_mem_eq(path, rows[i][1], len);
        }
}
END_TEST

static const struct {
        const char *method, *target;
        int is_legal;
} targets[] = {
    {"GET", "/", 1},
    {"GET", "/hook?a=b?c/%20", 1},
    {"GET", "//a/b", 1},
    {"GET", "http://h", 1},
    {"GET", "HTTPS://[::1]:80/a?b", 1},
    {"OPTIONS", "*", 1},
    {"GET", "", 0},
    {"GET", "*", 0},
    {"OPTIONS", "**", 0},
    {"GET", "hook", 0},
    {"GET", "?a", 0},
    {"GET", "ftp://h/", 0},
    {"GET", "http:///hook", 0},
    {"GET", "http://", 0},
    {"GET", "http://user@h/", 0},
    {"GET", "http://h:65536/", 0},
    {"GET", "http://[::1/", 0},
    {"GET", "http://[v1.a]/", 0},
    {"GET", "//a@b/", 0},
    {"GET", "/a#b", 0},
    {"GET", "/a%2", 0},
    {"GET", "/a%2x", 0},
    {"GET", "/a\"b", 0},
    {"GET", "/\xc5\xbc", 0},
};

START_TEST(test_target_must_have_a_form_of_rfc_9112)
{
        const char *target = targets[_i].target;
        const char *wrong = head_check_target(targets[_i].method, target, strlen(target));

        ck_assert_msg((wrong == NULL) == targets[_i].is_legal, "%s %s", targets[_i].method, target);
}
END_TEST

START_TEST(test_authority_is_a_host_with_optional_port)
{
        static const char *const right[] = {"a",     "a.b-c",     "127.0.0.1", "a:80",  "a:",
                                            "[::1]", "[::1]:443", "a%20b",     "a:0080"};
        static const char *const wrong[] = {"",       ":80",  "a:b",    "a:80:80", "a:65536", "a b",
                                            "[::1",   "[]",   "[::1]a", "[a]",     "a/b",     "a@b",
                                            "[::1]]", "a%2g", "::1",    "a,\xff",  "a\t"};

        for (size_t i = 0; i < ARRAY_LEN(right); i++)
                ck_assert_msg(head_is_authority(right[i], strlen(right[i])), "%s", right[i]);
        for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
                ck_assert_msg(!head_is_authority(wrong[i], strlen(wrong[i])), "%s", wrong[i]);
}
END_TEST

Suite *
suite_target(void)
{
        Suite *suite = suite_create("target");
        TCase *all = tcase_create("all");

        tcase_add_test(all, test_path_is_the_part_before_the_query);
        tcase_add_loop_test(all, test_target_must_have_a_form_of_rfc_9112, 0, (int)ARRAY_LEN(targets));
        tcase_add_test(all, test_authority_is_a_host_with_optional_port);
        suite_add_tcase(suite, all);
        return suite;
}
