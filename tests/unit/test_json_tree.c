#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/json.h"
#include "base/json_tree.h"
#include "base/mem.h"
#include "suites.h"

static struct json_value *
parse(const char *text)
{
        struct error error;

        return json_tree_parse(text, strlen(text), &error);
}

static const char *const texts[] = {
    "null",
    "true",
    "-0.5e+12",
    "12345678901234567890123",
    "\"Gr\303\274\303\237e \\\"\\\\\"",
    "{}",
    "[]",
    "[[],{},[{}]]",
    "{\"a\":1,\"b\":{\"a\":[false,null,\"\"]},\"\":2}",
};

START_TEST(test_parsed_json_is_written_unchanged)
{
        struct json_value *root = parse(texts[_i]);
        struct json_writer *json = json_new(0);
        size_t len;
        char *text;

        ck_assert_ptr_nonnull(root);
        json_tree_write(json, root);
        text = json_take(json, &len);
        ck_assert_str_eq(text, texts[_i]);
        ck_assert_uint_eq(len, strlen(texts[_i]));
        free(text);
        json_tree_free(root);
}
END_TEST

static const struct {
        const char *text;
        size_t len;
        const char *reason;
} wrong[] = {
    {"", 0, "empty"},
    {"{", 1, "not JSON"},
    {"{}}", 3, "not JSON"},
    {"{} {}", 5, "not JSON"},
    {"{}\"", 3, "not JSON"},
    {"{} \"a", 5, "not JSON"},
    {"1 2", 3, "not JSON"},
    {"[] ,", 4, "not JSON"},
    {"[1,]", 4, "not JSON"},
    {"{\"a\"", 4, "not JSON"},
    {"{\"a\":1,\"b\":2,\"a\":3}", 19, "duplicate"},
    {"{\"a\":[{\"b\":0,\"b\":0}]}", 21, "duplicate"},
    {"\"\\u0000\"", 8, "NUL"},
    {"{\"\\u0000\":1}", 12, "NUL"},
    {"[1\0]", 4, "not JSON"},
    {"\"\xff\"", 3, "UTF-8"},
    {"[\v]", 3, "control"},
    {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", 33, "deep"},
};

START_TEST(test_invalid_json_is_refused_with_the_reason)
{
        struct error error;

        ck_assert_ptr_null(json_tree_parse(wrong[_i].text, wrong[_i].len, &error));
        ck_assert_msg(strstr(error.text, wrong[_i].reason) != NULL, "%s", error.text);
}
END_TEST

START_TEST(test_members_are_found_by_name)
{
        struct json_value *root = parse("{\"text\":\"abc\",\"number\":1,\"in\":{\"text\":\"d\"}}");

        ck_assert_str_eq(json_tree_text(root, "text"), "abc");
        ck_assert_ptr_null(json_tree_text(root, "number"));
        ck_assert_ptr_null(json_tree_text(root, "tex"));
        ck_assert_str_eq(json_tree_get(root, "number")->text, "1");
        ck_assert_str_eq(json_tree_text(json_tree_get(root, "in"), "text"), "d");
        ck_assert_ptr_null(json_tree_get(json_tree_get(root, "text"), "text"));
        ck_assert_ptr_null(json_tree_get(NULL, "text"));
        ck_assert_uint_eq(root->n, 3);
        json_tree_free(root);
}
END_TEST

static const struct {
        const char *text, *characters;
} escapes[] = {
    {"\"\\u00e9\"", "\xc3\xa9"},     {"\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80"},
    {"\"\\ud83d\"", "\xef\xbf\xbd"}, {"\"\\ude00\\ud83d!\"", "\xef\xbf\xbd\xef\xbf\xbd!"},
    {"\"\\\\ud83d\"", "\\ud83d"},
};

START_TEST(test_half_of_a_surrogate_pair_becomes_the_replacement_character)
{
        struct json_value *root = parse(escapes[_i].text);

        ck_assert_ptr_nonnull(root);
        ck_assert_str_eq(root->text, escapes[_i].characters);
        json_tree_free(root);
}
END_TEST

START_TEST(test_reason_has_the_position)
{
        struct error error;

        ck_assert_ptr_null(json_tree_parse("{\"a\": nothing}", 14, &error));
        ck_assert_str_eq(error.text, "not JSON: lexical error: invalid string in json text. near byte 7");
}
END_TEST

START_TEST(test_values_are_found_by_a_path)
{
        struct json_value *root = parse("{\"a\":{\"b\":{\"n\":2.5,\"m\":3},\"yes\":true,\"no\":false},"
                                        "\"huge\":1e99,\"text\":\"7\"}");

        ck_assert(json_tree_number(root, "a.b.n") == 2.5);
        ck_assert(json_tree_number(root, "a.b.o") == 0 && json_tree_number(root, "a.b.n.x") == 0);
        ck_assert(json_tree_number(root, "huge") == 0 && json_tree_number(root, "text") == 0);
        ck_assert(json_tree_is_true(root, "a.yes") && !json_tree_is_false(root, "a.yes"));
        ck_assert(json_tree_is_false(root, "a.no") && !json_tree_is_true(root, "a.no"));
        ck_assert(!json_tree_is_true(root, "a.maybe") && !json_tree_is_false(root, "a.maybe"));
        ck_assert(json_tree_number(NULL, "a") == 0);
        json_tree_free(root);
}
END_TEST

Suite *
suite_json_tree(void)
{
        Suite *suite = suite_create("json_tree");
        TCase *tcase = tcase_create("json_tree");

        tcase_add_loop_test(tcase, test_parsed_json_is_written_unchanged, 0, ARRAY_LEN(texts));
        tcase_add_loop_test(tcase, test_invalid_json_is_refused_with_the_reason, 0, ARRAY_LEN(wrong));
        tcase_add_test(tcase, test_members_are_found_by_name);
        tcase_add_loop_test(tcase, test_half_of_a_surrogate_pair_becomes_the_replacement_character, 0,
                            ARRAY_LEN(escapes));
        tcase_add_test(tcase, test_reason_has_the_position);
        tcase_add_test(tcase, test_values_are_found_by_a_path);
        suite_add_tcase(suite, tcase);
        return suite;
}
