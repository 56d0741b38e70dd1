#include <check.h>
#include <stdio.h>
#include <string.h>

#include "metrics/recent.h"
#include "suites.h"

static const char not_found[] = "not_found", malformed[] = "malformed", forged[] = "forged";

static struct recent recent;
static struct recent_event events[RECENT_EVENTS];

static void
setup(void)
{
        recent_init(&recent);
}

static void
note(const char *outcome, const char *source, const char *detail, uint8_t client)
{
        struct recent_event event = {.outcome = outcome, .client.bytes = {client}};

        (void)snprintf(event.source, sizeof(event.source), "%s", source);
        (void)snprintf(event.detail, sizeof(event.detail), "%s", detail);
        recent_note(&recent, &event);
}

static void
note_many(const char *outcome, const char *source, uint8_t client, int n)
{
        static int number;
        char detail[32];

        for (int i = 0; i < n; i++) {
                (void)snprintf(detail, sizeof(detail), "number %d", number++);
                note(outcome, source, detail, client);
        }
}

/* Return how many of the events have this detail. */
static int
count(const char *detail)
{
        size_t n = recent_read(&recent, events);
        int found = 0;

        for (size_t i = 0; i < n; i++)
                found += strcmp(events[i].detail, detail) == 0;
        return found;
}

START_TEST(test_newest_event_is_first_and_repeats_are_counted)
{
        note(not_found, "", "one", 1);
        note(not_found, "", "two", 1);
        note(not_found, "", "one", 2);
        ck_assert_uint_eq(recent_read(&recent, events), 2);
        ck_assert_str_eq(events[0].detail, "one");
        ck_assert_uint_eq(events[0].count, 2);
        ck_assert_uint_eq(events[0].client.bytes[0], 2);
        ck_assert_str_eq(events[1].detail, "two");
        ck_assert_uint_eq(events[1].count, 1);
}
END_TEST

START_TEST(test_events_that_differ_in_source_or_outcome_are_apart)
{
        note(malformed, "one", "same", 1);
        note(malformed, "other", "same", 1);
        note(forged, "one", "same", 1);
        ck_assert_int_eq(count("same"), 3);
}
END_TEST

START_TEST(test_flood_displaces_events_of_its_own_kind_only)
{
        note(malformed, "invoicing", "wrong prefix", 2);
        note(forged, "invoicing", "wrong secret", 2);
        note_many(not_found, "", 1, 1000);
        ck_assert_uint_eq(recent_read(&recent, events), RECENT_EVENTS);
        ck_assert_int_eq(count("wrong prefix"), 1);
        ck_assert_int_eq(count("wrong secret"), 1);
}
END_TEST

/* The service's own wrong path, in the middle of a scan by someone else. */
START_TEST(test_flood_displaces_events_of_its_own_client_first)
{
        note_many(not_found, "", 1, 5);
        note(not_found, "", "wrong path", 2);
        note_many(not_found, "", 1, 1000);
        ck_assert_int_eq(count("wrong path"), 1);
}
END_TEST

START_TEST(test_new_kind_of_event_displaces_the_most_frequent_kind)
{
        note(not_found, "", "wrong path", 2);
        note(malformed, "invoicing", "wrong prefix", 2);
        note_many(not_found, "", 1, RECENT_EVENTS - 2);
        note(forged, "invoicing", "wrong secret", 2);
        ck_assert_int_eq(count("wrong path"), 1);
        ck_assert_int_eq(count("wrong prefix"), 1);
        ck_assert_int_eq(count("wrong secret"), 1);
        ck_assert_uint_eq(recent_read(&recent, events), RECENT_EVENTS);
}
END_TEST

START_TEST(test_displaced_event_is_counted_anew)
{
        note(not_found, "", "again", 1);
        note(not_found, "", "again", 1);
        note_many(not_found, "", 1, RECENT_EVENTS);
        ck_assert_int_eq(count("again"), 0);
        note(not_found, "", "again", 1);
        ck_assert_int_eq(count("again"), 1);
        ck_assert_uint_eq(events[0].count, 1);
}
END_TEST

START_TEST(test_records_are_told_apart_by_their_offset)
{
        struct recent_event event = {.outcome = malformed, .offset = 7};

        recent_note(&recent, &event);
        recent_note(&recent, &event);
        ck_assert_uint_eq(recent_read(&recent, events), 1);
        event.offset++;
        recent_note(&recent, &event);
        event.partition++;
        recent_note(&recent, &event);
        ck_assert_uint_eq(recent_read(&recent, events), 3);
}
END_TEST

START_TEST(test_hour_counts_what_happened_within_it)
{
        struct recent_hour hour = {0};
        int64_t now_s = 1000000200;

        ck_assert_uint_eq(recent_hour_count(&hour, now_s), 0);
        for (int minute = 0; minute < 600; minute++)
                recent_hour_add(&hour, now_s + minute * 60);
        now_s += 599 * 60;
        ck_assert_uint_ge(recent_hour_count(&hour, now_s), 60);
        ck_assert_uint_le(recent_hour_count(&hour, now_s), 70);
        ck_assert_uint_le(recent_hour_count(&hour, now_s + 3000), 20);
        ck_assert_uint_eq(recent_hour_count(&hour, now_s + 4200), 0);
        recent_hour_add(&hour, now_s + 86400);
        ck_assert_uint_eq(recent_hour_count(&hour, now_s + 86400), 1);
        recent_hour_add(&hour, now_s); /* the clock was set back */
        ck_assert_uint_eq(recent_hour_count(&hour, now_s), 2);
}
END_TEST

START_TEST(test_count_within_the_hour_is_read)
{
        note(not_found, "", "one", 1);
        note(not_found, "", "one", 1);
        (void)recent_read(&recent, events);
        ck_assert_uint_eq(events[0].hour_count, 2);
}
END_TEST

Suite *
suite_recent(void)
{
        Suite *suite = suite_create("recent");
        TCase *tcase = tcase_create("recent");

        tcase_add_checked_fixture(tcase, setup, NULL);
        tcase_add_test(tcase, test_newest_event_is_first_and_repeats_are_counted);
        tcase_add_test(tcase, test_events_that_differ_in_source_or_outcome_are_apart);
        tcase_add_test(tcase, test_flood_displaces_events_of_its_own_kind_only);
        tcase_add_test(tcase, test_flood_displaces_events_of_its_own_client_first);
        tcase_add_test(tcase, test_new_kind_of_event_displaces_the_most_frequent_kind);
        tcase_add_test(tcase, test_displaced_event_is_counted_anew);
        tcase_add_test(tcase, test_records_are_told_apart_by_their_offset);
        tcase_add_test(tcase, test_hour_counts_what_happened_within_it);
        tcase_add_test(tcase, test_count_within_the_hour_is_read);
        suite_add_tcase(suite, tcase);
        return suite;
}
