#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "model/delivery.h"
#include "suites.h"

#define SIGNATURE "sha256=589dc268294595fcab9d2f8e1c772f29abd80aed10327ce597fbbdf47f82dc68"
#define ID_64 "0123456789abcdef-ABCDEFGHIJKLMNOPQRSTUVWXYZ-abcdefghijklmnopqrst"

static const char *const genuine[DELIVERY_N_HEADERS] = {
    [DELIVERY_SIGNATURE] = SIGNATURE,
    [DELIVERY_TIMESTAMP] = "1795230245",
    [DELIVERY_WEBHOOK_ID] = "6f0d1c9a-0001",
    [DELIVERY_ID] = "d-42",
};

/* All four headers, genuine except for one. */
static struct delivery_headers
headers_with(enum delivery_header header, const char *value)
{
        struct delivery_headers headers;

        for (size_t h = 0; h < DELIVERY_N_HEADERS; h++) {
                headers.values[h] = h == header ? value : genuine[h];
                headers.counts[h] = 1;
        }
        return headers;
}

/* The fault found in one header if all others are genuine; there must be no fault in those. */
static const char *
fault_of(enum delivery_header header, const char *value)
{
        struct delivery_headers headers = headers_with(header, value);
        const char *faults[DELIVERY_N_HEADERS];
        struct delivery delivery;
        size_t n = delivery_parse(&headers, &delivery, faults);

        for (size_t h = 0; h < DELIVERY_N_HEADERS; h++) {
                if (h != header)
                        ck_assert_ptr_null(faults[h]);
        }
        ck_assert_uint_eq(n, faults[header] != NULL);
        return faults[header];
}

START_TEST(test_well_formed_headers_are_read)
{
        struct delivery_headers headers = headers_with(DELIVERY_ID, ID_64);
        const char *faults[DELIVERY_N_HEADERS];
        struct delivery delivery;

        ck_assert_uint_eq(delivery_parse(&headers, &delivery, faults), 0);
        ck_assert_str_eq(delivery.signature_text, SIGNATURE);
        ck_assert_uint_eq(delivery.signature[0], 0x58);
        ck_assert_uint_eq(delivery.signature[31], 0x68);
        ck_assert_str_eq(delivery.timestamp_text, "1795230245");
        ck_assert_int_eq(delivery.timestamp, 1795230245);
        ck_assert_str_eq(delivery.webhook_id, "6f0d1c9a-0001");
        ck_assert_str_eq(delivery.delivery_id, ID_64);
}
END_TEST

START_TEST(test_header_names_are_case_insensitive)
{
        struct delivery_headers headers = {0};

        delivery_headers_add(&headers, "x-invoicing", "X-Invoicing-Signature", "1");
        delivery_headers_add(&headers, "X-INVOICING", "x-invoicing-timestamp", "2");
        delivery_headers_add(&headers, "x-invoicing", "X-INVOICING-WEBHOOK-ID", "3");
        delivery_headers_add(&headers, "x-invoicing", "x-invoicing-Delivery-Id", "4");
        for (size_t h = 0; h < DELIVERY_N_HEADERS; h++)
                ck_assert_uint_eq(headers.counts[h], 1);
        ck_assert_str_eq(headers.values[DELIVERY_SIGNATURE], "1");
        ck_assert_str_eq(headers.values[DELIVERY_TIMESTAMP], "2");
        ck_assert_str_eq(headers.values[DELIVERY_WEBHOOK_ID], "3");
        ck_assert_str_eq(headers.values[DELIVERY_ID], "4");
}
END_TEST

START_TEST(test_other_headers_are_ignored)
{
        static const char *const others[] = {
            "host",
            "x-invoicing",
            "x-invoicing-",
            "x-invoicing-signature2",
            "x-invoicing-sign",
            "x-invoicing_signature",
            "x-invoicing signature",
            "x-invoicingsignature",
            "x-invoicin-signature",
            "x-invoicings-signature",
            "signature",
            "",
        };
        struct delivery_headers headers = {0};

        for (size_t i = 0; i < ARRAY_LEN(others); i++)
                delivery_headers_add(&headers, "x-invoicing", others[i], "v");
        for (size_t h = 0; h < DELIVERY_N_HEADERS; h++)
                ck_assert_uint_eq(headers.counts[h], 0);
}
END_TEST

START_TEST(test_repeated_header_is_a_fault)
{
        struct delivery_headers headers = headers_with(DELIVERY_ID, "d-42");
        const char *faults[DELIVERY_N_HEADERS];
        struct delivery delivery;
        char name[64];

        /* Even with the same value, and with its name in any case. */
        (void)snprintf(name, sizeof(name), "X-Invoicing-%s",
                       delivery_header_suffix((enum delivery_header)_i));
        delivery_headers_add(&headers, "x-invoicing", name, genuine[_i]);
        ck_assert_uint_eq(delivery_parse(&headers, &delivery, faults), 1);
        ck_assert_str_eq(faults[_i], "must appear once");
}
END_TEST

START_TEST(test_missing_header_is_a_fault)
{
        struct delivery_headers headers = headers_with(DELIVERY_ID, "d-42");
        const char *faults[DELIVERY_N_HEADERS];
        struct delivery delivery;

        headers.counts[_i] = 0;
        headers.values[_i] = NULL;
        ck_assert_uint_eq(delivery_parse(&headers, &delivery, faults), 1);
        ck_assert_str_eq(faults[_i], "is missing");
}
END_TEST

START_TEST(test_all_faults_are_reported_together)
{
        struct delivery_headers headers = {0};
        const char *faults[DELIVERY_N_HEADERS];
        struct delivery delivery;

        ck_assert_uint_eq(delivery_parse(&headers, &delivery, faults), DELIVERY_N_HEADERS);
        delivery_headers_add(&headers, "x-invoicing", "x-invoicing-timestamp", "now");
        delivery_headers_add(&headers, "x-invoicing", "x-invoicing-delivery-id", "d-42");
        ck_assert_uint_eq(delivery_parse(&headers, &delivery, faults), 3);
        ck_assert_str_eq(faults[DELIVERY_SIGNATURE], "is missing");
        ck_assert_str_eq(faults[DELIVERY_TIMESTAMP], "must be 10 digits");
        ck_assert_str_eq(faults[DELIVERY_WEBHOOK_ID], "is missing");
        ck_assert_ptr_null(faults[DELIVERY_ID]);
}
END_TEST

START_TEST(test_signature_is_sha256_and_64_lowercase_digits)
{
        ck_assert_ptr_nonnull(fault_of(DELIVERY_SIGNATURE, ""));
        ck_assert_ptr_nonnull(fault_of(DELIVERY_SIGNATURE, SIGNATURE + 7));
        ck_assert_ptr_nonnull(fault_of(DELIVERY_SIGNATURE, SIGNATURE "0"));
        ck_assert_ptr_nonnull(
            fault_of(DELIVERY_SIGNATURE,
                     "sha256=589DC268294595FCAB9D2F8E1C772F29ABD80AED10327CE597FBBDF47F82DC68"));
}
END_TEST

START_TEST(test_timestamp_is_10_digits)
{
        ck_assert_ptr_null(fault_of(DELIVERY_TIMESTAMP, "0000000000"));
        ck_assert_ptr_null(fault_of(DELIVERY_TIMESTAMP, "9999999999"));
        ck_assert_ptr_nonnull(fault_of(DELIVERY_TIMESTAMP, ""));
        ck_assert_ptr_nonnull(fault_of(DELIVERY_TIMESTAMP, "179523024"));
        ck_assert_ptr_nonnull(fault_of(DELIVERY_TIMESTAMP, "17952302450"));
        ck_assert_ptr_nonnull(fault_of(DELIVERY_TIMESTAMP, "+795230245"));
        ck_assert_ptr_nonnull(fault_of(DELIVERY_TIMESTAMP, "-795230245"));
        ck_assert_ptr_nonnull(fault_of(DELIVERY_TIMESTAMP, " 795230245"));
        ck_assert_ptr_nonnull(fault_of(DELIVERY_TIMESTAMP, "1795230245 "));
        ck_assert_ptr_nonnull(fault_of(DELIVERY_TIMESTAMP, "179523024x"));
        ck_assert_ptr_nonnull(fault_of(DELIVERY_TIMESTAMP, "1795230.45"));
}
END_TEST

START_TEST(test_ids_are_1_to_64_letters_digits_and_hyphens)
{
        static const enum delivery_header ids[] = {DELIVERY_ID, DELIVERY_WEBHOOK_ID};
        enum delivery_header id = ids[_i];

        ck_assert_uint_eq(strlen(ID_64), 64);
        ck_assert_ptr_null(fault_of(id, "x"));
        ck_assert_ptr_null(fault_of(id, "-"));
        ck_assert_ptr_null(fault_of(id, ID_64));
        ck_assert_ptr_nonnull(fault_of(id, ""));
        ck_assert_ptr_nonnull(fault_of(id, ID_64 "x"));
        ck_assert_ptr_nonnull(fault_of(id, "a_b"));
        ck_assert_ptr_nonnull(fault_of(id, "a b"));
        ck_assert_ptr_nonnull(fault_of(id, "a\n"));
        ck_assert_ptr_nonnull(fault_of(id, "a/b"));
        ck_assert_ptr_nonnull(fault_of(id, "\xc3\xa4"));
}
END_TEST

START_TEST(test_timestamp_is_fresh_within_the_tolerance_in_both_directions)
{
        struct delivery delivery = {.timestamp = 1795230245};
        int64_t signed_ms = delivery.timestamp * 1000;

        ck_assert(delivery_is_fresh(&delivery, signed_ms, 300000));
        ck_assert(delivery_is_fresh(&delivery, signed_ms + 300000, 300000));
        ck_assert(delivery_is_fresh(&delivery, signed_ms - 300000, 300000));
        ck_assert(!delivery_is_fresh(&delivery, signed_ms - 300001, 300000));
        /* The second that the sender signed in has 1000 ms. */
        ck_assert(delivery_is_fresh(&delivery, signed_ms + 300999, 300000));
        ck_assert(!delivery_is_fresh(&delivery, signed_ms + 301000, 300000));
}
END_TEST

START_TEST(test_zero_tolerance_and_distant_times_are_handled)
{
        struct delivery delivery = {.timestamp = 9999999999};

        ck_assert(!delivery_is_fresh(&delivery, 1795230245000, 300000));
        ck_assert(delivery_is_fresh(&delivery, 9999999999000, 0));
        ck_assert(!delivery_is_fresh(&delivery, 9999999998999, 0));
        delivery.timestamp = 0;
        ck_assert(!delivery_is_fresh(&delivery, 1795230245000, 300000));
}
END_TEST

Suite *
suite_delivery(void)
{
        Suite *suite = suite_create("delivery");
        TCase *tcase = tcase_create("delivery");

        tcase_add_test(tcase, test_well_formed_headers_are_read);
        tcase_add_test(tcase, test_header_names_are_case_insensitive);
        tcase_add_test(tcase, test_other_headers_are_ignored);
        tcase_add_loop_test(tcase, test_repeated_header_is_a_fault, 0, DELIVERY_N_HEADERS);
        tcase_add_loop_test(tcase, test_missing_header_is_a_fault, 0, DELIVERY_N_HEADERS);
        tcase_add_test(tcase, test_all_faults_are_reported_together);
        tcase_add_test(tcase, test_signature_is_sha256_and_64_lowercase_digits);
        tcase_add_test(tcase, test_timestamp_is_10_digits);
        tcase_add_loop_test(tcase, test_ids_are_1_to_64_letters_digits_and_hyphens, 0, 2);
        tcase_add_test(tcase, test_timestamp_is_fresh_within_the_tolerance_in_both_directions);
        tcase_add_test(tcase, test_zero_tolerance_and_distant_times_are_handled);
        suite_add_tcase(suite, tcase);
        return suite;
}
