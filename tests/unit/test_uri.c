#include <check.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/uri.h"
#include "suites.h"

static const char *const absolute[] = {
    "https://invoicing.example/eu",
    "https://schemas.example",
    "urn:example:gatepost",
    "HTTP://user:pass@host:8080/a/b;c=1?q=/?&x=%20",
    "mailto:ops@invoicing.example",
    "a+b-c.1:x",
    "file:///etc",
    "x:",
};

static const char *const relative[] = {
    "/invoicing", "//host/path", "name", "./1:2", "/a:b", "?q", "#f", "/a%C3%A9#f?/", "https://h/#fragment",
};

static const char *const neither[] = {
    "",    " ",    "a b", "/\xc3\xa9", "/%", "/%4", "/%zz",          "/%4z", "/a\tb", "/a\x7f", "/<x>",
    "/\"", "/{x}", "/\\", "/^",        "/`", "/|",  "http://[::1]/", "/[x]", "#a#b",  "/\n",
};

START_TEST(test_absolute_uri_is_a_reference_too)
{
        ck_assert_int_eq(uri_is_absolute(absolute[_i]), 1);
        ck_assert_int_eq(uri_is_reference(absolute[_i]), 1);
}
END_TEST

START_TEST(test_relative_reference_and_uri_with_fragment_are_not_absolute)
{
        ck_assert_int_eq(uri_is_absolute(relative[_i]), 0);
        ck_assert_int_eq(uri_is_reference(relative[_i]), 1);
}
END_TEST

START_TEST(test_malformed_text_is_neither)
{
        ck_assert_int_eq(uri_is_absolute(neither[_i]), 0);
        ck_assert_int_eq(uri_is_reference(neither[_i]), 0);
}
END_TEST

static const struct {
        const char *uri;
        int has_userinfo;
} authorities[] = {
    {"https://invoicing.example/eu", 0},
    {"http://host:443#f", 0},
    {"http://user@invoicing.example/", 1},
    {"HTTP://user:80@invoicing.example:0/", 1},
    {"//:@host", 1},
    {"https://invoicing.example/@/:0", 0},
    {"https://invoicing.example?a@b:0", 0},
    {"mailto:ops@invoicing.example", 0},
};

START_TEST(test_user_information_is_that_of_the_authority)
{
        ck_assert_int_eq(uri_has_userinfo(authorities[_i].uri), authorities[_i].has_userinfo);
        ck_assert_int_eq(uri_is_reference(authorities[_i].uri), 1);
}
END_TEST

static const char *const hidden[][2] = {
    {"https://me:hunter2@host/a", "https://***@host/a"},
    {"http://me@host", "http://***@host"},
    {"http://a@b@host?c", "http://***@host?..."},
    {"https://host/a?code=token&b#c", "https://host/a?..."},
    {"host:1/a?code=me@token", "host:1/a?..."},
    {"https://host/a#b", "https://host/a#b"},
    {"https://host/@/b", "https://host/@/b"},
    {"host:1/a@b", "host:1/a@b"},
    {"", ""},
};

START_TEST(test_user_information_and_query_are_hidden)
{
        char *text = uri_hide_secrets(hidden[_i][0]);

        ck_assert_str_eq(text, hidden[_i][1]);
        free(text);
}
END_TEST

Suite *
suite_uri(void)
{
        Suite *suite = suite_create("uri");
        TCase *tcase = tcase_create("syntax");

        tcase_add_loop_test(tcase, test_absolute_uri_is_a_reference_too, 0, ARRAY_LEN(absolute));
        tcase_add_loop_test(tcase, test_relative_reference_and_uri_with_fragment_are_not_absolute, 0,
                            ARRAY_LEN(relative));
        tcase_add_loop_test(tcase, test_malformed_text_is_neither, 0, ARRAY_LEN(neither));
        tcase_add_loop_test(tcase, test_user_information_is_that_of_the_authority, 0, ARRAY_LEN(authorities));
        tcase_add_loop_test(tcase, test_user_information_and_query_are_hidden, 0, ARRAY_LEN(hidden));
        suite_add_tcase(suite, tcase);
        return suite;
}
