#include <check.h>
#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "base/prometheus.h"
#include "suites.h"

static struct prometheus
parse(const char *text)
{
        struct prometheus page;
        struct error error;

        ck_assert_int_eq(prometheus_parse(text, &page, &error), 0);
        return page;
}

START_TEST(test_samples_are_parsed_with_labels_and_values)
{
        struct prometheus page = parse("# HELP a_total Things.\n# TYPE a_total counter\n"
                                       "a_total{source=\"in\",outcome=\"ok\"} 3\n"
                                       "a_total { source = \"\\\"x\\\\\" , } 4.5e1 1795230245000\n\n"
                                       "\tb +Inf\nc NaN -5");

        ck_assert_uint_eq(page.n, 4);
        ck_assert_str_eq(page.samples[0].name, "a_total");
        ck_assert_str_eq(prometheus_label(&page.samples[0], "source"), "in");
        ck_assert_str_eq(prometheus_label(&page.samples[0], "outcome"), "ok");
        ck_assert_str_eq(prometheus_label(&page.samples[0], "missing"), "");
        ck_assert_double_eq(page.samples[0].value, 3);
        ck_assert_str_eq(prometheus_label(&page.samples[1], "source"), "\"x\\");
        ck_assert_double_eq(page.samples[1].value, 45);
        ck_assert_double_infinite(page.samples[2].value);
        ck_assert_double_nan(page.samples[3].value);
        prometheus_clear(&page);
}
END_TEST

START_TEST(test_samples_are_found_by_name_and_summed)
{
        struct prometheus page = parse("a 1\nb 2\na 3\naa 4\n");
        const struct prometheus_sample *first = prometheus_next(&page, "a", NULL),
                                       *second = prometheus_next(&page, "a", first);

        ck_assert_double_eq(first->value, 1);
        ck_assert_double_eq(second->value, 3);
        ck_assert_ptr_null(prometheus_next(&page, "a", second));
        ck_assert_double_eq(prometheus_sum(&page, "a"), 4);
        ck_assert_double_eq(prometheus_sum(&page, "c"), 0);
        prometheus_clear(&page);
}
END_TEST

START_TEST(test_empty_page_has_no_samples)
{
        struct prometheus page = parse("");

        ck_assert_uint_eq(page.n, 0);
        prometheus_clear(&page);
        page = parse("\n# only\n  \n");
        ck_assert_uint_eq(page.n, 0);
        prometheus_clear(&page);
}
END_TEST

static const char *const wrong[] = {
    "a\n1\n",
    "a{} \n",
    "a{b=\"c\" 1\n",
    "a{b=\"c\n\"} 1\n",
    "a{b=c} 1\n",
    "a{=\"c\"} 1\n",
    "a 1 x\n",
    "{\"a\":1}\n",
    "a{b=\"\x1b\"} 1",
    "a{b=\"\xff\"} 1",
    "a{b=\"c\"d=\"\"} 1",
    "<html>\n",
    "a{b=\"c",
    "a{",
    "a",
    "a{a=\"\",b=\"\",c=\"\",d=\"\",e=\"\",f=\"\",g=\"\",h=\"\",i=\"\",j=\"\",k=\"\",l=\"\",m=\"\",n=\"\",o="
    "\"\","
    "p=\"\",q=\"\"} 1\n",
};

START_TEST(test_malformed_page_is_refused)
{
        struct prometheus page;
        struct error error;

        ck_assert_int_eq(prometheus_parse(wrong[_i], &page, &error), -1);
        ck_assert_ptr_nonnull(strstr(error.text, "line 1 "));
        prometheus_clear(&page);
}
END_TEST

START_TEST(test_quantiles_are_linear_within_a_bucket_and_end_at_the_last_bound)
{
        struct prometheus page =
            parse("h_bucket{le=\"1\"} 40\nh_bucket{le=\"2\"} 80\nh_bucket{le=\"+Inf\"} 100\n"
                  "h_bucket{le=\"1\",other=\"x\"} 40\nh_bucket{le=\"2\",other=\"x\"} 80\n"
                  "h_bucket{le=\"+Inf\",other=\"x\"} 100\n");
        struct prometheus_buckets buckets;

        prometheus_buckets_read(&buckets, &page, "h");
        ck_assert_double_eq(prometheus_buckets_count(&buckets), 200);
        ck_assert_double_eq(prometheus_buckets_quantile(&buckets, 0.2), 0.5);
        ck_assert_double_eq(prometheus_buckets_quantile(&buckets, 0.5), 1.25);
        ck_assert_double_eq(prometheus_buckets_quantile(&buckets, 0.99), 2);
        prometheus_buckets_read(&buckets, &page, "other");
        ck_assert_uint_eq(buckets.n, 0);
        ck_assert_double_eq(prometheus_buckets_count(&buckets), 0);
        prometheus_clear(&page);
}
END_TEST

Suite *
suite_prometheus(void)
{
        Suite *suite = suite_create("prometheus");
        TCase *tcase = tcase_create("prometheus");

        tcase_add_test(tcase, test_samples_are_parsed_with_labels_and_values);
        tcase_add_test(tcase, test_samples_are_found_by_name_and_summed);
        tcase_add_test(tcase, test_empty_page_has_no_samples);
        tcase_add_loop_test(tcase, test_malformed_page_is_refused, 0, ARRAY_LEN(wrong));
        tcase_add_test(tcase, test_quantiles_are_linear_within_a_bucket_and_end_at_the_last_bound);
        suite_add_tcase(suite, tcase);
        return suite;
}
