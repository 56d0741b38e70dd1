#include <check.h>
#include <string.h>

#include "base/compiler.h"
#include "model/pointer.h"
#include "suites.h"

static const struct {
        const char *text;
        size_t n;
        const char *segments[4];
} pointers[] = {
    {"/event", 1, {"event"}},
    {"/data/invoiceId", 2, {"data", "invoiceId"}},
    {"/lines/0/id", 3, {"lines", "0", "id"}},
    {"/", 1, {""}},
    {"//", 2, {"", ""}},
    {"/a/", 2, {"a", ""}},
    {"/a~1b", 1, {"a/b"}},
    {"/m~0n", 1, {"m~n"}},
    {"/~01", 1, {"~1"}}, /* RFC 6901 section 4: ~1 first, then ~0 */
    {"/~10~00", 1, {"/0~0"}},
    {"/a b\"c\\d", 1, {"a b\"c\\d"}},
    {"/Grüße", 1, {"Grüße"}},
};

START_TEST(test_pointer_is_split_into_unescaped_segments)
{
        struct pointer pointer;
        struct error error;

        ck_assert_int_eq(pointer_parse(pointers[_i].text, &pointer, &error), 0);
        ck_assert_str_eq(pointer.text, pointers[_i].text);
        ck_assert_uint_eq(pointer.n_segments, pointers[_i].n);
        for (size_t i = 0; i < pointers[_i].n; i++)
                ck_assert_str_eq(pointer.segments[i], pointers[_i].segments[i]);
        pointer_clear(&pointer);
}
END_TEST

static const struct {
        const char *text;
        const char *reason;
} wrong[] = {
    {"", "begins with a slash"},
    {"event", "begins with a slash"},
    {"#/event", "begins with a slash"},
    {" /event", "begins with a slash"},
    {"/a~", "~0"},
    {"/a~2", "~0"},
    {"/a~/b", "~0"},
    {"/~~0", "~0"},
};

START_TEST(test_invalid_pointer_is_refused_with_the_reason)
{
        struct pointer pointer;
        struct error error;

        ck_assert_int_eq(pointer_parse(wrong[_i].text, &pointer, &error), -1);
        ck_assert_ptr_nonnull(strstr(error.text, wrong[_i].reason));
}
END_TEST

START_TEST(test_pointer_has_at_most_16_segments)
{
        struct pointer pointer;
        struct error error;

        ck_assert_int_eq(pointer_parse("/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16", &pointer, &error), 0);
        ck_assert_uint_eq(pointer.n_segments, POINTER_MAX_SEGMENTS);
        ck_assert_str_eq(pointer.segments[15], "16");
        pointer_clear(&pointer);
        ck_assert_int_eq(pointer_parse("/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17", &pointer, &error), -1);
        ck_assert_ptr_nonnull(strstr(error.text, "16"));
}
END_TEST

START_TEST(test_cleared_pointer_is_empty_and_can_be_cleared_again)
{
        struct pointer pointer;
        struct error error;

        ck_assert_int_eq(pointer_parse("/a/b", &pointer, &error), 0);
        pointer_clear(&pointer);
        ck_assert_uint_eq(pointer.n_segments, 0);
        ck_assert_ptr_null(pointer.text);
        pointer_clear(&pointer);
}
END_TEST

Suite *
suite_pointer(void)
{
        Suite *suite = suite_create("pointer");
        TCase *tcase = tcase_create("pointer");

        tcase_add_loop_test(tcase, test_pointer_is_split_into_unescaped_segments, 0, ARRAY_LEN(pointers));
        tcase_add_loop_test(tcase, test_invalid_pointer_is_refused_with_the_reason, 0, ARRAY_LEN(wrong));
        tcase_add_test(tcase, test_pointer_has_at_most_16_segments);
        tcase_add_test(tcase, test_cleared_pointer_is_empty_and_can_be_cleared_again);
        suite_add_tcase(suite, tcase);
        return suite;
}
