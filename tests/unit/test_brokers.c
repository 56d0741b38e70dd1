#include <check.h>
#include <stdio.h>
#include <string.h>

#include "kafka/brokers.h"
#include "suites.h"

static struct brokers brokers;

static int
read_text(const char *text)
{
        return brokers_read(&brokers, text, strlen(text));
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
        ck_assert_uint_eq(brokers.n, 2);
        ck_assert_str_eq(brokers.items[0].name, "a:1/1");
        ck_assert_int_eq(brokers.items[0].is_up, 1);
        ck_assert_str_eq(brokers.items[1].name, "b:2/2");
        ck_assert_int_eq(brokers.items[1].is_up, 0);
}
END_TEST

START_TEST(test_bootstrap_server_counts_only_while_it_is_down)
{
        ck_assert_int_eq(read_text("{\"brokers\":{" BROKER("a:1/bootstrap", "-1", "configured",
                                                           "UP") "," BROKER("b:2/bootstrap", "-1",
                                                                            "configured", "DOWN") "}}"),
                         0);
        ck_assert_uint_eq(brokers.n, 1);
        ck_assert_str_eq(brokers.items[0].name, "b:2/bootstrap");
}
END_TEST

START_TEST(test_connections_of_the_client_itself_are_no_brokers)
{
        ck_assert_int_eq(read_text("{\"brokers\":{" BROKER(":0/internal", "-1", "internal",
                                                           "INIT") "," BROKER("GroupCoordinator", "-1",
                                                                              "logical", "UP") "}}"),
                         0);
        ck_assert_uint_eq(brokers.n, 0);
}
END_TEST

START_TEST(test_what_is_no_statistics_has_none)
{
        static const char *const texts[] = {"", "{\"brokers\":{" BROKER("a:1/1", "1", "learned", "UP"), "no",
                                            "[[}"};

        for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
                ck_assert_int_eq(read_text(texts[i]), -1);
                ck_assert_uint_eq(brokers.n, 0);
        }
        ck_assert_int_eq(read_text("{\"brokers\":[1,{\"a\":{\"b\":{}}}]}"), 0);
}
END_TEST

START_TEST(test_more_and_longer_ones_than_there_is_room_for_are_cut)
{
        static char text[65536];
        size_t len = (size_t)sprintf(text, "{\"brokers\":{");

        for (int i = 0; i < BROKERS_MAX + 5; i++)
                len += (size_t)sprintf(text + len,
                                       "%s\"%d\":{\"nodeid\":%d,\"source\":\"learned\",\"name\":\"%0300d\"}",
                                       i == 0 ? "" : ",", i, i, i);
        (void)sprintf(text + len, "}}");
        ck_assert_int_eq(read_text(text), 0);
        ck_assert_uint_eq(brokers.n, BROKERS_MAX);
        ck_assert_uint_eq(strlen(brokers.items[0].name), BROKERS_NAME_SIZE - 1);
}
END_TEST

Suite *
suite_brokers(void)
{
        Suite *suite = suite_create("brokers");
        TCase *tcase = tcase_create("brokers");

        tcase_add_test(tcase, test_brokers_of_the_cluster_are_up_or_down);
        tcase_add_test(tcase, test_bootstrap_server_counts_only_while_it_is_down);
        tcase_add_test(tcase, test_connections_of_the_client_itself_are_no_brokers);
        tcase_add_test(tcase, test_what_is_no_statistics_has_none);
        tcase_add_test(tcase, test_more_and_longer_ones_than_there_is_room_for_are_cut);
        suite_add_tcase(suite, tcase);
        return suite;
}
