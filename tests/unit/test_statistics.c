#include <check.h>
#include <stdio.h>
#include <string.h>

#include "kafka/statistics.h"
#include "suites.h"

static struct statistics statistics;

static int
read_text(const char *text)
{
        return statistics_read(&statistics, text, strlen(text));
}

#define BROKER(name, id, source, state) \
        "\"" name "\":{\"name\":\"" name "\",\"nodeid\":" id ",\"source\":\"" source "\",\"state\":\"" state \
        "\",\"rtt\":{\"name\":\"no\",\"nodeid\":7},\"toppars\":{\"a\":{\"state\":\"UP\"}}}"

START_TEST(test_brokers_of_the_cluster_are_up_or_down)
{
        ck_assert_int_eq(
            read_text("{\"name\":\"client\",\"brokers\":{" BROKER("a:1/1", "1", "learned", "UP") "," BROKER(
                "b:2/2", "2", "configured", "CONNECT") "},\"topics\":{\"t\":{\"state\":\"UP\"}}}"),
            0);
        ck_assert_uint_eq(statistics.brokers.n, 2);
        ck_assert_str_eq(statistics.brokers.items[0].name, "a:1/1");
        ck_assert_int_eq(statistics.brokers.items[0].is_up, 1);
        ck_assert_str_eq(statistics.brokers.items[1].name, "b:2/2");
        ck_assert_int_eq(statistics.brokers.items[1].is_up, 0);
}
END_TEST

START_TEST(test_bootstrap_server_counts_only_while_it_is_down)
{
        ck_assert_int_eq(read_text("{\"brokers\":{" BROKER("a:1/bootstrap", "-1", "configured",
                                                           "UP") "," BROKER("b:2/bootstrap", "-1",
                                                                            "configured", "DOWN") "}}"),
                         0);
        ck_assert_uint_eq(statistics.brokers.n, 1);
        ck_assert_str_eq(statistics.brokers.items[0].name, "b:2/bootstrap");
}
END_TEST

START_TEST(test_internal_and_logical_connections_are_no_brokers)
{
        ck_assert_int_eq(read_text("{\"brokers\":{" BROKER(":0/internal", "-1", "internal",
                                                           "INIT") "," BROKER("GroupCoordinator", "-1",
                                                                              "logical", "UP") "}}"),
                         0);
        ck_assert_uint_eq(statistics.brokers.n, 0);
}
END_TEST

START_TEST(test_malformed_statistics_have_no_brokers)
{
        static const char *const texts[] = {"", "{\"brokers\":{" BROKER("a:1/1", "1", "learned", "UP"), "no",
                                            "[[}"};

        for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
                ck_assert_int_eq(read_text(texts[i]), -1);
                ck_assert_uint_eq(statistics.brokers.n, 0);
        }
        ck_assert_int_eq(read_text("{\"brokers\":[1,{\"a\":{\"b\":{}}}]}"), 0);
}
END_TEST

START_TEST(test_excess_brokers_and_long_names_are_truncated)
{
        static char text[65536];
        size_t len = (size_t)sprintf(text, "{\"brokers\":{");

        for (int i = 0; i < STATISTICS_BROKERS_MAX + 5; i++)
                len += (size_t)sprintf(text + len,
                                       "%s\"%d\":{\"nodeid\":%d,\"source\":\"learned\",\"name\":\"%0300d\"}",
                                       i == 0 ? "" : ",", i, i, i);
        (void)sprintf(text + len, "}}");
        ck_assert_int_eq(read_text(text), 0);
        ck_assert_uint_eq(statistics.brokers.n, STATISTICS_BROKERS_MAX);
        ck_assert_uint_eq(strlen(statistics.brokers.items[0].name), STATISTICS_NAME_SIZE - 1);
}
END_TEST

START_TEST(test_totals_are_summed_over_brokers_and_partitions)
{
        ck_assert_int_eq(
            read_text(
                "{\"msg_cnt\":3,\"msg_size\":300,\"tx\":999,\"brokers\":{"
                "\"a:1/1\":{\"name\":\"a:1/1\",\"nodeid\":1,\"source\":\"learned\",\"state\":\"UP\","
                "\"tx\":10,\"txerrs\":1,\"rxerrs\":2,\"req_timeouts\":3,\"txretries\":4,"
                "\"rtt\":{\"min\":1,\"avg\":250,\"tx\":9},\"throttle\":{\"avg\":7},\"req\":{\"tx\":9}},"
                "\"b:2/2\":{\"name\":\"b:2/2\",\"nodeid\":2,\"source\":\"learned\",\"tx\":20,\"txerrs\":-5,"
                "\"throttle\":{\"avg\":7}}},"
                "\"topics\":{\"t\":{\"partitions\":{\"0\":{\"fetchq_cnt\":40,\"fetchq_size\":4000,\"msg_"
                "cnt\":8},"
                "\"1\":{\"fetchq_cnt\":50,\"fetchq_size\":5000}}}}}"),
            0);
        ck_assert_uint_eq(statistics.totals.requests, 30);
        ck_assert_uint_eq(statistics.totals.errors, 3);
        ck_assert_uint_eq(statistics.totals.timeouts, 3);
        ck_assert_uint_eq(statistics.totals.retries, 4);
        ck_assert_uint_eq(statistics.totals.queued_records, 93);
        ck_assert_uint_eq(statistics.totals.queued_bytes, 9300);
        ck_assert_uint_eq(statistics.brokers.items[0].rtt_us, 0);
}
END_TEST

START_TEST(test_round_trips_are_kept_while_the_broker_is_connected)
{
        struct brokers before = {.items = {{"a", 1, 100}, {"b", 1, 200}}, .n = 2};
        struct brokers now = {.items = {{"b", 1, 0}, {"a", 0, 0}, {"c", 1, 0}}, .n = 3};

        statistics_keep_rtt(&now, &before);
        ck_assert_uint_eq(now.items[0].rtt_us, 200);
        ck_assert_uint_eq(now.items[1].rtt_us, 0);
        ck_assert_uint_eq(now.items[2].rtt_us, 0);
}
END_TEST

START_TEST(test_producer_id_is_there_once_it_is_assigned)
{
        ck_assert_int_eq(read_text("{\"eos\":{\"idemp_state\":\"WaitPID\",\"other\":\"Assigned\"}}"), 0);
        ck_assert_int_eq(statistics.has_producer_id, 0);
        ck_assert_int_eq(read_text("{\"eos\": { \"idemp_state\" : \"Assigned\", \"idemp_stateage\":7}}"), 0);
        ck_assert_int_eq(statistics.has_producer_id, 1);
        ck_assert_int_eq(read_text("{\"brokers\":{},\"idemp_state\":\"Assigned\"}"), 0);
        ck_assert_int_eq(statistics.has_producer_id, 0);
}
END_TEST

Suite *
suite_statistics(void)
{
        Suite *suite = suite_create("statistics");
        TCase *tcase = tcase_create("brokers");

        tcase_add_test(tcase, test_brokers_of_the_cluster_are_up_or_down);
        tcase_add_test(tcase, test_bootstrap_server_counts_only_while_it_is_down);
        tcase_add_test(tcase, test_internal_and_logical_connections_are_no_brokers);
        tcase_add_test(tcase, test_malformed_statistics_have_no_brokers);
        tcase_add_test(tcase, test_excess_brokers_and_long_names_are_truncated);
        tcase_add_test(tcase, test_totals_are_summed_over_brokers_and_partitions);
        tcase_add_test(tcase, test_round_trips_are_kept_while_the_broker_is_connected);
        tcase_add_test(tcase, test_producer_id_is_there_once_it_is_assigned);
        suite_add_tcase(suite, tcase);
        return suite;
}
