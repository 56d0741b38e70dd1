#include <arpa/inet.h>
#include <check.h>
#include <string.h>
#include <sys/un.h>

#include "base/address.h"
#include "base/compiler.h"
#include "suites.h"

static struct address
parsed(const char *text)
{
        struct address address;

        ck_assert_int_eq(address_parse(text, strlen(text), &address), 0);
        return address;
}

START_TEST(test_address_is_formatted_as_parsed)
{
        static const char *const texts[] = {
            "192.0.2.1",   "0.0.0.0", "255.255.255.255",
            "2001:db8::1", "::1",     "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"};

        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                struct address address = parsed(texts[i]);
                char text[ADDRESS_TEXT_SIZE];

                ck_assert_str_eq(address_format(&address, text), texts[i]);
        }
}
END_TEST

START_TEST(test_ipv4_mapped_address_equals_the_ipv4_address)
{
        struct address one = parsed("::ffff:192.0.2.1"), other = parsed("192.0.2.1");

        ck_assert_mem_eq(&one, &other, sizeof(one));
}
END_TEST

START_TEST(test_invalid_address_is_refused)
{
        static const char *const texts[] = {"",          "1.2.3",
                                            "1.2.3.4.5", "256.1.1.1",
                                            "1.2.3.4 ",  "fe80::1%eth0",
                                            "localhost", ":",
                                            "1::2::3",   "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff:ffff"};
        struct address address;

        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
                ck_assert_int_eq(address_parse(texts[i], strlen(texts[i]), &address), -1);
        ck_assert_int_eq(address_parse("1.2.3.4\0x", 9, &address), -1);
}
END_TEST

START_TEST(test_unix_socket_has_no_address)
{
        const struct sockaddr_un from = {.sun_family = AF_UNIX};
        struct address address;
        char text[ADDRESS_TEXT_SIZE];

        address_from_socket((const struct sockaddr *)&from, &address);
        ck_assert(address_is_none(&address));
        ck_assert_str_eq(address_format(&address, text), "-");
}
END_TEST

START_TEST(test_address_is_taken_from_a_socket)
{
        struct sockaddr_in in = {.sin_family = AF_INET};
        struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
        struct address address, wanted = parsed("192.0.2.7");

        ck_assert_int_eq(inet_pton(AF_INET, "192.0.2.7", &in.sin_addr), 1);
        address_from_socket((const struct sockaddr *)&in, &address);
        ck_assert_mem_eq(&address, &wanted, sizeof(wanted));
        ck_assert_int_eq(inet_pton(AF_INET6, "2001:db8::7", &in6.sin6_addr), 1);
        wanted = parsed("2001:db8::7");
        address_from_socket((const struct sockaddr *)&in6, &address);
        ck_assert_mem_eq(&address, &wanted, sizeof(wanted));
}
END_TEST

static const struct {
        const char *network, *address;
        int contains;
} memberships[] = {
    {"192.0.2.0/24", "192.0.2.0", 1},
    {"192.0.2.0/24", "192.0.2.255", 1},
    {"192.0.2.0/24", "192.0.3.0", 0},
    {"192.0.2.1", "192.0.2.1", 1},
    {"192.0.2.1", "192.0.2.2", 0},
    {"192.0.2.128/25", "192.0.2.127", 0},
    {"192.0.2.128/25", "192.0.2.129", 1},
    {"0.0.0.0/0", "203.0.113.9", 1},
    {"0.0.0.0/0", "2001:db8::1", 0},
    {"::/0", "2001:db8::1", 1},
    {"::/0", "192.0.2.1", 1},
    {"2001:db8::/32", "2001:db8:1::1", 1},
    {"2001:db8::/32", "2001:db9::1", 0},
    {"2001:db8::/127", "2001:db8::1", 1},
    {"2001:db8::/127", "2001:db8::2", 0},
    {"2001:db8::1/128", "2001:db8::1", 1},
    {"10.0.0.0/8", "::ffff:10.1.2.3", 1},
};

START_TEST(test_network_contains_its_addresses_only)
{
        struct address address = parsed(memberships[_i].address);
        struct network network;
        struct error error;

        ck_assert_int_eq(network_parse(memberships[_i].network, &network, &error), 0);
        ck_assert_int_eq(network_contains(&network, &address), memberships[_i].contains);
}
END_TEST

static const struct {
        const char *text, *message;
} bad_networks[] = {
    {"", "is not an address"},
    {"proxy.example", "write 192.0.2.1"},
    {"192.0.2.1/24", "write 192.0.2.0/24"},
    {"2001:db8::1/32", "write 2001:db8::/32"},
    {"192.0.2.0/33", "prefix length"},
    {"192.0.2.0/", "prefix length"},
    {"192.0.2.0/-1", "prefix length"},
    {"192.0.2.0/24x", "prefix length"},
    {"2001:db8::/129", "prefix length"},
};

START_TEST(test_invalid_network_is_refused_with_the_remedy)
{
        struct network network;
        struct error error;

        ck_assert_int_eq(network_parse(bad_networks[_i].text, &network, &error), -1);
        ck_assert_msg(strstr(error.text, bad_networks[_i].message) != NULL, "%s", error.text);
}
END_TEST

Suite *
suite_address(void)
{
        Suite *suite = suite_create("address");
        TCase *cases = tcase_create("cases");

        tcase_add_test(cases, test_address_is_formatted_as_parsed);
        tcase_add_test(cases, test_ipv4_mapped_address_equals_the_ipv4_address);
        tcase_add_test(cases, test_invalid_address_is_refused);
        tcase_add_test(cases, test_unix_socket_has_no_address);
        tcase_add_test(cases, test_address_is_taken_from_a_socket);
        tcase_add_loop_test(cases, test_network_contains_its_addresses_only, 0, ARRAY_LEN(memberships));
        tcase_add_loop_test(cases, test_invalid_network_is_refused_with_the_remedy, 0,
                            ARRAY_LEN(bad_networks));
        suite_add_tcase(suite, cases);
        return suite;
}
