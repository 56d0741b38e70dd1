#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "cli/guess_body.h"
#include "cli/guess_form.h"
#include "cli/guess_time.h"
#include "cli/json_escapes.h"
#include "cli/respace.h"
#include "suites.h"

#define LEN(literal) (sizeof(literal) - 1)
#define BYTES(literal) literal, LEN(literal)

static const struct respace_style compact = {NULL, "", ""}, spaced = {NULL, " ", " "},
                                  indented = {"  ", " ", ""};

static const struct {
        const struct respace_style *style;
        const char *from;
        const char *to;
} respaced[] = {
    {&compact, " { \"a b\" : [ 1 ,\r\n\t2 ] , \"c\" : { } } \n", "{\"a b\":[1,2],\"c\":{}}"},
    {&compact, "{\"a\":\" \\\" : , \"}", "{\"a\":\" \\\" : , \"}"},
    {&spaced, "{\"a\":[1,true],\"b\":null}", "{\"a\": [1, true], \"b\": null}"},
    {&indented, "{\"a\":[1,{}],\"b\":[ ]}", "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}"},
    {&indented, "", ""},
    {&compact, "\"not closed \\", "\"not closed \\"},
    {&indented, "]}]", "]}]"},
};

START_TEST(test_white_space_is_set_anew_and_nothing_else)
{
        const char *to = respaced[_i].to;
        size_t len;
        char *text = respace(respaced[_i].from, strlen(respaced[_i].from), respaced[_i].style, &len);

        ck_assert_ptr_nonnull(text);
        ck_assert_uint_eq(len, strlen(to));
        ck_assert_mem_eq(text, to, len);
        free(text);
}
END_TEST

START_TEST(test_text_that_would_grow_without_bound_is_left_alone)
{
        char deep[4096];
        size_t len;

        memset(deep, '[', sizeof(deep));
        ck_assert_ptr_null(respace(deep, sizeof(deep), &indented, &len));
        for (size_t i = 60; i < sizeof(deep); i += 2)
                memcpy(deep + i, "1,", 2);
        ck_assert_ptr_null(respace(deep, sizeof(deep), &indented, &len));
}
END_TEST

static const struct {
        char *(*change)(const char *text, size_t len, size_t *changed_len);
        const char *from;
        const char *to; /* NULL: it cannot be changed */
} escapes[] = {
    {json_escapes_add_slashes, "\"a/b\\/c\\\\/\"", "\"a\\/b\\/c\\\\\\/\""},
    {json_escapes_lose_slashes, "\"a\\/b/c\\\\/\\n\"", "\"a/b/c\\\\/\\n\""},
    {json_escapes_lose_slashes, "\\", "\\"},
    {json_escapes_add_unicode, "\"\xc3\x9f\xe2\x82\xac\xf0\x9f\x98\x80\"",
     "\"\\u00df\\u20ac\\ud83d\\ude00\""},
    {json_escapes_add_unicode, "\xff", NULL},
    {json_escapes_lose_unicode, "\"\\u00df\\u20AC\\ud83d\\ude00\"",
     "\"\xc3\x9f\xe2\x82\xac\xf0\x9f\x98\x80\""},
    {json_escapes_lose_unicode, "\\u0041\\\\u00df\\ud83d\\n\\ude00\\u12",
     "\\u0041\\\\u00df\\ud83d\\n\\ude00\\u12"},
};

START_TEST(test_escapes_are_written_otherwise)
{
        size_t len;
        char *text = escapes[_i].change(escapes[_i].from, strlen(escapes[_i].from), &len);

        if (escapes[_i].to == NULL) {
                ck_assert_ptr_null(text);
                return;
        }
        ck_assert_uint_eq(len, strlen(escapes[_i].to));
        ck_assert_mem_eq(text, escapes[_i].to, len);
        free(text);
}
END_TEST

static const struct {
        const char *bytes;
        size_t len;
} bodies[] = {{BYTES("")},
              {BYTES("\n")},
              {BYTES("\r")},
              {BYTES("\0")},
              {BYTES("\xc3")},
              {BYTES("\xef\xbb\xbf")},
              {BYTES("{\"a\":\"\xc3\xa9/\\u00e9\\/\"}\r\n")},
              {BYTES("\\u00")},
              {BYTES("\xff\xfe\0\"\\")}};

START_TEST(test_what_is_undone_differs_whatever_the_body)
{
        for (size_t i = 0; i < guess_body_count(); i++) {
                size_t len;
                char *text = guess_body_undo(i, bodies[_i].bytes, bodies[_i].len, &len);

                ck_assert(text == NULL || len != bodies[_i].len || memcmp(text, bodies[_i].bytes, len) != 0);
                free(text);
        }
}
END_TEST

static const struct {
        const char *text;
        size_t n;
        const char *bytes;
} base64s[] = {{"AP+/", 3, "\0\xff\xbf"}, {"AP-_", 3, "\0\xff\xbf"},
               {"Zg==", 1, "f"},          {"Zg", 1, "f"},
               {"Zm8", 2, "fo"},          {"", 0, ""},
               {"====", 0, ""},           {"Z", 0, ""},
               {"Zm9v!", 0, ""},          {"Zm 8", 0, ""}};

START_TEST(test_base64_is_read_in_both_alphabets)
{
        uint8_t bytes[64];

        ck_assert_uint_eq(bytes_from_base64(base64s[_i].text, strlen(base64s[_i].text), bytes),
                          base64s[_i].n);
        ck_assert_mem_eq(bytes, base64s[_i].bytes, base64s[_i].n);
}
END_TEST

START_TEST(test_what_is_no_signature_in_any_form_is_none)
{
        static const char *const texts[] = {"", "sha256=", "sha256=00", "v1=x", "\xff\xff"};
        uint8_t signature[SIGNATURE_SIZE];
        struct guess_form form;

        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
                ck_assert_int_eq(guess_form_read(texts[i], signature, &form), -1);
}
END_TEST

START_TEST(test_nearest_seconds_are_tried_first_and_each_once)
{
        static const char *const heads[] = {"1795230245.",   "",
                                            "1795230245",    "1795230245.",
                                            "1795230244.",   "1795230246.",
                                            "1795230243.",   "1795230247.",
                                            "1795230245000."};
        struct guess_times times;
        char head[GUESS_TIME_SIZE];

        guess_times_init(&times, "1795230245", 2);
        ck_assert_uint_eq(guess_times_count(&times), 8 + 1000);
        for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
                ck_assert_uint_eq(guess_times_head(&times, i, head), strlen(heads[i]));
                ck_assert_str_eq(head, heads[i]);
        }
        (void)guess_times_head(&times, guess_times_count(&times) - 1, head);
        ck_assert_str_eq(head, "1795230245999.");
}
END_TEST

START_TEST(test_header_that_is_no_time_has_no_seconds_around_it)
{
        static const char *const headers[] = {"",          "now", "179523024", "17952302450", "1795230245 ",
                                              "-795230245"};
        struct guess_times times;

        for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
                guess_times_init(&times, headers[i], 300);
                ck_assert_uint_eq(guess_times_count(&times), 3);
        }
}
END_TEST

Suite *
suite_guess(void)
{
        Suite *suite = suite_create("guess");
        TCase *tcase = tcase_create("guess");

        tcase_add_loop_test(tcase, test_white_space_is_set_anew_and_nothing_else, 0, ARRAY_LEN(respaced));
        tcase_add_test(tcase, test_text_that_would_grow_without_bound_is_left_alone);
        tcase_add_loop_test(tcase, test_escapes_are_written_otherwise, 0, ARRAY_LEN(escapes));
        tcase_add_loop_test(tcase, test_what_is_undone_differs_whatever_the_body, 0, ARRAY_LEN(bodies));
        tcase_add_loop_test(tcase, test_base64_is_read_in_both_alphabets, 0, ARRAY_LEN(base64s));
        tcase_add_test(tcase, test_what_is_no_signature_in_any_form_is_none);
        tcase_add_test(tcase, test_nearest_seconds_are_tried_first_and_each_once);
        tcase_add_test(tcase, test_header_that_is_no_time_has_no_seconds_around_it);
        suite_add_tcase(suite, tcase);
        return suite;
}
