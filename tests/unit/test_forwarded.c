#include <check.h>
#include <string.h>

#include "base/compiler.h"
#include "http/forwarded.h"
#include "http/proxy_header.h"
#include "suites.h"

static const struct {
        const char *peer, *list, *client;
} forwarded[] = {
    /* from others it is ignored */
    {"203.0.113.5", "198.51.100.1", "203.0.113.5"},
    {"203.0.113.5", "10.0.0.9", "203.0.113.5"},
    /* from a trusted proxy: the one before it */
    {"10.0.0.1", "198.51.100.1", "198.51.100.1"},
    {"10.0.0.1", " 198.51.100.1\t", "198.51.100.1"},
    {"10.0.0.1", "198.51.100.1:4711", "198.51.100.1"},
    {"10.0.0.1", "2001:db8::1", "2001:db8::1"},
    {"10.0.0.1", "[2001:db8::1]", "2001:db8::1"},
    {"10.0.0.1", "[2001:db8::1]:4711", "2001:db8::1"},
    /* what the client itself wrote stands further left, and is not believed */
    {"10.0.0.1", "127.0.0.1, 198.51.100.1", "198.51.100.1"},
    {"10.0.0.1", "10.0.0.2, 198.51.100.1", "198.51.100.1"},
    /* through several trusted proxies */
    {"10.0.0.1", "198.51.100.1, 10.0.0.2", "198.51.100.1"},
    {"10.0.0.1", "1.1.1.1, 198.51.100.1,10.0.0.2,10.0.0.3", "198.51.100.1"},
    {"2001:db8:a::1", "198.51.100.1", "198.51.100.1"},
    /* nobody but proxies */
    {"10.0.0.1", "10.0.0.2", "10.0.0.2"},
    {"10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"},
    {"10.0.0.1", "", "10.0.0.1"},
    /* no address: what is known stands */
    {"10.0.0.1", "unknown", "10.0.0.1"},
    {"10.0.0.1", "198.51.100.1, unknown", "10.0.0.1"},
    {"10.0.0.1", "198.51.100.1, unknown, 10.0.0.2", "10.0.0.2"},
    {"10.0.0.1", "198.51.100.1,,10.0.0.2", "10.0.0.2"},
    {"10.0.0.1", "198.51.100.1,", "10.0.0.1"},
    {"10.0.0.1", "[2001:db8::1", "10.0.0.1"},
    {"10.0.0.1", "1.2.3.4.5", "10.0.0.1"},
};

static struct network networks[2];

static void
set_up(void)
{
        struct error error;

        ck_assert_int_eq(network_parse("10.0.0.0/24", &networks[0], &error), 0);
        ck_assert_int_eq(network_parse("2001:db8:a::/48", &networks[1], &error), 0);
}

START_TEST(test_client_is_the_first_from_the_right_that_is_no_trusted_proxy)
{
        const struct http_trust trust = {networks, ARRAY_LEN(networks), 0};
        const char *list = forwarded[_i].list;
        struct address peer, client;
        char text[ADDRESS_TEXT_SIZE];

        ck_assert_int_eq(address_parse(forwarded[_i].peer, strlen(forwarded[_i].peer), &peer), 0);
        client = forwarded_client(&trust, &peer, list, strlen(list));
        ck_assert_str_eq(address_format(&client, text), forwarded[_i].client);
}
END_TEST

START_TEST(test_unix_socket_is_trusted_when_told_so)
{
        const struct http_trust trusting = {networks, ARRAY_LEN(networks), 1},
                                other = {networks, ARRAY_LEN(networks), 0};
        const struct address none = {{0}};
        struct address client = forwarded_client(&trusting, &none, "198.51.100.1", 12);
        char text[ADDRESS_TEXT_SIZE];

        ck_assert_str_eq(address_format(&client, text), "198.51.100.1");
        client = forwarded_client(&other, &none, "198.51.100.1", 12);
        ck_assert(address_is_none(&client));
}
END_TEST

/* The PROXY protocol's header: 12 bytes of signature, version and command, family and protocol, length. */
#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define IPV4_PART \
        "\xc6\x33\x64\x01" \
        "\x0a\x00\x00\x01" \
        "\x12\x67\x01\xbb"
#define IPV6_PART \
        "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01" \
        "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x02" \
        "\x12\x67" \
        "\x01\xbb"

static const struct {
        const char *head, *rest;
        size_t len;
        int result;
        const char *client;
} headers[] = {
    {SIGNATURE "\x21\x11\0\x0c", IPV4_PART, 12, 1, "198.51.100.1"},
    {SIGNATURE "\x21\x11\0\x10", IPV4_PART "\x04\0\x01x", 16, 1, "198.51.100.1"}, /* with a TLV */
    {SIGNATURE "\x21\x21\0\x24", IPV6_PART, 36, 1, "2001:db8::1"},
    {SIGNATURE "\x20\0\0\0", "", 0, 0, NULL}, /* LOCAL: the proxy itself */
    {SIGNATURE "\x20\x11\0\x0c", IPV4_PART, 12, 0, NULL},
    {SIGNATURE "\x21\0\0\0", "", 0, 0, NULL},              /* UNSPEC */
    {SIGNATURE "\x21\x12\0\x0c", IPV4_PART, 12, 0, NULL},  /* UDP */
    {SIGNATURE "\x21\x11\0\x0b", IPV4_PART, 11, -1, NULL}, /* too short for its family */
    {SIGNATURE "\x21\x21\0\x0c", IPV4_PART, 12, -1, NULL},
};

START_TEST(test_header_of_the_proxy_protocol_tells_the_client)
{
        const uint8_t *head = (const uint8_t *)headers[_i].head, *rest = (const uint8_t *)headers[_i].rest;
        struct address client;
        char text[ADDRESS_TEXT_SIZE];
        size_t len;

        ck_assert_int_eq(proxy_header_rest(head, &len), 0);
        ck_assert_uint_eq(len, headers[_i].len);
        ck_assert_int_eq(proxy_header_client(head, rest, len, &client), headers[_i].result);
        if (headers[_i].result == 1)
                ck_assert_str_eq(address_format(&client, text), headers[_i].client);
}
END_TEST

static const char *const bad_heads[] = {
    "PROXY TCP4 1.2.3",         "\r\n\r\n\0\r\nQUIT\r\x21\x11\0\x0c", SIGNATURE "\x11\x11\0\x0c",
    SIGNATURE "\x22\x11\0\x0c", SIGNATURE "\x21\x11\x08\x01",         SIGNATURE "\x21\x11\xff\xff",
};

START_TEST(test_other_beginnings_are_refused)
{
        size_t len;

        ck_assert_int_eq(proxy_header_rest((const uint8_t *)bad_heads[_i], &len), -1);
}
END_TEST

Suite *
suite_forwarded(void)
{
        Suite *suite = suite_create("forwarded");
        TCase *cases = tcase_create("cases");

        tcase_add_checked_fixture(cases, set_up, NULL);
        tcase_add_loop_test(cases, test_client_is_the_first_from_the_right_that_is_no_trusted_proxy, 0,
                            ARRAY_LEN(forwarded));
        tcase_add_test(cases, test_unix_socket_is_trusted_when_told_so);
        tcase_add_loop_test(cases, test_header_of_the_proxy_protocol_tells_the_client, 0, ARRAY_LEN(headers));
        tcase_add_loop_test(cases, test_other_beginnings_are_refused, 0, ARRAY_LEN(bad_heads));
        suite_add_tcase(suite, cases);
        return suite;
}
