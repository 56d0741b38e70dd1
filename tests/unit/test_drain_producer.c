#include <check.h>

#include "spool/drain_producer.h"
#include "suites.h"

#define MIB (UINT64_C(1) << 20)

/* How much a drain has in flight: no more than the link to Kafka can carry within ack_timeout. */

static const struct config config = {.ack_timeout_ms = 8000};
static struct drain_producer appends;

static void
setup(void)
{
        drain_producer_init(&appends, &config, NULL, -1, NULL, NULL);
}

static void
teardown(void)
{
        drain_producer_end(&appends);
}

static uint64_t
bytes(void)
{
        return drain_producer_window(&appends, 0).bytes;
}

static void
acknowledge(uint64_t size, int64_t took_ms)
{
        static const struct producer_outcome outcome = {.failure = NULL};

        drain_producer_note(&appends, &outcome, size, took_ms);
}

START_TEST(test_link_that_has_not_failed_limits_nothing)
{
        ck_assert_uint_eq(bytes(), 4 * MIB);
        acknowledge(1000, 7999);
        ck_assert_uint_eq(bytes(), 16 * MIB);
        ck_assert_uint_eq(drain_producer_window(&appends, 1).bytes, MIB);
}
END_TEST

START_TEST(test_each_failed_pass_halves_what_is_in_flight)
{
        static const uint64_t expected[] = {2 * MIB, MIB, MIB / 2, MIB / 4};

        for (size_t i = 0; i < 4; i++) {
                drain_producer_be_careful(&appends);
                ck_assert_uint_eq(bytes(), expected[i]);
        }
        for (int i = 0; i < 100; i++)
                drain_producer_be_careful(&appends);
        ck_assert_uint_eq(bytes(), 16384);
        ck_assert_uint_ge(drain_producer_window(&appends, 1).records, 1);
}
END_TEST

START_TEST(test_room_grows_with_what_is_acknowledged_soon)
{
        for (int i = 0; i < 100; i++)
                drain_producer_be_careful(&appends);
        acknowledge(1000, 2000);
        ck_assert_uint_eq(bytes(), 16384);
        acknowledge(1000, 1999);
        ck_assert_uint_eq(bytes(), 17384);
        for (int i = 0; i < 20000; i++)
                acknowledge(1000, 10);
        ck_assert_uint_eq(bytes(), 16 * MIB);
}
END_TEST

START_TEST(test_an_empty_spool_forgets_failures)
{
        drain_producer_be_careful(&appends);
        drain_producer_be_careful(&appends);
        ck_assert_uint_eq(appends.patience, 4);
        drain_producer_forget_failures(&appends);
        ck_assert_uint_eq(appends.patience, 1);
        ck_assert_uint_eq(bytes(), 4 * MIB);
}
END_TEST

Suite *
suite_drain_producer(void)
{
        Suite *suite = suite_create("drain_producer");
        TCase *tcase = tcase_create("room");

        tcase_add_checked_fixture(tcase, setup, teardown);
        tcase_add_test(tcase, test_link_that_has_not_failed_limits_nothing);
        tcase_add_test(tcase, test_each_failed_pass_halves_what_is_in_flight);
        tcase_add_test(tcase, test_room_grows_with_what_is_acknowledged_soon);
        tcase_add_test(tcase, test_an_empty_spool_forgets_failures);
        suite_add_tcase(suite, tcase);
        return suite;
}
