#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "bodies.h"
#include "suites.h"

START_TEST(test_kind_is_read_at_its_pointer)
{
        ck_assert_int_eq(decode_text("{\"event\":\"invoice.accepted\"}"), DECODE_OK);
        assert_span(decoded.kind, "invoice.accepted");
        ck_assert_str_eq(decoded.detail, "");
        ck_assert_str_eq(decoded.field_fault, "");
        ck_assert_ptr_null(decoded.key.data);
        ck_assert_ptr_null(decoded.subject.data);

        set_pointer(&rules.kind, "/meta/kinds/1");
        ck_assert_int_eq(decode_text("{\"event\":\"no\",\"meta\":{\"kinds\":[[\"x\"],\"b\",\"c\"]}}"),
                         DECODE_OK);
        assert_span(decoded.kind, "b");
        ck_assert_int_eq(decode_text("{\"meta\":{\"kinds\":{\"0\":\"a\",\"1\":\"b\"}}}"), DECODE_OK);
        assert_span(decoded.kind, "b");
}
END_TEST

START_TEST(test_pointer_matches_escaped_and_empty_names)
{
        set_pointer(&rules.kind, "/a~1b~0c//d");
        ck_assert_int_eq(decode_text("{\"a/b~c\":{\"\":{\"d\":\"found\"},\"x\":{\"d\":\"no\"}}}"), DECODE_OK);
        assert_span(decoded.kind, "found");
}
END_TEST

static const char *const without_kind[] = {
    "{}",
    "{\"event\":null}",
    "{\"Event\":\"x\"}",
    "{\"event \":\"x\"}",
    "{\"event\\u0000\":\"x\"}",
    "{\"event\\u0000event\\u0000event\\u0000event\\u0000event\\u0000event\\u0000event\":\"x\"}",
    "{\"data\":{\"event\":\"x\"}}",
    "{\"events\":[{\"event\":\"x\"}]}",
};

START_TEST(test_absent_or_null_kind_is_missing)
{
        ck_assert_int_eq(decode_text(without_kind[_i]), DECODE_MISSING_KIND);
        ck_assert_ptr_nonnull(strstr(decoded.detail, "/event"));
        ck_assert_ptr_null(decoded.kind.data);
}
END_TEST

static const char *const with_other_kind[] = {
    "{\"event\":1}",       "{\"event\":true}", "{\"event\":false}", "{\"event\":{\"event\":\"x\"}}",
    "{\"event\":[\"x\"]}",
};

START_TEST(test_non_string_kind_is_invalid)
{
        ck_assert_int_eq(decode_text(with_other_kind[_i]), DECODE_INVALID_KIND);
        ck_assert_ptr_nonnull(strstr(decoded.detail, "/event"));
}
END_TEST

START_TEST(test_kind_may_be_any_string)
{
        size_t len = 1000000;
        char *body = malloc(len + 32);

        ck_assert_int_eq(decode_text("{\"event\":\"\"}"), DECODE_OK);
        assert_span(decoded.kind, "");
        ck_assert_int_eq(decode_text("{\"event\":\"a\\u0000\\n\\\"\\/b\"}"), DECODE_OK);
        assert_span(decoded.kind, "a\0\n\"/b");

        ck_assert_ptr_nonnull(body);
        len = (size_t)sprintf(body, "{\"event\":\"%*s\"}", (int)len, "x") - strlen("{\"event\":\"\"}");
        ck_assert_int_eq(decode_text(body), DECODE_OK);
        ck_assert_uint_eq(decoded.kind.len, len);
        ck_assert_mem_eq(decoded.kind.data, body + strlen("{\"event\":\""), len);
        free(body);
        ck_assert_int_eq(decode_text("{\"event\":\"short\"}"), DECODE_OK);
        assert_span(decoded.kind, "short");
}
END_TEST

static const struct {
        const char *pointer;
        const char *body;
} twice[] = {
    {"/event", "{\"event\":\"a\",\"event\":\"a\"}"},
    {"/event", "{\"event\":\"a\",\"x\":{\"y\":[1]},\"event\":null}"},
    {"/event", "{\"event\":null,\"event\":\"a\"}"},
    {"/event", "{\"event\":\"a\",\"ev\\u0065nt\":\"b\"}"},
    {"/event", "{\"\\u0065\\u0076\\u0065\\u006E\\u0074\":\"a\",\"event\":\"b\"}"},
    {"/data/event", "{\"data\":{\"event\":\"a\",\"event\":\"b\"}}"},
    {"/data/event", "{\"data\":{\"event\":\"a\"},\"data\":{}}"},
    {"/data/event", "{\"data\":{},\"d\\u0061ta\":{\"event\":\"a\"}}"},
    {"/data/event", "{\"data\":1,\"data\":{\"event\":\"a\"}}"},
    {"/list/0/event", "{\"list\":[{\"event\":\"a\",\"event\":\"b\"}]}"},
    {"/a~1b", "{\"a/b\":\"a\",\"a\\/b\":\"b\"}"},
};

START_TEST(test_duplicate_member_on_the_path_of_the_kind_is_malformed)
{
        set_pointer(&rules.kind, twice[_i].pointer);
        ck_assert_int_eq(decode_text(twice[_i].body), DECODE_MALFORMED_JSON);
        ck_assert_ptr_nonnull(strstr(decoded.detail, "duplicated"));
}
END_TEST

START_TEST(test_escaped_member_name_matches)
{
        ck_assert_int_eq(decode_text("{\"ev\\u0065nt\":\"invoice.accepted\"}"), DECODE_OK);
        assert_span(decoded.kind, "invoice.accepted");
}
END_TEST

START_TEST(test_other_members_may_be_duplicated)
{
        ck_assert_int_eq(decode_text("{\"a\":1,\"event\":\"x\",\"a\":2,\"b\":{\"event\":1,\"event\":2}}"),
                         DECODE_OK);
        assert_span(decoded.kind, "x");
        set_pointer(&rules.kind, "/list/0/event");
        ck_assert_int_eq(decode_text("{\"list\":[{\"event\":\"x\"},{\"event\":\"y\",\"event\":\"z\"}]}"),
                         DECODE_OK);
        assert_span(decoded.kind, "x");
}
END_TEST

static const struct {
        const char *value;
        const char *key; /* NULL: not there */
} keys[] = {
    {"\"k-1\"", "k-1"},
    {"\"\\u00e4\\uD83D\\ude00\"", "\xc3\xa4\xf0\x9f\x98\x80"},
    {"17", "17"},
    {"-0", "-0"},
    {"1.50", "1.50"},
    {"12345678901234567890123", "12345678901234567890123"},
    {"1E+400", "1E+400"},
    {"\"\"", ""},
    {"null", NULL},
    {"true", NULL},
    {"{\"id\":\"x\"}", NULL},
    {"[\"x\"]", NULL},
};

START_TEST(test_key_is_a_string_or_the_text_of_a_number)
{
        char body[128];

        set_pointer(&rules.key, "/data/id");
        (void)snprintf(body, sizeof(body), "{\"event\":\"x\",\"data\":{\"id\":%s}}", keys[_i].value);
        ck_assert_int_eq(decode_text(body), DECODE_OK);
        ck_assert_int_eq(decoded.key.data == NULL, keys[_i].key == NULL);
        if (keys[_i].key == NULL)
                return;
        ck_assert_uint_eq(decoded.key.len, strlen(keys[_i].key));
        ck_assert_mem_eq(decoded.key.data, keys[_i].key, decoded.key.len);
}
END_TEST

START_TEST(test_subject_is_a_string)
{
        set_pointer(&rules.subject, "/invoiceId");
        ck_assert_int_eq(decode_text("{\"event\":\"x\",\"invoiceId\":\"INV-1\"}"), DECODE_OK);
        assert_span(decoded.subject, "INV-1");
        ck_assert_int_eq(decode_text("{\"event\":\"x\",\"invoiceId\":17}"), DECODE_OK);
        ck_assert_ptr_null(decoded.subject.data);
        ck_assert_int_eq(decode_text("{\"event\":\"x\"}"), DECODE_OK);
        ck_assert_ptr_null(decoded.subject.data);
}
END_TEST

START_TEST(test_one_value_may_be_kind_key_and_subject)
{
        set_pointer(&rules.key, "/event");
        set_pointer(&rules.subject, "/event");
        ck_assert_int_eq(decode_text("{\"event\":\"x\"}"), DECODE_OK);
        assert_span(decoded.kind, "x");
        assert_span(decoded.key, "x");
        assert_span(decoded.subject, "x");
}
END_TEST

static const char *const repeated_key[] = {
    "{\"event\":\"x\",\"data\":{\"id\":\"old\",\"id\":\"new\"}}",
    "{\"event\":\"x\",\"data\":{\"id\":\"old\"},\"data\":{\"id\":\"new\"}}",
    "{\"event\":\"x\",\"data\":{\"id\":\"old\",\"id\":null}}",
    "{\"event\":\"x\",\"data\":{\"id\":\"old\"},\"data\":{}}",
    "{\"event\":\"x\",\"data\":{\"id\":\"old\"},\"data\":null}",
};

START_TEST(test_last_of_repeated_keys_or_subjects_counts)
{
        set_pointer(&rules.key, "/data/id");
        set_pointer(&rules.subject, "/data/id");
        ck_assert_int_eq(decode_text(repeated_key[_i]), DECODE_OK);
        if (_i < 2) {
                assert_span(decoded.key, "new");
                assert_span(decoded.subject, "new");
        } else {
                ck_assert_ptr_null(decoded.key.data);
                ck_assert_ptr_null(decoded.subject.data);
        }
}
END_TEST

START_TEST(test_decoder_keeps_nothing_of_the_previous_body)
{
        set_pointer(&rules.key, "/id");
        ck_assert_int_eq(decode_text("{\"event\":\"x\",\"id\":\"k\",\"terminal\":1}"), DECODE_OK);
        ck_assert_str_ne(decoded.field_fault, "");
        ck_assert_int_eq(decode_text("{\"id\":1"), DECODE_MALFORMED_JSON);
        ck_assert_ptr_null(decoded.kind.data);
        ck_assert_str_eq(decoded.field_fault, "");
        ck_assert_int_eq(decode_text("{}"), DECODE_MISSING_KIND);
        ck_assert_int_eq(decode_text("{\"event\":\"y\"}"), DECODE_OK);
        ck_assert_ptr_null(decoded.key.data);
        ck_assert_str_eq(decoded.detail, "");
}
END_TEST

/* A lone escaped surrogate is valid JSON, but not a character. The rest of the text is unchanged. */
static const struct {
        const char *escaped;
        const char *read;
} surrogates[] = {
    {"\\ud83d\\ude00", "\xf0\x9f\x98\x80"},
    {"\\uD83D\\uDE00", "\xf0\x9f\x98\x80"},
    {"\\udbff\\udfff", "\xf4\x8f\xbf\xbf"},
    {"\\ud7ff\\ue000", "\xed\x9f\xbf\xee\x80\x80"},
    {"\\ud83d", "\xef\xbf\xbd"},
    {"\\ude00", "\xef\xbf\xbd"},
    {"a\\ud83db", "a\xef\xbf\xbd"
                  "b"},
    {"\\ud83d\\u0041", "\xef\xbf\xbd"
                       "A"},
    {"\\ud83d\\n", "\xef\xbf\xbd\n"},
    {"\\ude00\\ud83d", "\xef\xbf\xbd\xef\xbf\xbd"},
    {"\\ud83d\\ud83d\\ude00", "\xef\xbf\xbd\xf0\x9f\x98\x80"},
    {"\\ud83d\\ude00\\ude00", "\xf0\x9f\x98\x80\xef\xbf\xbd"},
    {"\\\\ud83d", "\\ud83d"},
    {"\\\\\\ud83d", "\\\xef\xbf\xbd"},
    {"\\ud83d\\\\ude00", "\xef\xbf\xbd\\ude00"},
};

START_TEST(test_lone_surrogate_is_read_as_a_replacement_character)
{
        char body[128];
        enum decode_result result;

        (void)snprintf(body, sizeof(body), "{\"event\":\"%s\",\"x\":1}", surrogates[_i].escaped);
        ck_assert_int_eq(decode_text(body), DECODE_OK);
        ck_assert_uint_eq(decoded.kind.len, strlen(surrogates[_i].read));
        ck_assert_mem_eq(decoded.kind.data, surrogates[_i].read, decoded.kind.len);
        /* The body itself is not changed. */
        (void)snprintf(body, sizeof(body), "{\"event\":\"\\ud83d\"}");
        ck_assert_int_eq(decoder_run(decoder, &rules, (struct span){body, strlen(body)}, &decoded, &result),
                         0);
        ck_assert_str_eq(body, "{\"event\":\"\\ud83d\"}");
}
END_TEST

START_TEST(test_decoder_free_accepts_null)
{
        decoder_free(NULL);
}
END_TEST

Suite *
suite_decode(void)
{
        Suite *suite = suite_create("decode");
        TCase *tcase = tcase_create("decode");

        tcase_add_checked_fixture(tcase, set_up_decoder, tear_down_decoder);
        tcase_add_test(tcase, test_kind_is_read_at_its_pointer);
        tcase_add_test(tcase, test_pointer_matches_escaped_and_empty_names);
        tcase_add_loop_test(tcase, test_absent_or_null_kind_is_missing, 0, ARRAY_LEN(without_kind));
        tcase_add_loop_test(tcase, test_non_string_kind_is_invalid, 0, ARRAY_LEN(with_other_kind));
        tcase_add_test(tcase, test_kind_may_be_any_string);
        tcase_add_loop_test(tcase, test_duplicate_member_on_the_path_of_the_kind_is_malformed, 0,
                            ARRAY_LEN(twice));
        tcase_add_test(tcase, test_escaped_member_name_matches);
        tcase_add_test(tcase, test_other_members_may_be_duplicated);
        tcase_add_loop_test(tcase, test_key_is_a_string_or_the_text_of_a_number, 0, ARRAY_LEN(keys));
        tcase_add_test(tcase, test_subject_is_a_string);
        tcase_add_test(tcase, test_one_value_may_be_kind_key_and_subject);
        tcase_add_loop_test(tcase, test_last_of_repeated_keys_or_subjects_counts, 0, ARRAY_LEN(repeated_key));
        tcase_add_test(tcase, test_decoder_keeps_nothing_of_the_previous_body);
        tcase_add_loop_test(tcase, test_lone_surrogate_is_read_as_a_replacement_character, 0,
                            ARRAY_LEN(surrogates));
        tcase_add_test(tcase, test_decoder_free_accepts_null);
        suite_add_tcase(suite, tcase);
        return suite;
}
