#include "metrics/recent.h"

#include <stdio.h>
#include <string.h>

#include "suites.h"

static const char not_found[] = "not_found", forged[] = "forged";

static void
note(struct recent *recent, const char *outcome, const char *source, const char *detail)
{
        struct recent_event event = {.outcome = outcome};

        (void)snprintf(event.source, sizeof(event.source), "%s", source);
        (void)snprintf(event.detail, sizeof(event.detail), "%s", detail);
        recent_note(recent, &event);
}

START_TEST(test_newest_comes_first_and_the_oldest_goes)
{
        struct recent recent;
        struct recent_event events[RECENT_EVENTS];
        char detail[16];

        recent_init(&recent);
        ck_assert_uint_eq(recent_read(&recent, events), 0);
        for (int i = 0; i < RECENT_EVENTS + 5; i++) {
                (void)snprintf(detail, sizeof(detail), "/%d", i);
                note(&recent, not_found, "a", detail);
        }
        ck_assert_uint_eq(recent_read(&recent, events), RECENT_EVENTS);
        ck_assert_str_eq(events[0].detail, "/24");
        ck_assert_str_eq(events[RECENT_EVENTS - 1].detail, "/5");
        ck_assert_uint_eq(events[0].count, 1);
        ck_assert_int_gt(events[0].time_s, 0);
}
END_TEST

START_TEST(test_event_that_repeats_the_one_before_is_counted_there)
{
        struct recent recent;
        struct recent_event events[RECENT_EVENTS];

        recent_init(&recent);
        for (int i = 0; i < 3; i++)
                note(&recent, forged, "a", "another secret");
        note(&recent, forged, "b", "another secret");
        note(&recent, forged, "a", "another secret");
        note(&recent, not_found, "", "/scan/1");
        note(&recent, not_found, "", "/scan/2");
        ck_assert_uint_eq(recent_read(&recent, events), 4);
        ck_assert_uint_eq(events[0].count, 2);
        ck_assert_str_eq(events[0].detail, "/scan/2");
        ck_assert_uint_eq(events[1].count, 1);
        ck_assert_str_eq(events[2].source, "b");
        ck_assert_uint_eq(events[3].count, 3);
}
END_TEST

Suite *
suite_recent(void)
{
        Suite *suite = suite_create("recent");
        TCase *tests = tcase_create("recent");

        tcase_add_test(tests, test_newest_comes_first_and_the_oldest_goes);
        tcase_add_test(tests, test_event_that_repeats_the_one_before_is_counted_there);
        suite_add_tcase(suite, tests);
        return suite;
}
