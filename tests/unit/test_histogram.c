#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "metrics/figures.h"
#include "metrics/histogram.h"
#include "suites.h"

static const struct histogram_scale scale = {1000, 3, {500, 1000, 2500}};
static struct histogram histogram;
static struct histogram_figures figures;

static void
fresh(void)
{
        histogram_init(&histogram, &scale);
}

static void
add_and_read(uint64_t value)
{
        fresh();
        histogram_add(&histogram, value, 1);
        histogram_read(&histogram, &figures);
}

START_TEST(test_new_histogram_is_empty)
{
        fresh();
        histogram_read(&histogram, &figures);
        for (size_t i = 0; i < scale.n; i++)
                ck_assert_uint_eq(figures.up_to[i], 0);
        ck_assert_uint_eq(figures.count, 0);
        ck_assert_uint_eq(figures.sum, 0);
}
END_TEST

START_TEST(test_value_counts_in_every_bucket_whose_bound_it_does_not_exceed)
{
        static const struct {
                uint64_t value, up_to[3];
        } cases[] = {
            {0, {1, 1, 1}},    {500, {1, 1, 1}},  {501, {0, 1, 1}},  {1000, {0, 1, 1}},
            {1001, {0, 0, 1}}, {2500, {0, 0, 1}}, {2501, {0, 0, 0}}, {UINT64_MAX, {0, 0, 0}},
        };

        for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
                add_and_read(cases[c].value);
                for (size_t i = 0; i < scale.n; i++)
                        ck_assert_msg(figures.up_to[i] == cases[c].up_to[i], "case %zu, bound %zu", c, i);
                ck_assert_uint_eq(figures.count, 1);
                ck_assert_uint_eq(figures.sum, cases[c].value);
        }
}
END_TEST

START_TEST(test_value_can_be_added_several_times_at_once)
{
        fresh();
        histogram_add(&histogram, 700, 3);
        histogram_add(&histogram, 9000, 2);
        histogram_read(&histogram, &figures);
        ck_assert_uint_eq(figures.up_to[0], 0);
        ck_assert_uint_eq(figures.up_to[2], 3);
        ck_assert_uint_eq(figures.count, 5);
        ck_assert_uint_eq(figures.sum, 3 * 700 + 2 * 9000);
}
END_TEST

START_TEST(test_text_has_bounds_and_sum_in_the_exposed_unit)
{
        static const char expected[] = "# HELP wait_seconds How long.\n"
                                       "# TYPE wait_seconds histogram\n"
                                       "wait_seconds_bucket{le=\"0.5\"} 1\n"
                                       "wait_seconds_bucket{le=\"1\"} 1\n"
                                       "wait_seconds_bucket{le=\"2.5\"} 2\n"
                                       "wait_seconds_bucket{le=\"+Inf\"} 3\n"
                                       "wait_seconds_sum 5.25\n"
                                       "wait_seconds_count 3\n";
        char *text = NULL;
        size_t len;
        FILE *out = open_memstream(&text, &len);

        fresh();
        histogram_add(&histogram, 250, 1);
        histogram_add(&histogram, 2000, 1);
        histogram_add(&histogram, 3000, 1);
        figures_histogram(&(struct figures){.text = out},
                          &(struct figure){"wait_seconds", "histogram", "How long.", NULL}, &histogram);
        ck_assert_int_eq(fclose(out), 0);
        ck_assert_str_eq(text, expected);
        free(text);
}
END_TEST

START_TEST(test_label_value_is_escaped)
{
        char *text = NULL;
        size_t len;
        FILE *out = open_memstream(&text, &len);

        figures_begin_sample(&(struct figures){.text = out}, "n",
                             FIGURE_LABELS("l", "a\\b \"c\" \n d\xc3\xa4 \xe4 e"));
        ck_assert_int_eq(fclose(out), 0);
        ck_assert_str_eq(text, "n{l=\"a\\\\b \\\"c\\\" \\\\x0a d\xc3\xa4 \\\\xe4 e\"} ");
        free(text);
}
END_TEST

/* Values, how often each was added, and two quantiles as Prometheus estimates them. */
static const struct {
        uint64_t values[3], counts[3];
        double half, most;
} quantiles[] = {
    {{500}, {100}, 0.25, 0.495},
    {{500, 1000, 2500}, {10, 20, 10}, 0.75, 2.44},
    {{500, 9000}, {1, 999}, 2.5, 2.5},
};

START_TEST(test_quantile_is_linear_within_a_bucket)
{
        fresh();
        for (size_t i = 0; i < ARRAY_LEN(quantiles[_i].values); i++)
                histogram_add(&histogram, quantiles[_i].values[i], quantiles[_i].counts[i]);
        histogram_read(&histogram, &figures);
        ck_assert_double_eq_tol(histogram_quantile(&scale, &figures, 0.5), quantiles[_i].half, 1e-9);
        ck_assert_double_eq_tol(histogram_quantile(&scale, &figures, 0.99), quantiles[_i].most, 1e-9);
}
END_TEST

#define N_WRITERS 4
#define N_VALUES 200000

static void *
write_many(void *arg)
{
        (void)arg;
        for (uint64_t i = 0; i < N_VALUES; i++)
                histogram_add(&histogram, i % 3000, 1);
        return NULL;
}

START_TEST(test_concurrent_writers_lose_no_values)
{
        pthread_t writers[N_WRITERS];
        uint64_t before = 0, sum = 0;

        fresh();
        for (size_t i = 0; i < N_WRITERS; i++)
                ck_assert_int_eq(pthread_create(&writers[i], NULL, write_many, NULL), 0);
        while (before < N_WRITERS * N_VALUES / 2) {
                histogram_read(&histogram, &figures);
                ck_assert_uint_ge(figures.count, before);
                for (size_t i = 1; i < scale.n; i++)
                        ck_assert_uint_ge(figures.up_to[i], figures.up_to[i - 1]);
                ck_assert_uint_ge(figures.count, figures.up_to[scale.n - 1]);
                before = figures.count;
        }
        for (size_t i = 0; i < N_WRITERS; i++)
                (void)pthread_join(writers[i], NULL);
        for (uint64_t i = 0; i < N_VALUES; i++)
                sum += i % 3000;
        histogram_read(&histogram, &figures);
        ck_assert_uint_eq(figures.count, N_WRITERS * N_VALUES);
        ck_assert_uint_eq(figures.sum, N_WRITERS * sum);
}
END_TEST

Suite *
suite_histogram(void)
{
        Suite *suite = suite_create("histogram");
        TCase *tcase = tcase_create("histogram");

        tcase_add_test(tcase, test_new_histogram_is_empty);
        tcase_add_test(tcase, test_value_counts_in_every_bucket_whose_bound_it_does_not_exceed);
        tcase_add_test(tcase, test_value_can_be_added_several_times_at_once);
        tcase_add_test(tcase, test_text_has_bounds_and_sum_in_the_exposed_unit);
        tcase_add_test(tcase, test_label_value_is_escaped);
        tcase_add_loop_test(tcase, test_quantile_is_linear_within_a_bucket, 0, ARRAY_LEN(quantiles));
        tcase_add_test(tcase, test_concurrent_writers_lose_no_values);
        tcase_set_timeout(tcase, 60);
        suite_add_tcase(suite, tcase);
        return suite;
}
