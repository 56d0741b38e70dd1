#include <string.h>

#include "model/delivery.h"
#include "model/trace.h"
#include "suites.h"

static const char signature[] = "sha256=0000000000000000000000000000000000000000000000000000000000000000";

static struct delivery_headers headers;
static struct delivery delivery;
static const char *faults[DELIVERY_N_HEADERS];

static void
add(const char *name, const char *value)
{
        delivery_headers_add(&headers, "x-invoicing", name, value);
}

static void
set_up(void)
{
        memset(&headers, 0, sizeof(headers));
        add("X-Invoicing-Signature", signature);
        add("x-invoicing-timestamp", "1795229045");
        add("x-INVOICING-webhook-id", "6f0d1c2e-8a4b");
        add("x-invoicing-delivery-id", "D-1");
        add("x-invoicing-other", "ignored");
        add("x-other-signature", "ignored");
}

START_TEST(test_header_names_compare_without_case)
{
        ck_assert_uint_eq(delivery_parse(&headers, &delivery, faults), 0);
        ck_assert_int_eq((int)delivery.timestamp, 1795229045);
        ck_assert_str_eq(delivery.delivery_id, "D-1");
        ck_assert_str_eq(delivery.webhook_id, "6f0d1c2e-8a4b");
}
END_TEST

START_TEST(test_each_header_must_be_there_once)
{
        add("x-invoicing-delivery-id", "D-2");
        ck_assert_uint_eq(delivery_parse(&headers, &delivery, faults), 1);
        ck_assert_ptr_nonnull(faults[DELIVERY_ID]);
        memset(&headers, 0, sizeof(headers));
        ck_assert_uint_eq(delivery_parse(&headers, &delivery, faults), 4);
}
END_TEST

static const struct {
        enum delivery_header header;
        const char *value;
        int is_right;
} values[] = {
    {DELIVERY_TIMESTAMP, "1795229045", 1},
    {DELIVERY_TIMESTAMP, "179522904", 0},
    {DELIVERY_TIMESTAMP, "17952290450", 0},
    {DELIVERY_TIMESTAMP, "-795229045", 0},
    {DELIVERY_TIMESTAMP, "1795229045 ", 0},
    {DELIVERY_TIMESTAMP, "", 0},
    {DELIVERY_ID, "a", 1},
    {DELIVERY_ID, "", 0},
    {DELIVERY_ID, "a_b", 0},
    {DELIVERY_ID, "a/b", 0},
    {DELIVERY_ID, "1234567890123456789012345678901234567890123456789012345678901234", 1},
    {DELIVERY_ID, "12345678901234567890123456789012345678901234567890123456789012345", 0},
    {DELIVERY_WEBHOOK_ID, "a b", 0},
    {DELIVERY_SIGNATURE, "sha256=", 0},
    {DELIVERY_SIGNATURE, signature, 1},
    {DELIVERY_SIGNATURE, signature + 7, 0},
};

START_TEST(test_a_header_must_be_well_formed)
{
        headers.values[values[_i].header] = values[_i].value;
        ck_assert_uint_eq(delivery_parse(&headers, &delivery, faults), !values[_i].is_right);
        ck_assert_int_eq(faults[values[_i].header] == NULL, values[_i].is_right);
}
END_TEST

START_TEST(test_the_tolerance_holds_both_ways_with_its_bounds)
{
        const int64_t now_ms = INT64_C(1795229045) * 1000;

        delivery.timestamp = 1795229045;
        ck_assert(delivery_is_fresh(&delivery, now_ms + 300000, 300000));
        ck_assert(delivery_is_fresh(&delivery, now_ms + 300999, 300000)); /* still the same second */
        ck_assert(!delivery_is_fresh(&delivery, now_ms + 301000, 300000));
        ck_assert(delivery_is_fresh(&delivery, now_ms - 300000, 300000));
        ck_assert(!delivery_is_fresh(&delivery, now_ms - 300001, 300000));
}
END_TEST

START_TEST(test_only_well_formed_trace_context_passes)
{
        ck_assert(trace_parent_is_valid("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"));
        ck_assert(trace_parent_is_valid("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"));
        ck_assert(!trace_parent_is_valid("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"));
        ck_assert(!trace_parent_is_valid("ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"));
        ck_assert(!trace_parent_is_valid("00-00000000000000000000000000000000-00f067aa0ba902b7-01"));
        ck_assert(!trace_parent_is_valid("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"));
        ck_assert(!trace_parent_is_valid("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"));
        ck_assert(!trace_parent_is_valid("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0"));
        ck_assert(!trace_parent_is_valid(""));
        ck_assert(trace_state_is_valid("vendor=value"));
        ck_assert(!trace_state_is_valid(""));
        ck_assert(!trace_state_is_valid("a\nb"));
}
END_TEST

Suite *
suite_delivery(void)
{
        Suite *suite = suite_create("delivery");
        TCase *all = tcase_create("all");

        tcase_add_checked_fixture(all, set_up, NULL);
        tcase_add_test(all, test_header_names_compare_without_case);
        tcase_add_test(all, test_each_header_must_be_there_once);
        tcase_add_loop_test(all, test_a_header_must_be_well_formed, 0,
                            (int)(sizeof(values) / sizeof(values[0])));
        tcase_add_test(all, test_the_tolerance_holds_both_ways_with_its_bounds);
        tcase_add_test(all, test_only_well_formed_trace_context_passes);
        suite_add_tcase(suite, all);
        return suite;
}
