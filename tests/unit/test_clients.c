#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "http/clients.h"
#include "suites.h"

static struct address
address(const char *text)
{
        struct address address;

        ck_assert_int_eq(address_parse(text, strlen(text), &address), 0);
        return address;
}

START_TEST(test_connections_are_limited_per_address)
{
        struct clients *clients = clients_new(2, 0);
        struct address one = address("192.0.2.1"), other = address("192.0.2.2");

        ck_assert_int_eq(clients_connect(clients, &one), 0);
        ck_assert_int_eq(clients_connect(clients, &one), 0);
        ck_assert_int_eq(clients_connect(clients, &one), -1);
        ck_assert_int_eq(clients_connect(clients, &other), 0);
        clients_disconnect(clients, &one);
        ck_assert_int_eq(clients_connect(clients, &one), 0);
        ck_assert_int_eq(clients_connect(clients, &one), -1);
        clients_disconnect(clients, &one);
        clients_disconnect(clients, &one);
        clients_disconnect(clients, &other);
        clients_free(clients);
}
END_TEST

START_TEST(test_ipv6_addresses_of_one_64_prefix_count_as_one)
{
        struct clients *clients = clients_new(1, 0);
        struct address one = address("2001:db8:0:1::1"), twin = address("2001:db8:0:1:ffff::2"),
                       other = address("2001:db8:0:2::1");

        ck_assert_int_eq(clients_connect(clients, &one), 0);
        ck_assert_int_eq(clients_connect(clients, &twin), -1);
        ck_assert_int_eq(clients_connect(clients, &other), 0);
        clients_disconnect(clients, &one);
        ck_assert_int_eq(clients_connect(clients, &twin), 0);
        clients_disconnect(clients, &twin);
        clients_disconnect(clients, &other);
        clients_free(clients);
}
END_TEST

START_TEST(test_refusals_are_counted_per_second)
{
        struct clients *clients = clients_new(0, 3);
        struct address one = address("192.0.2.1"), other = address("192.0.2.2");

        for (int i = 0; i < 3; i++) {
                ck_assert(!clients_is_throttled(clients, &one, 5000));
                clients_count_refusal(clients, &one, 5000 + i);
        }
        ck_assert(clients_is_throttled(clients, &one, 5999));
        ck_assert(!clients_is_throttled(clients, &other, 5999));
        ck_assert(!clients_is_throttled(clients, &one, 6000));
        clients_count_refusal(clients, &one, 6000);
        ck_assert(!clients_is_throttled(clients, &one, 6000));
        clients_free(clients);
}
END_TEST

START_TEST(test_refusals_outlive_the_connection)
{
        struct clients *clients = clients_new(5, 1);
        struct address one = address("192.0.2.1");

        ck_assert_int_eq(clients_connect(clients, &one), 0);
        clients_count_refusal(clients, &one, 5000);
        clients_disconnect(clients, &one);
        ck_assert(clients_is_throttled(clients, &one, 5500));
        clients_free(clients);
}
END_TEST

START_TEST(test_without_limits_nothing_is_refused)
{
        struct clients *clients = clients_new(0, 0);
        struct address one = address("192.0.2.1");

        for (int i = 0; i < 1000; i++) {
                ck_assert_int_eq(clients_connect(clients, &one), 0);
                clients_count_refusal(clients, &one, 5000);
                ck_assert(!clients_is_throttled(clients, &one, 5000));
        }
        for (int i = 0; i < 1000; i++)
                clients_disconnect(clients, &one);
        clients_free(clients);
}
END_TEST

START_TEST(test_limits_can_change_while_connections_are_open)
{
        struct clients *clients = clients_new(0, 0);
        struct address one = address("192.0.2.1");

        ck_assert_int_eq(clients_connect(clients, &one), 0);
        ck_assert_int_eq(clients_connect(clients, &one), 0);
        clients_set_limits(clients, 2, 1);
        ck_assert_int_eq(clients_connect(clients, &one), -1);
        clients_count_refusal(clients, &one, 5000);
        ck_assert(clients_is_throttled(clients, &one, 5000));
        clients_disconnect(clients, &one);
        ck_assert_int_eq(clients_connect(clients, &one), 0);
        clients_set_limits(clients, 0, 0);
        ck_assert(!clients_is_throttled(clients, &one, 5000));
        ck_assert_int_eq(clients_connect(clients, &one), 0);
        for (int i = 0; i < 3; i++)
                clients_disconnect(clients, &one);
        clients_set_limits(clients, 1, 0);
        ck_assert_int_eq(clients_connect(clients, &one), 0);
        clients_disconnect(clients, &one);
        clients_free(clients);
}
END_TEST

/* With more addresses than fit, those refused last are kept, and one with a connection is never dropped. */
START_TEST(test_number_of_remembered_addresses_is_limited)
{
        struct clients *clients = clients_new(1, 1);
        struct address connected = address("192.0.2.1"), first = address("10.0.0.0"), last = first;

        ck_assert_int_eq(clients_connect(clients, &connected), 0);
        for (uint32_t i = 0; i < CLIENTS_IDLE_MAX + 10; i++) {
                last.bytes[13] = (uint8_t)(i >> 16);
                last.bytes[14] = (uint8_t)(i >> 8);
                last.bytes[15] = (uint8_t)i;
                clients_count_refusal(clients, &last, 5000);
        }
        ck_assert(!clients_is_throttled(clients, &first, 5000));
        ck_assert(clients_is_throttled(clients, &last, 5000));
        ck_assert_int_eq(clients_connect(clients, &connected), -1);
        clients_disconnect(clients, &connected);
        clients_free(clients);
}
END_TEST

Suite *
suite_clients(void)
{
        Suite *suite = suite_create("clients");
        TCase *cases = tcase_create("cases");

        tcase_add_test(cases, test_connections_are_limited_per_address);
        tcase_add_test(cases, test_ipv6_addresses_of_one_64_prefix_count_as_one);
        tcase_add_test(cases, test_refusals_are_counted_per_second);
        tcase_add_test(cases, test_refusals_outlive_the_connection);
        tcase_add_test(cases, test_without_limits_nothing_is_refused);
        tcase_add_test(cases, test_limits_can_change_while_connections_are_open);
        tcase_add_test(cases, test_number_of_remembered_addresses_is_limited);
        suite_add_tcase(suite, cases);
        return suite;
}
