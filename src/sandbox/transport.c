#include "sandbox/transport.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/http_client.h"
#include "base/mem.h"
#include "model/delivery.h"

#define LINE_SIZE 256
#define CONNECT_TIMEOUT_MS 5000L
#define TIMEOUT_MS 10000L
#define IDLE_CONNECTIONS_MAX 1000L

struct transport_request {
        LIST_ENTRY(transport_request) entry;
        struct transport *transport;
        struct http_client_transfer transfer;
        transport_done *done;
        void *arg;
};

struct transport {
        struct event_base *base;
        CURLM *multi;
        struct event *timer;
        const char *ca_file;
        LIST_HEAD(requests, transport_request) requests;
};

void
transport_cancel(struct transport_request *request)
{
        LIST_REMOVE(request, entry);
        (void)curl_multi_remove_handle(request->transport->multi, request->transfer.easy);
        http_client_release(&request->transfer);
        free(request);
}

static void
finish(struct transport_request *request, CURLcode code)
{
        struct transport_request copy = *request;
        char *reason = copy.transfer.reason;
        struct transport_result result = {0, reason[0] != '\0' ? reason : curl_easy_strerror(code)};
        long status = 0;

        for (char *c = reason; *c != '\0'; c++) {
                if (*c < ' ' || *c > '~')
                        *c = '?'; /* it may quote the name in the receiver's certificate */
        }
        if (code == CURLE_OK)
                (void)curl_easy_getinfo(request->transfer.easy, CURLINFO_RESPONSE_CODE, &status);
        result.status = (int)status;
        transport_cancel(request);
        copy.done(&result, copy.arg);
}

static void
finish_completed(struct transport *transport)
{
        CURLMsg *message;
        int n_left;

        while ((message = curl_multi_info_read(transport->multi, &n_left)) != NULL) {
                char *private = NULL;

                if (message->msg != CURLMSG_DONE)
                        continue;
                (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
                finish((struct transport_request *)(void *)private, message->data.result);
        }
}

static void
on_socket_ready(evutil_socket_t fd, short what, void *arg)
{
        struct transport *transport = arg;
        int n_running, action = 0;

        if (what & EV_READ)
                action |= CURL_CSELECT_IN;
        if (what & EV_WRITE)
                action |= CURL_CSELECT_OUT;
        (void)curl_multi_socket_action(transport->multi, fd, action, &n_running);
        finish_completed(transport);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
        struct transport *transport = arg;
        int n_running;

        (void)fd;
        (void)what;
        (void)curl_multi_socket_action(transport->multi, CURL_SOCKET_TIMEOUT, 0, &n_running);
        finish_completed(transport);
}

/* libcurl wants to wait for a socket, or no longer does. */
static int
on_socket_change(CURL *easy, curl_socket_t fd, int wanted, void *arg, void *event_arg)
{
        struct transport *transport = arg;
        struct event *event = event_arg;
        int what = EV_PERSIST;

        (void)easy;
        if (event != NULL)
                event_free(event);
        (void)curl_multi_assign(transport->multi, fd, NULL);
        if (wanted == CURL_POLL_REMOVE)
                return 0;
        if (wanted & CURL_POLL_IN)
                what |= EV_READ;
        if (wanted & CURL_POLL_OUT)
                what |= EV_WRITE;
        event = event_new(transport->base, fd, (short)what, on_socket_ready, transport);
        if (event == NULL || event_add(event, NULL) != 0)
                return -1;
        (void)curl_multi_assign(transport->multi, fd, event);
        return 0;
}

static int
on_timer_change(CURLM *multi, long ms, void *arg)
{
        struct transport *transport = arg;
        const struct timeval in = {ms / 1000, ms % 1000 * 1000};

        (void)multi;
        return ms < 0 ? evtimer_del(transport->timer) : evtimer_add(transport->timer, &in);
}

struct transport *
transport_new(struct event_base *base, const char *ca_file)
{
        struct transport *transport = mem_alloc(sizeof(*transport));

        LIST_INIT(&transport->requests);
        transport->base = base;
        transport->ca_file = ca_file;
        transport->multi = curl_multi_init();
        transport->timer = evtimer_new(base, on_timer, transport);
        if (transport->multi == NULL || transport->timer == NULL)
                mem_exit();
        (void)curl_multi_setopt(transport->multi, CURLMOPT_SOCKETFUNCTION, on_socket_change);
        (void)curl_multi_setopt(transport->multi, CURLMOPT_SOCKETDATA, transport);
        (void)curl_multi_setopt(transport->multi, CURLMOPT_TIMERFUNCTION, on_timer_change);
        (void)curl_multi_setopt(transport->multi, CURLMOPT_TIMERDATA, transport);
        (void)curl_multi_setopt(transport->multi, CURLMOPT_MAXCONNECTS, IDLE_CONNECTIONS_MAX);
        return transport;
}

void
transport_free(struct transport *transport)
{
        struct transport_request *request;

        if (transport == NULL)
                return;
        while ((request = LIST_FIRST(&transport->requests)) != NULL)
                transport_cancel(request);
        (void)curl_multi_cleanup(transport->multi);
        event_free(transport->timer);
        free(transport);
}

/* Sign the delivery, and write its four headers. */
static int
write_headers(const struct transport_attempt *attempt, char lines[DELIVERY_N_HEADERS][LINE_SIZE])
{
        char timestamp[24], text[SIGNATURE_HEADER_LEN + 1];
        const char *const values[DELIVERY_N_HEADERS] = {[DELIVERY_SIGNATURE] = text,
                                                        [DELIVERY_TIMESTAMP] = timestamp,
                                                        [DELIVERY_WEBHOOK_ID] = attempt->webhook_id,
                                                        [DELIVERY_ID] = attempt->delivery_id};
        uint8_t signature[SIGNATURE_SIZE];

        (void)snprintf(timestamp, sizeof(timestamp), "%010" PRId64, attempt->timestamp);
        if (signature_compute(attempt->key, timestamp, attempt->body, attempt->len, signature) != 0)
                return -1;
        signature_format(signature, text);
        for (size_t i = 0; i < DELIVERY_N_HEADERS; i++)
                (void)snprintf(lines[i], LINE_SIZE, "x-%s-%s: %s", attempt->service,
                               delivery_header_suffix((enum delivery_header)i), values[i]);
        return 0;
}

static int
prepare(struct transport_request *request, const struct transport_attempt *attempt)
{
        char lines[DELIVERY_N_HEADERS][LINE_SIZE];
        const char *const headers[DELIVERY_N_HEADERS] = {lines[0], lines[1], lines[2], lines[3]};
        const struct http_client_request http = {.method = "POST",
                                                 .url = attempt->url,
                                                 .ca_file = request->transport->ca_file,
                                                 .headers = headers,
                                                 .n_headers = DELIVERY_N_HEADERS,
                                                 .body = attempt->body,
                                                 .len = attempt->len,
                                                 .timeout_ms = TIMEOUT_MS};
        CURL *easy;

        if (write_headers(attempt, lines) != 0)
                return -1;
        http_client_prepare(&request->transfer, &http);
        easy = request->transfer.easy;
        (void)curl_easy_setopt(easy, CURLOPT_PRIVATE, request);
        (void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
        (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
        return curl_multi_add_handle(request->transport->multi, easy) == CURLM_OK ? 0 : -1;
}

struct transport_request *
transport_send(struct transport *transport, const struct transport_attempt *attempt, transport_done *done,
               void *arg)
{
        struct transport_request *request = mem_alloc(sizeof(*request));

        *request = (struct transport_request){.transport = transport, .done = done, .arg = arg};
        LIST_INSERT_HEAD(&transport->requests, request, entry);
        if (prepare(request, attempt) == 0)
                return request;
        transport_cancel(request);
        return NULL;
}
