#include <check.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "http/clients.h"
#include "http/listener.h"
#include "http/request.h"
#include "http/server.h"
#include "suites.h"

#define WITHIN_MS 20000 /* on a busy machine */
#define GET "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
#define END "\xff" /* no answer contains it */

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

/* Clients of a server */

static struct event_base *base;
static struct http_server *server;
static int listener;
static int n_heads; /* that the server has read */

static void
on_head(struct http_request *request, void *arg)
{
        const struct http_error error = {.status = 404, .code = "NOT_FOUND", .message = ""};
        size_t len;

        (void)arg;
        n_heads++;
        if (memcmp(http_request_path(request, &len), "/nothing", 8) == 0)
                http_reply_error(request, &error);
}

static void
on_request(struct http_request *request, void *arg)
{
        (void)arg;
        http_reply(request, 200, NULL, 0, "{}", 2);
}

/* No deadline passes during a test unless it is shortened. */
static struct http_limits
ample_limits(void)
{
        return (struct http_limits){.max_header_bytes = 4096,
                                    .max_headers = 32,
                                    .max_body = 100,
                                    .max_connections = 100,
                                    .header_timeout_ms = 10 * WITHIN_MS,
                                    .request_timeout_ms = 10 * WITHIN_MS,
                                    .idle_timeout_ms = 10 * WITHIN_MS,
                                    .handshake_timeout_ms = 10 * WITHIN_MS,
                                    .handling_timeout_ms = 10 * WITHIN_MS};
}

/* Start a server on the loopback interface. */
static void
serve(const struct http_limits *limits, struct tls *tls)
{
        static const struct http_callbacks callbacks = {.on_head = on_head, .on_request = on_request};
        const struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
        struct error error;

        (void)signal(SIGPIPE, SIG_IGN); /* as the daemon does */
        n_heads = 0;
        base = event_base_new();
        server = http_server_new(base, limits, tls, &callbacks, NULL);
        ck_assert_ptr_nonnull(server);
        listener = listener_open((const struct sockaddr *)&loopback, sizeof(loopback), &error);
        ck_assert_int_ge(listener, 0);
        ck_assert_int_eq(http_server_listen(server, listener), 0);
}

static void
stop(void)
{
        http_server_free(server);
        event_base_free(base);
        listener_close(listener);
}

/* Run the server until a counter has this value. */
static void
await(const int *counter, int value)
{
        int64_t deadline_ms = clock_monotonic_ms() + WITHIN_MS;

        while (*counter != value && clock_monotonic_ms() < deadline_ms)
                (void)event_base_loop(base, EVLOOP_NONBLOCK);
        ck_assert_int_eq(*counter, value);
}

static void
send_text(int fd, const char *text)
{
        ck_assert_int_eq(send(fd, text, strlen(text), 0), (ssize_t)strlen(text));
}

/* Connect, and wait until the server has accepted the connection as its n-th. */
static int
connect_as(size_t n)
{
        int64_t deadline_ms = clock_monotonic_ms() + WITHIN_MS;
        struct sockaddr_in address;
        socklen_t len = sizeof(address);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &len), 0);
        ck_assert_int_eq(connect(fd, (const struct sockaddr *)&address, len), 0);
        while (http_server_n_connections(server) != n && clock_monotonic_ms() < deadline_ms)
                (void)event_base_loop(base, EVLOOP_NONBLOCK);
        ck_assert_uint_eq(http_server_n_connections(server), n);
        return fd;
}

/* Receive all up to the end of the connection, or as long as the text does not contain the last word. */
static const char *
receive(int fd, const char *last)
{
        static char text[4096];
        int64_t deadline_ms = clock_monotonic_ms() + WITHIN_MS;
        size_t len = 0;
        ssize_t n = 1;

        text[0] = '\0';
        while (n != 0 && strstr(text, last) == NULL && clock_monotonic_ms() < deadline_ms) {
                (void)event_base_loop(base, EVLOOP_NONBLOCK);
                n = recv(fd, text + len, sizeof(text) - 1 - len, MSG_DONTWAIT);
                len += n > 0 ? (size_t)n : 0;
                text[len] = '\0';
        }
        ck_assert_msg(n == 0 || strstr(text, last) != NULL, "the server sent nothing more than '%s'", text);
        return text;
}

START_TEST(test_http_1_0_client_gets_no_100_continue)
{
        const struct http_limits limits = ample_limits();
        const char *answer;
        int fd;

        serve(&limits, NULL);
        fd = connect_as(1);
        send_text(fd, "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
        await(&n_heads, 1);
        send_text(fd, "{}");
        answer = receive(fd, END);
        ck_assert_msg(strncmp(answer, "HTTP/1.1 200 OK\r\n", 17) == 0, "%s", answer);
        (void)close(fd);
        stop();
}
END_TEST

/* It need not send the body to learn why it is refused, whatever the reason. */
START_TEST(test_connection_closes_after_refusing_a_body_that_is_too_large)
{
        const struct http_limits limits = ample_limits();
        const char *answer;
        int fd;

        serve(&limits, NULL);
        fd = connect_as(1);
        send_text(fd, "POST /nothing HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n");
        answer = receive(fd, END);
        ck_assert_msg(strncmp(answer, "HTTP/1.1 404 ", 13) == 0, "%s", answer);
        ck_assert_ptr_nonnull(strstr(answer, "\r\nConnection: close\r\n"));
        (void)close(fd);
        stop();
}
END_TEST

/* The first byte of its first request does not make a connection younger than one that has sent nothing. */
START_TEST(test_oldest_connection_makes_room_even_during_its_first_request)
{
        struct http_limits limits = ample_limits();
        int first, second, third, fourth;

        limits.max_connections = 3;
        serve(&limits, NULL);
        first = connect_as(1);
        second = connect_as(2);
        third = connect_as(3);
        send_text(first, "GET ");
        send_text(third, GET);
        (void)receive(third, "{}"); /* so what the first has sent has been read as well */
        fourth = connect_as(3);
        ck_assert_str_eq(receive(first, END), "");
        send_text(second, GET);
        (void)receive(second, "{}");
        (void)close(first);
        (void)close(second);
        (void)close(third);
        (void)close(fourth);
        stop();
}
END_TEST

/* Make a certificate that its own key has signed. */
static struct certificate
make_certificate(void)
{
        struct certificate made = {.leaf = X509_new(),
                                   .chain = sk_X509_new_null(),
                                   .key = EVP_EC_gen("P-256")};

        (void)X509_gmtime_adj(X509_getm_notBefore(made.leaf), 0);
        (void)X509_gmtime_adj(X509_getm_notAfter(made.leaf), 86400);
        ck_assert_int_eq(X509_set_pubkey(made.leaf, made.key), 1);
        ck_assert_int_gt(X509_sign(made.leaf, made.key, EVP_sha256()), 0);
        return made;
}

START_TEST(test_handshake_has_a_deadline_of_its_own)
{
        struct http_limits limits = ample_limits();
        struct certificate certificate = make_certificate();
        struct error error = {.text = ""};
        struct tls *tls = tls_new(&certificate, &error);
        int fd;

        ck_assert_msg(tls != NULL, "%s", error.text);
        limits.handshake_timeout_ms = 50;
        serve(&limits, tls);
        fd = connect_as(1);
        ck_assert_str_eq(receive(fd, END), "");
        (void)close(fd);
        stop();
        tls_free(tls);
        X509_free(certificate.leaf);
        sk_X509_free(certificate.chain);
        EVP_PKEY_free(certificate.key);
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
        cases = tcase_create("server");
        tcase_set_timeout(cases, 60);
        tcase_add_test(cases, test_http_1_0_client_gets_no_100_continue);
        tcase_add_test(cases, test_connection_closes_after_refusing_a_body_that_is_too_large);
        tcase_add_test(cases, test_oldest_connection_makes_room_even_during_its_first_request);
        tcase_add_test(cases, test_handshake_has_a_deadline_of_its_own);
        suite_add_tcase(suite, cases);
        return suite;
}
