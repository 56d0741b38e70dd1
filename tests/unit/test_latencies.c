#include <check.h>

#include "../bench/load/latencies.h"
#include "suites.h"

START_TEST(test_percentiles_use_the_nearest_rank)
{
        struct latencies latencies = {0};

        ck_assert_uint_eq(latencies_at(&latencies, 500), 0);
        latencies_add(&latencies, 200);
        ck_assert_uint_eq(latencies_at(&latencies, 500), 200);
        ck_assert_uint_eq(latencies_at(&latencies, 990), 200);
        for (uint64_t ns = 199; ns > 0; ns--)
                latencies_add(&latencies, ns);
        ck_assert_uint_eq(latencies_at(&latencies, 500), 100);
        ck_assert_uint_eq(latencies_at(&latencies, 501), 101);
        ck_assert_uint_eq(latencies_at(&latencies, 990), 198);
        ck_assert_uint_eq(latencies_at(&latencies, 1000), 200);
}
END_TEST

START_TEST(test_long_latencies_are_rounded_up_by_one_in_1024_at_most)
{
        struct latencies latencies = {0};
        const uint64_t hour_ns = UINT64_C(3600000000000);

        for (uint64_t ns = 1; ns < 9 * hour_ns; ns += ns / 3 + 1) {
                latencies = (struct latencies){0};
                latencies_add(&latencies, ns);
                latencies_add(&latencies, 9 * hour_ns);
                ck_assert_uint_ge(latencies_at(&latencies, 500), ns);
                ck_assert_uint_le(latencies_at(&latencies, 500), ns + ns / 1024);
                ck_assert_uint_eq(latencies_at(&latencies, 1000), 9 * hour_ns);
        }
}
END_TEST

Suite *
suite_latencies(void)
{
        Suite *suite = suite_create("latencies");
        TCase *tcase = tcase_create("latencies");

        tcase_add_test(tcase, test_percentiles_use_the_nearest_rank);
        tcase_add_test(tcase, test_long_latencies_are_rounded_up_by_one_in_1024_at_most);
        suite_add_tcase(suite, tcase);
        return suite;
}
