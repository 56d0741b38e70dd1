#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/duration.h"
#include "daemon/page.h"
#include "daemon/page_write.h"
#include "suites.h"

#define RECEIVER \
        "gatepost_start_time_seconds 1795230000\n" \
        "gatepost_kafka_reachable 1\n" \
        "gatepost_requests_total{source=\"invoicing\",outcome=\"accepted\"} 1234567\n" \
        "gatepost_requests_total{source=\"invoicing\",outcome=\"forged\"} 3\n" \
        "gatepost_requests_total{source=\"\",outcome=\"accepted\"} 0\n" \
        "gatepost_requests_total{source=\"\",outcome=\"forged\"} 4\n"
#define ABOUT \
        "gatepost_build_info{version=\"1.2.3\",openssl=\"3.0.9\"} 1\n" \
        "gatepost_kafka_broker_up{broker=\"a:9092/1\"} 1\n" \
        "gatepost_kafka_broker_up{broker=\"b:9092/2\"} 0\n" \
        "gatepost_kafka_broker_rtt_seconds{broker=\"a:9092/1\"} 0.0021\n" \
        "gatepost_kafka_requests_total{client=\"router\"} 1500\n" \
        "gatepost_kafka_request_timeouts_total{client=\"router\"} 6\n" \
        "gatepost_kafka_queue_records{client=\"receiver\"} 5\n"
#define ROUTER \
        "gatepost_events_total{kind=\"invoice.accepted\"} 8\n" \
        "gatepost_events_total{kind=\"invoice.*\"} 1\n" \
        "gatepost_quarantined_total{reason=\"unknown-kind\"} 2\n" \
        "gatepost_router_lag_records 17\n"

static struct page_facts
facts(const char *metrics)
{
        return (struct page_facts){"gw1", "receiver: ready\n", 1, metrics, 1795230245000};
}

static char *
render(const struct page_facts *of)
{
        size_t len;
        char *page = page_render(of, &len);

        ck_assert_ptr_nonnull(page);
        ck_assert_uint_eq(strlen(page), len);
        ck_assert_ptr_null(strstr(page, "{{"));
        return page;
}

#define HAS(page, text) \
        ck_assert_msg(strstr(page, text) != NULL, "no `%s' in:\n%s", text, strstr(page, "<body>"))
#define HAS_NOT(page, text) \
        ck_assert_msg(strstr(page, text) == NULL, "`%s' in:\n%s", text, strstr(page, "<body>"))

START_TEST(test_numbers_are_those_of_the_metrics)
{
        struct page_facts of = facts(RECEIVER ROUTER);
        char *page = render(&of);

        HAS(page, "<title>Ready · gw1 · Gatepost</title>");
        HAS(page, "<li>receiver: ready</li>");
        HAS(page, "2026-11-21 03:04:05 UTC");
        HAS(page, "up 4 min 5 s");
        HAS(page, "<data data-key=\"outcome/accepted\" value=\"1234567\">1,234,567</data>");
        HAS(page, "<data data-key=\"outcome/forged\" value=\"7\">7</data>");
        HAS(page, "<data data-key=\"requests/accepted\" value=\"1234567\">1,234,567</data>");
        HAS(page, "<data data-key=\"requests/refused\" value=\"7\">7</data>");
        HAS(page, "<data data-key=\"event/invoice.*\" value=\"1\">1</data>");
        HAS(page, "<data data-key=\"events\" value=\"9\">9</data>");
        HAS(page, "<data data-key=\"reason/unknown-kind\" value=\"2\">2</data>");
        HAS(page, "<data data-key=\"lag\" value=\"17\">17</data>");
        free(page);
}
END_TEST

START_TEST(test_versions_brokers_and_clients_are_told)
{
        struct page_facts of = facts(ABOUT);
        char *page = render(&of);

        HAS(page, "gatepostd</th><td>1.2.3</td>");
        HAS(page, "openssl</th><td>3.0.9</td>");
        HAS(page, "a:<wbr>9092/<wbr>1</th><td>connected</td><td>2.1 ms</td>");
        HAS(page,
            "<tr class=\"words down\"><th scope=\"row\">b:<wbr>9092/<wbr>2</th><td>down</td><td>–</td>");
        HAS(page, "router</th><td>1,500</td><td>0</td><td>6</td><td>0</td>");
        free(page);
}
END_TEST

START_TEST(test_a_role_that_is_not_there_is_not_shown)
{
        struct page_facts receiver = facts(RECEIVER), router = facts(ROUTER), neither = facts("");
        char *page = render(&receiver);

        HAS(page, "<h2 id=\"receiver\">");
        HAS_NOT(page, "<h2 id=\"router\">");
        free(page);
        page = render(&router);
        HAS(page, "<h2 id=\"router\">");
        HAS_NOT(page, "<h2 id=\"receiver\">");
        free(page);
        page = render(&neither);
        HAS_NOT(page, "<h2 id=\"router\">");
        HAS_NOT(page, "<h2 id=\"receiver\">");
        HAS(page, "<caption>Versions</caption>");
        HAS_NOT(page, "Secrets");
        free(page);
}
END_TEST

START_TEST(test_names_are_text_and_never_markup)
{
        struct page_facts of =
            facts("gatepost_router_lag_records 1\n"
                  "gatepost_kafka_broker_up{broker=\"<i>&\"} 0\n"
                  "gatepost_secret_age_seconds{source=\"s\",file=\"/<script>\"} 9\n"
                  "gatepost_events_total{kind=\"'\\\"><script>alert(1)</script>{{now}}\"} 1\n");
        char *page;
        size_t len;

        of.instance = "</title><b>";
        of.readiness = "router: <img src=x>\n";
        of.is_ready = 0;
        page = page_render(&of, &len);
        ck_assert_ptr_nonnull(page);
        HAS(page, "Not ready · &lt;/title&gt;&lt;b&gt; · ");
        HAS(page, "<li>router: &lt;img src=x&gt;</li>");
        HAS(page, "data-key=\"event/&#39;&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;{{now}}\"");
        HAS(page, "&lt;i&gt;&amp;");
        HAS(page, "/<wbr>&lt;script&gt;");
        HAS_NOT(page, "<img");
        HAS_NOT(page, "<script>alert");
        free(page);
}
END_TEST

START_TEST(test_metrics_that_cannot_be_read_are_told_of)
{
        struct page_facts of = facts(RECEIVER "and then nonsense\n");
        char *page = render(&of);

        HAS(page, "The metrics cannot be read: line 7 is not in");
        HAS_NOT(page, "<h2 id=\"receiver\">");
        free(page);
}
END_TEST

/* Histograms, and what is shown: half and 99 % of what was counted. */
static const struct {
        const char *metrics;
        const char *shown;
} histograms[] = {
    {"gatepost_ack_seconds_bucket{le=\"0.001\"} 0\ngatepost_ack_seconds_bucket{le=\"+Inf\"} 0\n",
     "<td>–</td><td>–</td><td><data data-key=\"gatepost_ack_seconds\" data-buckets=\"0.001:0 +Inf:0\" "
     "value=\"0\">0</data></td>"},
    {"gatepost_ack_seconds_bucket{le=\"0.001\"} 100\ngatepost_ack_seconds_bucket{le=\"+Inf\"} 100\n",
     "<td>500 µs</td><td>990 µs</td><td><data data-key=\"gatepost_ack_seconds\" "
     "data-buckets=\"0.001:100 +Inf:100\" value=\"100\">100</data></td>"},
    {"gatepost_ack_seconds_bucket{le=\"0.001\"} 10\ngatepost_ack_seconds_bucket{le=\"0.003\"} 30\n"
     "gatepost_ack_seconds_bucket{le=\"2\"} 40\ngatepost_ack_seconds_bucket{le=\"+Inf\"} 40\n",
     "<td>2.0 ms</td><td>1.9 s</td>"},
    {"gatepost_ack_seconds_bucket{le=\"0.5\"} 1\ngatepost_ack_seconds_bucket{le=\"600\"} 2\n"
     "gatepost_ack_seconds_bucket{le=\"+Inf\"} 1000\n",
     "<td>10 min</td><td>10 min</td>"},
    {"gatepost_ack_seconds_bucket{source=\"a\",le=\"1\"} "
     "1\ngatepost_ack_seconds_bucket{source=\"a\",le=\"+Inf\"} 1\n"
     "gatepost_ack_seconds_bucket{source=\"b\",le=\"1\"} "
     "1\ngatepost_ack_seconds_bucket{source=\"b\",le=\"+Inf\"} 1\n",
     "data-buckets=\"1:2 +Inf:2\" value=\"2\">2</data>"},
    {"gatepost_router_lag_records 0\ngatepost_event_age_seconds_bucket{le=\"1\"} 0\n"
     "gatepost_batch_records_bucket{le=\"1\"} 0\ngatepost_batch_records_bucket{le=\"2000\"} 10\n"
     "gatepost_batch_records_bucket{le=\"+Inf\"} 10\n",
     "<th scope=\"row\">records in a batch</th><td>1,001</td><td>1,981</td>"},
};

START_TEST(test_histograms_are_shown_by_half_and_nearly_all)
{
        char *metrics, *page;
        struct page_facts of;

        ck_assert_int_gt(asprintf(&metrics, "%s%s", RECEIVER, histograms[_i].metrics), 0);
        of = facts(metrics);
        page = render(&of);
        HAS(page, histograms[_i].shown);
        free(page);
        free(metrics);
}
END_TEST

static const struct {
        double number;
        const char *count, *time;
} numbers[] = {
    {0, "0", "0 s"},       {0.0000013, "0", "1.3 µs"}, {0.0123, "0", "12 ms"},    {9.96, "10", "10 s"},
    {119, "119", "119 s"}, {999, "999", "17 min"},     {1000, "1,000", "17 min"}, {123456, "123,456", "34 h"},
};

START_TEST(test_numbers_are_written_for_a_person)
{
        char text[64] = "";
        FILE *out = fmemopen(text, sizeof(text), "w");

        page_write_count(out, numbers[_i].number);
        fputc(' ', out);
        duration_print_precise(out, numbers[_i].number);
        fclose(out);
        ck_assert_int_eq(strncmp(text, numbers[_i].count, strlen(numbers[_i].count)), 0);
        ck_assert_str_eq(text + strlen(numbers[_i].count) + 1, numbers[_i].time);
}
END_TEST

Suite *
suite_page(void)
{
        Suite *suite = suite_create("page");
        TCase *tcase = tcase_create("page");

        tcase_add_test(tcase, test_numbers_are_those_of_the_metrics);
        tcase_add_test(tcase, test_versions_brokers_and_clients_are_told);
        tcase_add_test(tcase, test_a_role_that_is_not_there_is_not_shown);
        tcase_add_test(tcase, test_names_are_text_and_never_markup);
        tcase_add_test(tcase, test_metrics_that_cannot_be_read_are_told_of);
        tcase_add_loop_test(tcase, test_histograms_are_shown_by_half_and_nearly_all, 0,
                            ARRAY_LEN(histograms));
        tcase_add_loop_test(tcase, test_numbers_are_written_for_a_person, 0, ARRAY_LEN(numbers));
        suite_add_tcase(suite, tcase);
        return suite;
}
