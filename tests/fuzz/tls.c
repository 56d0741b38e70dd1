/*
 * TLS connections. The fuzzer chooses which records share a segment, when clients send close_notify, close or
 * reset, when requests are answered, when limits and the certificate change, and when the server is freed. A
 * handler gets only messages that framing finds in the plaintext; at the end, no connection and no byte of a
 * body is left.
 */
#include <signal.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include <event2/event.h>
#include <openssl/x509.h>

#include "choices.h"
#include "http/request.h"
#include "http/server.h"
#include "tls_client.h"
#include "transcript.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define N_CLIENTS 3
#define N_STEPS_MAX 80
#define N_LITERAL_MAX 800 /* bytes; at most 45 requests */
#define N_WAITS_MAX 2
#define LONG_REPLY 400000 /* exceeds a socket's send buffer */

static const struct framing_limits framing_limits = {.max_header_bytes = 12000,
                                                     .max_headers = 8,
                                                     .max_body = 20000};

/* These exist as long as the process. */
static SSL_CTX *contexts[2]; /* of clients: TLS 1.2 and 1.3 */
static struct certificate certificate;
static char filler[5000];
static char reply[LONG_REPLY];

/* The server and the clients of one input, and the requests that the handler got. */
static struct event_base *base;
static struct tls *tls;
static struct http_server *server;
static struct http_limits limits;
static struct memory_budget *budget;
static struct connection_stats stats;
static struct sockaddr_un address;
static socklen_t address_len;
static struct tls_client clients[N_CLIENTS];
static struct transcript handled;
static struct http_request *waiting[TRANSCRIPT_MAX]; /* for their answers */
static size_t n_waiting;
static int answers_at_once;
static unsigned early; /* see on_head() and on_complete() */
static size_t n_begun; /* requests whose header section is complete */

static void
make_certificate(void)
{
        X509 *leaf = X509_new();

        certificate.key = EVP_EC_gen("P-256");
        certificate.chain = sk_X509_new_null();
        MUST(leaf != NULL && certificate.key != NULL && certificate.chain != NULL);
        MUST(X509_set_version(leaf, X509_VERSION_3) == 1 && X509_set_pubkey(leaf, certificate.key) == 1);
        MUST(X509_gmtime_adj(X509_getm_notBefore(leaf), 0) != NULL);
        MUST(X509_gmtime_adj(X509_getm_notAfter(leaf), 86400) != NULL);
        MUST(X509_sign(leaf, certificate.key, EVP_sha256()) > 0);
        certificate.leaf = leaf;
}

static void
start_process(void)
{
        static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

        (void)signal(SIGPIPE, SIG_IGN); /* as the daemon does */
        make_certificate();
        memset(filler, 'a', sizeof(filler));
        memset(reply, 'r', sizeof(reply));
        for (size_t i = 0; i < 2; i++) {
                contexts[i] = SSL_CTX_new(TLS_client_method());
                MUST(contexts[i] != NULL && SSL_CTX_set_min_proto_version(contexts[i], versions[i]) == 1 &&
                     SSL_CTX_set_max_proto_version(contexts[i], versions[i]) == 1);
        }
}

/* The server. */

static void
answer(struct http_request *request, size_t len)
{
        http_request_forget(request);
        http_reply(request, 200, NULL, 0, reply, len);
}

static void
refuse(struct http_request *request)
{
        static const struct http_violation violation = {"field", "is \"wrong\""};
        static const struct http_error error = {422, "UNPROCESSABLE", "refused", &violation, 1};

        http_reply_error(request, &error);
}

/* Depending on two bits of `early`, answer every third request, and declare every second body optional. */
static void
on_head(struct http_request *request, void *arg)
{
        (void)arg;
        n_begun++;
        if ((early & 1) && n_begun % 3 == 0)
                refuse(request);
        else if ((early & 2) && n_begun % 2 == 0)
                http_request_make_body_optional(request);
}

/* Depending on another bit, answer every fourth request; always answer a request whose body was discarded. */
static void
on_complete(struct http_request *request, void *arg)
{
        size_t len;

        (void)arg;
        if (http_request_body(request, &len) == NULL || ((early & 4) && n_begun % 4 == 0))
                refuse(request);
}

static void
on_request(struct http_request *request, void *arg)
{
        (void)arg;
        transcript_take(&handled, request);
        if (answers_at_once)
                answer(request, 2);
        else
                waiting[n_waiting++] = request;
}

static void
turn(void)
{
        for (int i = 0; i < 3; i++)
                (void)event_base_loop(base, EVLOOP_NONBLOCK);
}

static void
start_server(struct choices *choices)
{
        static const struct http_callbacks callbacks = {.on_head = on_head,
                                                        .on_complete = on_complete,
                                                        .on_request = on_request};
        static const size_t max_connections[] = {64, 1, 2}, budgets[] = {1 << 20, 20000, 30000};
        struct error error;
        unsigned modes;
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

        address.sun_family = AF_UNIX; /* without a name: the kernel assigns an abstract one */
        address_len = sizeof(address);
        MUST(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(sa_family_t)) == 0);
        MUST(listen(fd, 16) == 0 && getsockname(fd, (struct sockaddr *)&address, &address_len) == 0);
        memset(&stats, 0, sizeof(stats));
        limits = (struct http_limits){.max_header_bytes = framing_limits.max_header_bytes,
                                      .max_headers = framing_limits.max_headers,
                                      .max_body = framing_limits.max_body,
                                      .max_connections = CHOOSE(choices, max_connections),
                                      .header_timeout_ms = 3600000,
                                      .request_timeout_ms = 7200000,
                                      .idle_timeout_ms = 3600000,
                                      .handshake_timeout_ms = 3600000,
                                      .handling_timeout_ms = 3600000,
                                      .stats = &stats};
        budget = memory_budget_new(CHOOSE(choices, budgets));
        MUST(budget != NULL);
        limits.budget = budget;
        modes = choose(choices, 32);
        limits.trust.unix_sockets = modes % 2;
        limits.requires_proxy = modes / 2 % 2;
        early = modes / 4;
        n_begun = 0;
        base = event_base_new();
        tls = tls_new(&certificate, &error);
        MUST(base != NULL && tls != NULL);
        server = http_server_new(base, &limits, tls, &callbacks, NULL);
        MUST(server != NULL && http_server_listen(server, fd) == 0);
        (void)close(fd);
}

/* Set fewer connections and shorter deadlines, which expire while the server is idle. */
static void
hurry(void)
{
        limits.header_timeout_ms = limits.request_timeout_ms = limits.idle_timeout_ms = 1;
        limits.handshake_timeout_ms = limits.handling_timeout_ms = 1;
        limits.max_connections = 1;
        http_server_set_limits(server, &limits);
        turn();
        (void)usleep(1500);
        turn();
}

static void
replace_certificate(void)
{
        struct error error;

        MUST(tls_replace(tls, &certificate, &error) == 0);
}

static void
answer_first(size_t len)
{
        struct http_request *first = waiting[0];

        if (n_waiting == 0)
                return;
        memmove(waiting, waiting + 1, --n_waiting * sizeof(waiting[0]));
        answer(first, len);
}

/* The clients. */

/* Send a PROXY header before TLS, in some cases. */
static void
put_proxy_header(struct tls_client *client, unsigned which)
{
        static const char proxied[] =
            "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x7f\0\0\x02\x7f\0\0\x01\0\x01\0\x02";

        if (which == 0)
                return;
        tls_client_put_raw(client, proxied, which == 1 ? sizeof(proxied) - 1 : which % (sizeof(proxied) - 1));
        tls_client_send(client, SIZE_MAX, 0);
        turn();
}

/* Connect, and do a part of the handshake that the fuzzer chooses. */
static void
open_client(struct tls_client *client, struct choices *choices)
{
        SSL_CTX *context = CHOOSE(choices, contexts);
        unsigned how = choose(choices, 16), n_flights = how < 8 ? 8 : how % 4;

        if (tls_client_open(client, context, (struct sockaddr *)&address, address_len) != 0)
                return;
        put_proxy_header(client, choose(choices, 8));
        turn();
        for (unsigned i = 0; i < n_flights && !tls_client_handshake(client); i++) {
                tls_client_send(client, SIZE_MAX, 0);
                turn();
                tls_client_receive(client);
        }
        tls_client_send(client, how == 15 ? 20 : SIZE_MAX, 0);
        turn();
}

static void
write_piece(struct tls_client *client, unsigned which)
{
        static const char *const pieces[] = {
            "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
            "POST /b HTTP/1.1\r\nHost: b\r\nContent-Length: 10010\r\n\r\n",
            "POST /c HTTP/1.1\r\nHost: c\r\nTransfer-Encoding: chunked\r\n\r\n",
            "1388\r\n", /* size of the filler */
            "\r\n",
            "0\r\n\r\n",
            "GET /d HTTP/1.1\r\nHost: d\r\nX-Long: ",
            "GET /e HTTP/1.1\r\nHost: e\r\nConnection: close\r\n\r\n",
            "POST /f HTTP/1.1\r\nHost: f\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n",
            "wrong\r\n\r\n",
        };

        if (which == 0)
                tls_client_write(client, filler, sizeof(filler));
        else
                tls_client_write(client, pieces[which - 1], strlen(pieces[which - 1]));
}

static void
write_literal(struct tls_client *client, struct choices *choices, size_t *n_literal)
{
        size_t len = choose(choices, 100);

        len = len < choices->len ? len : choices->len;
        if (*n_literal + len > N_LITERAL_MAX)
                return;
        *n_literal += len;
        tls_client_write(client, choices->data, len);
        choices->data += len;
        choices->len -= len;
}

/* Do one step of a client. */
static void
step_client(struct tls_client *client, struct choices *choices, size_t *n_literal)
{
        static const char alert[] = "\x15\x03\x03\0\x02\x02\x28";

        switch (choose(choices, 12)) {
        case 0:
        case 1:
        case 2:
                write_piece(client, choose(choices, 11));
                break;
        case 3:
                write_literal(client, choices, n_literal);
                break;
        case 4:
        case 5:
                tls_client_send(client, SIZE_MAX, choose(choices, 32) == 31 ? choose(choices, 256) : 0);
                turn();
                break;
        case 6:
                tls_client_send(client, choose(choices, 256), 0);
                turn();
                break;
        case 7:
                tls_client_close_notify(client);
                break;
        case 8:
                (void)shutdown(client->fd, choose(choices, 2) ? SHUT_WR : SHUT_RDWR);
                break;
        case 9:
                tls_client_rekey(client);
                break;
        case 10:
                tls_client_put_raw(client, alert, sizeof(alert) - 1);
                break;
        default:
                tls_client_hang_up(client);
                break;
        }
}

/* Do one step of the server or of a client. */
static void
step(struct choices *choices, size_t *n_literal, size_t *n_waits)
{
        struct tls_client *client = &clients[choose(choices, 8) % N_CLIENTS];

        switch (choose(choices, 16)) {
        case 0:
                turn();
                break;
        case 1:
                answer_first(choose(choices, 4) == 3 ? LONG_REPLY : 2);
                break;
        case 2:
                answers_at_once = !answers_at_once;
                break;
        case 3:
                replace_certificate();
                break;
        case 4:
                if ((*n_waits)++ < N_WAITS_MAX)
                        hurry();
                break;
        case 5:
                if (client->session != NULL)
                        tls_client_receive(client);
                break;
        default:
                if (client->session == NULL)
                        open_client(client, choices);
                else
                        step_client(client, choices, n_literal);
        }
}

/* The final checks. */

/* Check that framing finds every message that the handler got. */
static void
check_handled(void)
{
        struct transcript framed[N_CLIENTS];

        for (size_t c = 0; c < N_CLIENTS; c++) {
                const char *written = clients[c].n_written == 0 ? "" : clients[c].written;

                transcript_of_framing(&framing_limits, (const uint8_t *)written, clients[c].n_written,
                                      SIZE_MAX, &framed[c]);
        }
        for (size_t i = 0; i < handled.n; i++) {
                int found = 0;

                for (size_t c = 0; c < N_CLIENTS; c++) {
                        for (size_t m = 0; m < framed[c].n; m++)
                                found |= framed[c].messages[m].len == handled.messages[i].len &&
                                         memcmp(framed[c].messages[m].text, handled.messages[i].text,
                                                handled.messages[i].len) == 0;
                }
                MUST(found);
        }
        for (size_t c = 0; c < N_CLIENTS; c++)
                transcript_clear(&framed[c]);
}

static void
finish(int leaves_open)
{
        answers_at_once = 1;
        for (size_t i = 0; i < 2 * TRANSCRIPT_MAX && !leaves_open; i++) {
                answer_first(2);
                for (size_t c = 0; c < N_CLIENTS; c++)
                        tls_client_hang_up(&clients[c]);
                turn();
                if (n_waiting == 0 && http_server_n_connections(server) == 0)
                        break;
        }
        MUST(leaves_open || http_server_n_connections(server) == 0);
        while (n_waiting > 0)
                answer_first(2);
        http_server_free(server);
        tls_free(tls);
        event_base_free(base);
        MUST(memory_budget_used(budget) == 0 && connection_stats_open(&stats) == 0);
        memory_budget_free(budget);
        check_handled();
        transcript_clear(&handled);
        for (size_t c = 0; c < N_CLIENTS; c++)
                tls_client_clear(&clients[c]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
        struct choices choices = {data, len};
        size_t n_literal = 0, n_waits = 0;
        int leaves_open;

        if (contexts[0] == NULL)
                start_process();
        for (size_t c = 0; c < N_CLIENTS; c++)
                clients[c].fd = -1;
        leaves_open = choose(&choices, 4) == 3;
        answers_at_once = choose(&choices, 2) == 0;
        start_server(&choices);
        for (size_t i = 0; i < N_STEPS_MAX && choices.len > 0; i++)
                step(&choices, &n_literal, &n_waits);
        finish(leaves_open);
        return 0;
}
