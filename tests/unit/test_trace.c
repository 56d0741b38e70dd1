#include <check.h>
#include <string.h>

#include "base/compiler.h"
#include "model/delivery.h"
#include "suites.h"

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN_ID "00f067aa0ba902b7"

static const char *const right[] = {
    "00-" TRACE "-" SPAN_ID "-01",
    "00-" TRACE "-" SPAN_ID "-00",
    "00-" TRACE "-" SPAN_ID "-ff",
    "cc-" TRACE "-" SPAN_ID "-01",
    "cc-" TRACE "-" SPAN_ID "-01-what-the-future-will-be-like",
    "01-" TRACE "-" SPAN_ID "-01-",
    "00-00000000000000000000000000000001-0000000000000001-01",
};

START_TEST(test_well_formed_traceparent_is_valid)
{
        ck_assert(delivery_traceparent_is_valid(right[_i]));
}
END_TEST

static const char *const wrong[] = {
    "",
    "00",
    "00-" TRACE "-" SPAN_ID,
    "00-" TRACE "-" SPAN_ID "-",
    "00-" TRACE "-" SPAN_ID "-0",
    "00-" TRACE "-" SPAN_ID "-01 ",
    "00-" TRACE "-" SPAN_ID "-01-x",
    "00-" TRACE "-" SPAN_ID "-0x",
    "00-" TRACE "-" SPAN_ID "-0G",
    "ff-" TRACE "-" SPAN_ID "-01",
    "cc-" TRACE "-" SPAN_ID "-01x",
    "0-" TRACE "0-" SPAN_ID "-01",
    "00_" TRACE "-" SPAN_ID "-01",
    "00-" TRACE "_" SPAN_ID "-01",
    "00-" TRACE "-" SPAN_ID "_01",
    "0G-" TRACE "-" SPAN_ID "-01",
    "00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN_ID "-01",
    "00-" TRACE "-00F067AA0BA902B7-01",
    "00-00000000000000000000000000000000-" SPAN_ID "-01",
    "00-" TRACE "-0000000000000000-01",
};

START_TEST(test_malformed_traceparent_is_invalid)
{
        ck_assert(!delivery_traceparent_is_valid(wrong[_i]));
}
END_TEST

START_TEST(test_traceparent_of_a_future_version_has_at_most_512_bytes)
{
        char text[600] = "cc-" TRACE "-" SPAN_ID "-01-";

        memset(text + strlen(text), 'x', 512 - strlen(text));
        ck_assert_uint_eq(strlen(text), 512);
        ck_assert(delivery_traceparent_is_valid(text));
        text[512] = 'x';
        ck_assert(!delivery_traceparent_is_valid(text));
}
END_TEST

START_TEST(test_tracestate_is_1_to_512_printable_bytes)
{
        char text[514];

        ck_assert(delivery_tracestate_is_valid("a"));
        ck_assert(delivery_tracestate_is_valid("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE ~"));
        ck_assert(!delivery_tracestate_is_valid(""));
        ck_assert(!delivery_tracestate_is_valid("a\tb"));
        ck_assert(!delivery_tracestate_is_valid("a\x7f"));
        ck_assert(!delivery_tracestate_is_valid("\xc3\xa4"));
        memset(text, 'x', sizeof(text));
        text[513] = '\0';
        ck_assert(!delivery_tracestate_is_valid(text));
        text[512] = '\0';
        ck_assert(delivery_tracestate_is_valid(text));
}
END_TEST

Suite *
suite_trace(void)
{
        Suite *suite = suite_create("trace");
        TCase *tcase = tcase_create("trace");

        tcase_add_loop_test(tcase, test_well_formed_traceparent_is_valid, 0, ARRAY_LEN(right));
        tcase_add_loop_test(tcase, test_malformed_traceparent_is_invalid, 0, ARRAY_LEN(wrong));
        tcase_add_test(tcase, test_traceparent_of_a_future_version_has_at_most_512_bytes);
        tcase_add_test(tcase, test_tracestate_is_1_to_512_printable_bytes);
        suite_add_tcase(suite, tcase);
        return suite;
}
