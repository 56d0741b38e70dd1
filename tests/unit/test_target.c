#include <stdlib.h>
#include <string.h>

#include <event2/http.h>

#include "base/compiler.h"
#include "http/target.h"
#include "suites.h"

START_TEST(test_the_path_is_what_stands_before_the_query)
{
        static const char *const targets[][2] = {
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

        for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
                const char *path = target_path(targets[i][0], strlen(targets[i][0]), &len);

                ck_assert_uint_eq(len, strlen(targets[i][1]));
                ck_assert_mem_eq(path, targets[i][1], len);
        }
}
END_TEST

/* evhttp answers by itself, without the envelope, what it cannot read. */
static void
expect_evhttp_reads(const char *target)
{
        struct evhttp_uri *uri = evhttp_uri_parse_with_flags(target, EVHTTP_URI_NONCONFORMANT);

        ck_assert_msg(uri != NULL, "%s", target);
        evhttp_uri_free(uri);
}

START_TEST(test_evhttp_reads_every_target_that_is_let_through)
{
        static const char *const words[] = {"/", "http://", "https://", "a",     "//",   ":",   "80",
                                            "[", "::1",     "]",        "?",     "@",    "%41", "*",
                                            ".", "",        "b",        "65536", "[::]", "v1.a"};
        unsigned n_legal = 0;

        /* All sequences of four words. */
        for (size_t i = 0; i < ARRAY_LEN(words) * ARRAY_LEN(words) * ARRAY_LEN(words) * ARRAY_LEN(words);
             i++) {
                char target[64] = "";

                for (size_t rest = i, n = 0; n < 4; n++, rest /= ARRAY_LEN(words))
                        strcat(target, words[rest % ARRAY_LEN(words)]);
                if (target_check("OPTIONS", target, strlen(target)) != NULL)
                        continue;
                expect_evhttp_reads(target);
                n_legal++;
        }
        ck_assert_uint_gt(n_legal, 10000);
}
END_TEST

Suite *
suite_target(void)
{
        Suite *suite = suite_create("target");
        TCase *all = tcase_create("all");

        tcase_add_test(all, test_the_path_is_what_stands_before_the_query);
        tcase_add_test(all, test_evhttp_reads_every_target_that_is_let_through);
        tcase_set_timeout(all, 60);
        suite_add_tcase(suite, all);
        return suite;
}
