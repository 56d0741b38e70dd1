#include <check.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "model/release.h"
#include "spans.h"
#include "suites.h"

static struct span
span(const char *text)
{
        return (struct span){text, strlen(text)};
}

static int
parses(const char *text, struct release_id *id)
{
        return release_id_parse(span(text), id) == 0;
}

START_TEST(test_id_is_partition_hyphen_offset)
{
        struct release_id id;

        ck_assert(parses("0-0", &id));
        ck_assert_int_eq(id.partition, 0);
        ck_assert_int_eq(id.offset, 0);
        ck_assert(parses("12-3456789012", &id));
        ck_assert_int_eq(id.partition, 12);
        ck_assert_int_eq(id.offset, INT64_C(3456789012));
        ck_assert(parses("2147483647-9223372036854775807", &id));
        ck_assert_int_eq(id.partition, INT32_MAX);
        ck_assert_int_eq(id.offset, INT64_MAX);
}
END_TEST

START_TEST(test_invalid_id_is_refused)
{
        static const char *const wrong[] = {
            "",     "-",     "1",     "1-",    "-1",        "a-1",          "1-b",
            "1--2", "1-2-3", " 1-2",  "1-2 ",  "+1-2",      "1-+2",         "01-2",
            "1-02", "1/2",   "0x1-2", "1.0-2", "1-2\n",     "2147483648-0", "0-9223372036854775808",
            "00-0", "0-00",  "1-2,",  "1:2",   "\xc2\xb9-2"};
        struct release_id id;

        for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
                ck_assert_msg(!parses(wrong[i], &id), "'%s' was accepted as an ID", wrong[i]);
        ck_assert_int_ne(release_id_parse(NO_SPAN, &id), 0);
        /* Bytes beyond the span are not read. */
        ck_assert_int_eq(release_id_parse((struct span){"1-23", 3}, &id), 0);
        ck_assert_int_eq(id.offset, 2);
}
END_TEST

START_TEST(test_place_is_parsed_from_two_headers)
{
        static const char *const wrong[][2] = {{"", ""},    {"1", ""},  {"", "1"},          {"-1", "0"},
                                               {"01", "0"}, {"0", "x"}, {"2147483648", "0"}};
        struct release_id place;

        ck_assert_int_eq(release_place_parse(SPAN("2"), SPAN("17"), &place), 0);
        ck_assert_int_eq(place.partition, 2);
        ck_assert_int_eq(place.offset, 17);
        for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
                ck_assert_int_ne(release_place_parse(span(wrong[i][0]), span(wrong[i][1]), &place), 0);
        ck_assert_int_ne(release_place_parse(NO_SPAN, NO_SPAN, &place), 0);
}
END_TEST

START_TEST(test_id_is_formatted_as_parsed)
{
        struct release_id id = {INT32_MAX, INT64_MAX}, again;
        char text[RELEASE_ID_SIZE];

        ck_assert_str_eq(release_id_format(&id, text), "2147483647-9223372036854775807");
        ck_assert(parses(text, &again));
        ck_assert_int_eq(release_id_compare(&id, &again), 0);
}
END_TEST

START_TEST(test_ids_are_ordered_by_partition_and_offset)
{
        struct release_id ids[] = {{0, 5}, {0, 6}, {1, 0}, {1, INT64_MAX}, {2, 0}};

        for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
                for (size_t j = 0; j < ARRAY_LEN(ids); j++) {
                        int order = release_id_compare(&ids[i], &ids[j]);

                        ck_assert_int_eq((order > 0) - (order < 0), (i > j) - (i < j));
                }
        }
}
END_TEST

START_TEST(test_id_containing_a_nul_is_refused)
{
        struct release_id id;

        ck_assert_int_ne(release_id_parse(SPAN("1-2\0"), &id), 0);
        ck_assert_int_ne(release_id_parse(SPAN("1\0-2"), &id), 0);
}
END_TEST

START_TEST(test_delivery_id_is_the_part_before_the_release_suffix)
{
        assert_span(release_delivery_id(SPAN("d-1.2-17")), "d-1");
        assert_span(release_delivery_id(SPAN("d-1.2-17.0-3")), "d-1.2-17");
        assert_span(release_delivery_id(SPAN("d-1")), "d-1");
        assert_span(release_delivery_id(SPAN("1-2")), "1-2");
        assert_span(release_delivery_id(SPAN("d.1-02")), "d.1-02");
        assert_span(release_delivery_id(SPAN("d-1.")), "d-1.");
        assert_span(release_delivery_id(SPAN(".1-2")), "");
        ck_assert_ptr_null(release_delivery_id(NO_SPAN).data);
}
END_TEST

START_TEST(test_release_keeps_the_headers_of_the_delivery)
{
        static const char *const kept[] = {"gatepost-source",    "gatepost-webhook-id", "gatepost-timestamp",
                                           "gatepost-signature", "gatepost-received",   "gatepost-instance",
                                           "traceparent",        "tracestate",          "another"};
        static const char *const dropped[] = {"gatepost-replay-of", "gatepost-released",  "gatepost-reason",
                                              "gatepost-detail",    "gatepost-partition", "gatepost-offset"};

        for (size_t i = 0; i < ARRAY_LEN(kept); i++)
                ck_assert(release_keeps_header(kept[i]));
        for (size_t i = 0; i < ARRAY_LEN(dropped); i++)
                ck_assert(!release_keeps_header(dropped[i]));
}
END_TEST

Suite *
suite_release(void)
{
        Suite *suite = suite_create("release");
        TCase *tcase = tcase_create("release");

        tcase_add_test(tcase, test_id_is_partition_hyphen_offset);
        tcase_add_test(tcase, test_invalid_id_is_refused);
        tcase_add_test(tcase, test_place_is_parsed_from_two_headers);
        tcase_add_test(tcase, test_id_is_formatted_as_parsed);
        tcase_add_test(tcase, test_ids_are_ordered_by_partition_and_offset);
        tcase_add_test(tcase, test_id_containing_a_nul_is_refused);
        tcase_add_test(tcase, test_delivery_id_is_the_part_before_the_release_suffix);
        tcase_add_test(tcase, test_release_keeps_the_headers_of_the_delivery);
        suite_add_tcase(suite, tcase);
        return suite;
}
