#include <check.h>
#include <string.h>

#include "model/record.h"
#include "spans.h"
#include "suites.h"

START_TEST(test_known_headers_are_stored_in_their_fields)
{
        struct record record = {0};

        record_add_header(&record, "gatepost-source", SPAN("invoicing"));
        record_add_header(&record, "gatepost-webhook-id", SPAN("w-1"));
        record_add_header(&record, "gatepost-timestamp", SPAN("1795230245"));
        record_add_header(&record, "gatepost-signature", SPAN("sha256=00"));
        record_add_header(&record, "gatepost-received", SPAN("2026-11-21T03:04:05.678Z"));
        record_add_header(&record, "gatepost-request-id", SPAN("479551d22b8ed402"));
        record_add_header(&record, "gatepost-instance", SPAN("gw1"));
        record_add_header(&record, "gatepost-replay-of", SPAN("d-0"));
        record_add_header(&record, "gatepost-released", SPAN("2-17"));
        record_add_header(&record, "traceparent", SPAN("00-aa-bb-01"));
        record_add_header(&record, "tracestate", SPAN("k=v"));
        assert_span(record.source, "invoicing");
        assert_span(record.webhook_id, "w-1");
        assert_span(record.timestamp, "1795230245");
        assert_span(record.signature, "sha256=00");
        assert_span(record.received, "2026-11-21T03:04:05.678Z");
        assert_span(record.request_id, "479551d22b8ed402");
        assert_span(record.instance, "gw1");
        assert_span(record.replay_of, "d-0");
        assert_span(record.released, "2-17");
        assert_span(record.traceparent, "00-aa-bb-01");
        assert_span(record.tracestate, "k=v");
        ck_assert_ptr_null(record.key.data);
        ck_assert_ptr_null(record.body.data);
}
END_TEST

START_TEST(test_last_of_repeated_headers_counts)
{
        struct record record = {0};

        record_add_header(&record, RECORD_SOURCE, SPAN("first"));
        record_add_header(&record, RECORD_SOURCE, SPAN("last"));
        assert_span(record.source, "last");
        record_add_header(&record, RECORD_SOURCE, NO_SPAN);
        ck_assert_ptr_null(record.source.data);
}
END_TEST

START_TEST(test_unknown_headers_are_ignored)
{
        struct record record = {0}, untouched = {0};

        record_add_header(&record, RECORD_REASON, SPAN("missing-kind"));
        record_add_header(&record, "Gatepost-Source",
                          SPAN("x")); /* unlike in HTTP, header names are case-sensitive in Kafka */
        record_add_header(&record, "gatepost-sourc", SPAN("x"));
        record_add_header(&record, "gatepost-source2", SPAN("x"));
        record_add_header(&record, "", SPAN("x"));
        ck_assert_mem_eq(&record, &untouched, sizeof(record));
}
END_TEST

START_TEST(test_signing_time_must_have_ten_digits)
{
        struct record record = {.timestamp = SPAN("1795230245")};

        ck_assert_int_eq(record_signed_s(&record), 1795230245);
        record.timestamp = SPAN("179523024");
        ck_assert_int_eq(record_signed_s(&record), -1);
        record.timestamp = SPAN("17952302450");
        ck_assert_int_eq(record_signed_s(&record), -1);
        record.timestamp = SPAN("179523024x");
        ck_assert_int_eq(record_signed_s(&record), -1);
        record.timestamp = SPAN("-795230245");
        ck_assert_int_eq(record_signed_s(&record), -1);
        record.timestamp = NO_SPAN;
        ck_assert_int_eq(record_signed_s(&record), -1);
}
END_TEST

Suite *
suite_record(void)
{
        Suite *suite = suite_create("record");
        TCase *tcase = tcase_create("record");

        tcase_add_test(tcase, test_known_headers_are_stored_in_their_fields);
        tcase_add_test(tcase, test_last_of_repeated_headers_counts);
        tcase_add_test(tcase, test_unknown_headers_are_ignored);
        tcase_add_test(tcase, test_signing_time_must_have_ten_digits);
        suite_add_tcase(suite, tcase);
        return suite;
}
