#include <check.h>

#include "base/clock.h"
#include "kafka/begin_delay.h"
#include "suites.h"

#define EARLY_MS 20
#define MANY 1000

/* A transaction that begins right after another and gets two answers for its partitions, this far apart. */
static void
follow(struct begin_delay *delay, int64_t apart_ms, int has_produced)
{
        begin_delay_committed(delay);
        begin_delay_wait(delay);
        begin_delay_begun(delay);
        begin_delay_partitions_added(delay);
        if (has_produced)
                begin_delay_produced(delay);
        clock_sleep_ms(apart_ms);
        begin_delay_partitions_added(delay);
        begin_delay_produced(delay);
        begin_delay_committed(delay);
}

/* On a slow machine the wait is sometimes over already; the delay must not adapt to that. */
static void
follow_until(struct begin_delay *delay, int wait_ms, int64_t apart_ms, int has_produced)
{
        for (int i = 0; i < MANY && delay->wait_ms != wait_ms; i++)
                follow(delay, apart_ms, has_produced);
        ck_assert_int_eq(delay->wait_ms, wait_ms);
}

START_TEST(test_wait_adapts_to_transactions_that_begin_too_early)
{
        struct begin_delay delay;
        int least;

        begin_delay_init(&delay);
        least = delay.wait_ms;
        follow_until(&delay, EARLY_MS, EARLY_MS, 0);
        for (int i = 0; i < 5; i++)
                follow(&delay, EARLY_MS, 0);
        ck_assert_int_eq(delay.wait_ms, EARLY_MS);
        follow_until(&delay, EARLY_MS - 1, 0, 1);
        follow_until(&delay, EARLY_MS, EARLY_MS, 0);
        delay.wait_ms = least + 1;
        follow_until(&delay, least, 0, 1);
        for (int i = 0; i < 70; i++)
                follow(&delay, 0, 1);
        ck_assert_int_eq(delay.wait_ms, least);
}
END_TEST

START_TEST(test_partitions_added_after_records_do_not_change_the_wait)
{
        struct begin_delay delay;
        int least;

        begin_delay_init(&delay);
        least = delay.wait_ms;
        for (int i = 0; i < 5; i++)
                follow(&delay, EARLY_MS, 1);
        ck_assert_int_eq(delay.wait_ms, least);
}
END_TEST

START_TEST(test_wait_applies_only_after_a_commit_and_only_for_the_remaining_time)
{
        struct begin_delay delay;
        int64_t begun_ms = clock_monotonic_ms();

        begin_delay_init(&delay);
        delay.wait_ms = 3600000;
        begin_delay_wait(&delay);
        ck_assert_int_lt(clock_monotonic_ms() - begun_ms, delay.wait_ms);
        delay.wait_ms = 50;
        begin_delay_committed(&delay);
        begin_delay_wait(&delay);
        ck_assert_int_ge(clock_monotonic_ms() - delay.committed_ms, delay.wait_ms);
        delay.wait_ms = 1;
        clock_sleep_ms(2);
        begin_delay_wait(&delay);
        ck_assert_int_eq(delay.was_awaited, 0);
}
END_TEST

Suite *
suite_begin_delay(void)
{
        Suite *suite = suite_create("begin_delay");
        TCase *tcase = tcase_create("begin_delay");

        tcase_set_timeout(tcase, 240);
        tcase_add_test(tcase, test_wait_adapts_to_transactions_that_begin_too_early);
        tcase_add_test(tcase, test_partitions_added_after_records_do_not_change_the_wait);
        tcase_add_test(tcase, test_wait_applies_only_after_a_commit_and_only_for_the_remaining_time);
        suite_add_tcase(suite, tcase);
        return suite;
}
