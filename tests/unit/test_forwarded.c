#include <check.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/compiler.h"
#include "http/clients.h"
#include "http/proxy_protocol.h"
#include "suites.h"

static const struct {
        const char *peer, *list, *client;
} forwarded[] = {
    /* from others it is ignored */
    {"203.0.113.5", "198.51.100.1", "203.0.113.5"},
    {"203.0.113.5", "10.0.0.9", "203.0.113.5"},
    /* from a trusted proxy: the address before it */
    {"10.0.0.1", "198.51.100.1", "198.51.100.1"},
    {"10.0.0.1", " 198.51.100.1\t", "198.51.100.1"},
    {"10.0.0.1", "198.51.100.1:4711", "198.51.100.1"},
    {"10.0.0.1", "2001:db8::1", "2001:db8::1"},
    {"10.0.0.1", "[2001:db8::1]", "2001:db8::1"},
    {"10.0.0.1", "[2001:db8::1]:4711", "2001:db8::1"},
    /* entries further left were written by the client, and are not trusted */
    {"10.0.0.1", "127.0.0.1, 198.51.100.1", "198.51.100.1"},
    {"10.0.0.1", "10.0.0.2, 198.51.100.1", "198.51.100.1"},
    /* through several trusted proxies */
    {"10.0.0.1", "198.51.100.1, 10.0.0.2", "198.51.100.1"},
    {"10.0.0.1", "1.1.1.1, 198.51.100.1,10.0.0.2,10.0.0.3", "198.51.100.1"},
    {"2001:db8:a::1", "198.51.100.1", "198.51.100.1"},
    /* only proxies */
    {"10.0.0.1", "10.0.0.2", "10.0.0.2"},
    {"10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"},
    {"10.0.0.1", "", "10.0.0.1"},
    /* not an address: keep the known client */
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

/* The client of a request with X-Forwarded-For, as text. */
static const char *
client_of(const struct http_trust *trust, const struct address *peer, int is_unix, const char *list)
{
        static char text[ADDRESS_TEXT_SIZE];
        struct address client = *peer;

        if (forwarded_trusts(trust, peer, is_unix))
                client = forwarded_client(trust, peer, list, strlen(list));
        return address_format(&client, text);
}

START_TEST(test_client_is_the_rightmost_untrusted_address)
{
        const struct http_trust trust = {networks, ARRAY_LEN(networks), 0};
        struct address peer;

        ck_assert_int_eq(address_parse(forwarded[_i].peer, strlen(forwarded[_i].peer), &peer), 0);
        ck_assert_str_eq(client_of(&trust, &peer, 0, forwarded[_i].list), forwarded[_i].client);
}
END_TEST

START_TEST(test_unix_socket_is_trusted_if_configured)
{
        const struct http_trust trusting = {networks, ARRAY_LEN(networks), 1},
                                other = {networks, ARRAY_LEN(networks), 0};
        const struct address none = {{0}};

        ck_assert_str_eq(client_of(&trusting, &none, 1, "198.51.100.1"), "198.51.100.1");
        ck_assert_str_eq(client_of(&other, &none, 1, "198.51.100.1"), "-");
}
END_TEST

START_TEST(test_missing_address_is_not_treated_as_a_unix_socket)
{
        const struct http_trust trust = {networks, ARRAY_LEN(networks), 1};
        const struct address none = {{0}};

        ck_assert(forwarded_trusts(&trust, &none, 1));
        ck_assert(!forwarded_trusts(&trust, &none, 0));
        ck_assert_str_eq(client_of(&trust, &none, 0, "198.51.100.1"), "-");
}
END_TEST

START_TEST(test_unspecified_address_in_the_list_is_not_trusted)
{
        const struct http_trust trust = {networks, ARRAY_LEN(networks), 1};
        const struct address none = {{0}};

        ck_assert_str_eq(client_of(&trust, &none, 1, "198.51.100.1, ::"), "-");
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

/* The two ends of a connection; the reading end is non-blocking. */
static void
open_pair(int pair[2])
{
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
}

static void
put(int fd, const void *data, size_t len)
{
        ck_assert_int_eq(write(fd, data, len), (ssize_t)len);
}

/* Read a header that arrives `step` bytes at a time. One byte follows it, which must not be read. */
static void
read_in_pieces(struct proxy_header *header, const char *data, size_t len, size_t step)
{
        int pair[2];
        char after;

        memset(header, 0, sizeof(*header));
        open_pair(pair);
        for (size_t at = 0; at < len; at += step) {
                size_t n = len - at < step ? len - at : step;

                ck_assert_int_eq(proxy_header_read(header, pair[0]), 0);
                put(pair[1], data + at, n);
                if (at + n < len)
                        ck_assert_int_eq(proxy_header_read(header, pair[0]), 0);
        }
        put(pair[1], "G", 1);
        ck_assert_int_eq(proxy_header_read(header, pair[0]), 1);
        ck_assert_int_eq(read(pair[0], &after, 1), 1);
        ck_assert_int_eq(after, 'G');
        (void)close(pair[0]);
        (void)close(pair[1]);
}

START_TEST(test_proxy_protocol_header_gives_the_client_address)
{
        static const size_t steps[] = {1, 7, 16, 1000};
        char bytes[PROXY_HEADER_LEN + 64];
        struct address client;
        char text[ADDRESS_TEXT_SIZE];

        memcpy(bytes, headers[_i].head, PROXY_HEADER_LEN);
        memcpy(bytes + PROXY_HEADER_LEN, headers[_i].rest, headers[_i].len);
        for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
                struct proxy_header header;

                read_in_pieces(&header, bytes, PROXY_HEADER_LEN + headers[_i].len, steps[i]);
                ck_assert_uint_eq(header.len, PROXY_HEADER_LEN + headers[_i].len);
                ck_assert_int_eq(proxy_header_client(&header, &client), headers[_i].result);
                if (headers[_i].result == 1)
                        ck_assert_str_eq(address_format(&client, text), headers[_i].client);
        }
}
END_TEST

static const char *const bad_heads[] = {
    "PROXY TCP4 1.2.3",         "\r\n\r\n\0\r\nQUIT\r\x21\x11\0\x0c", SIGNATURE "\x11\x11\0\x0c",
    SIGNATURE "\x22\x11\0\x0c", SIGNATURE "\x21\x11\x08\x01",         SIGNATURE "\x21\x11\xff\xff",
};

START_TEST(test_invalid_proxy_protocol_header_is_refused)
{
        struct proxy_header header = {.len = 0};
        int pair[2];

        open_pair(pair);
        put(pair[1], bad_heads[_i], PROXY_HEADER_LEN);
        ck_assert_int_eq(proxy_header_read(&header, pair[0]), -1);
        (void)close(pair[0]);
        (void)close(pair[1]);
}
END_TEST

START_TEST(test_longest_header_is_read_and_a_truncated_one_refused)
{
        static char longest[PROXY_HEADER_LEN + PROXY_REST_MAX] = SIGNATURE "\x20\0\x08\0";
        struct proxy_header header = {.len = 0};
        int pair[2];

        read_in_pieces(&header, longest, sizeof(longest), 1000);
        memset(&header, 0, sizeof(header));
        open_pair(pair);
        put(pair[1], longest, sizeof(longest) - 1);
        ck_assert_int_eq(proxy_header_read(&header, pair[0]), 0);
        (void)close(pair[1]);
        ck_assert_int_eq(proxy_header_read(&header, pair[0]), -1);
        (void)close(pair[0]);
}
END_TEST

Suite *
suite_forwarded(void)
{
        Suite *suite = suite_create("forwarded");
        TCase *cases = tcase_create("cases");

        tcase_add_checked_fixture(cases, set_up, NULL);
        tcase_add_loop_test(cases, test_client_is_the_rightmost_untrusted_address, 0, ARRAY_LEN(forwarded));
        tcase_add_test(cases, test_unix_socket_is_trusted_if_configured);
        tcase_add_test(cases, test_missing_address_is_not_treated_as_a_unix_socket);
        tcase_add_test(cases, test_unspecified_address_in_the_list_is_not_trusted);
        tcase_add_loop_test(cases, test_proxy_protocol_header_gives_the_client_address, 0,
                            ARRAY_LEN(headers));
        tcase_add_loop_test(cases, test_invalid_proxy_protocol_header_is_refused, 0, ARRAY_LEN(bad_heads));
        tcase_add_test(cases, test_longest_header_is_read_and_a_truncated_one_refused);
        suite_add_tcase(suite, cases);
        return suite;
}
