#include <check.h>

#include "base/clock.h"
#include "kafka/markers.h"
#include "suites.h"

#define EARLY_MS 20
#define MANY 1000

/* A transaction that follows at once on another and is answered twice for its partitions, so much apart. */
static void
follow(struct markers *markers, int64_t apart_ms, int has_produced)
{
        markers_committed(markers);
        markers_wait(markers);
        markers_begin(markers);
        markers_registered(markers);
        if (has_produced)
                markers_produced(markers);
        clock_sleep_ms(apart_ms);
        markers_registered(markers);
        markers_produced(markers);
        markers_committed(markers);
}

/* A slow machine comes too late to wait, now and then; nothing is learnt of that. */
static void
follow_until(struct markers *markers, int wait_ms, int64_t apart_ms, int has_produced)
{
        for (int i = 0; i < MANY && markers->wait_ms != wait_ms; i++)
                follow(markers, apart_ms, has_produced);
        ck_assert_int_eq(markers->wait_ms, wait_ms);
}

START_TEST(test_wait_grows_while_transactions_are_too_early_and_shrinks_when_none_is)
{
        struct markers markers;
        int least;

        markers_init(&markers);
        least = markers.wait_ms;
        follow_until(&markers, EARLY_MS, EARLY_MS, 0);
        for (int i = 0; i < 5; i++)
                follow(&markers, EARLY_MS, 0);
        ck_assert_int_eq(markers.wait_ms, EARLY_MS);
        follow_until(&markers, EARLY_MS - 1, 0, 1);
        follow_until(&markers, EARLY_MS, EARLY_MS, 0);
        markers.wait_ms = least + 1;
        follow_until(&markers, least, 0, 1);
        for (int i = 0; i < 70; i++)
                follow(&markers, 0, 1);
        ck_assert_int_eq(markers.wait_ms, least);
}
END_TEST

START_TEST(test_partitions_that_are_added_after_records_say_nothing_of_the_wait)
{
        struct markers markers;
        int least;

        markers_init(&markers);
        least = markers.wait_ms;
        for (int i = 0; i < 5; i++)
                follow(&markers, EARLY_MS, 1);
        ck_assert_int_eq(markers.wait_ms, least);
}
END_TEST

START_TEST(test_only_a_commit_is_waited_after_and_no_longer_than_for_its_markers)
{
        struct markers markers;
        int64_t begun_ms = clock_monotonic_ms();

        markers_init(&markers);
        markers.wait_ms = 3600000;
        markers_wait(&markers);
        ck_assert_int_lt(clock_monotonic_ms() - begun_ms, markers.wait_ms);
        markers.wait_ms = 50;
        markers_committed(&markers);
        markers_wait(&markers);
        ck_assert_int_ge(clock_monotonic_ms() - markers.committed_ms, markers.wait_ms);
        markers.wait_ms = 1;
        clock_sleep_ms(2);
        markers_wait(&markers);
        ck_assert_int_eq(markers.was_awaited, 0);
}
END_TEST

Suite *
suite_markers(void)
{
        Suite *suite = suite_create("markers");
        TCase *tcase = tcase_create("markers");

        tcase_set_timeout(tcase, 240);
        tcase_add_test(tcase, test_wait_grows_while_transactions_are_too_early_and_shrinks_when_none_is);
        tcase_add_test(tcase, test_partitions_that_are_added_after_records_say_nothing_of_the_wait);
        tcase_add_test(tcase, test_only_a_commit_is_waited_after_and_no_longer_than_for_its_markers);
        suite_add_tcase(suite, tcase);
        return suite;
}
