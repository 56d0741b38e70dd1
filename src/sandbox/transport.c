#include "sandbox/transport.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include <curl/curl.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include "model/delivery.h"

#define LINE_SIZE 256
#define SERVICE_MAX 32
#define CONNECT_TIMEOUT_MS 5000L
#define TIMEOUT_MS 10000L

struct transport_request {
        LIST_ENTRY(transport_request) entry;
        struct transport *transport;
        CURL *easy;
        struct curl_slist *lines;
        char reason[CURL_ERROR_SIZE];
        transport_done *done;
        void *arg;
};

struct transport {
        struct event_base *base;
        CURLM *multi;
        struct event *timer;
        char *ca_file;
        LIST_HEAD(requests, transport_request) requests;
};

static int
is_word(const char *text, const char *characters, size_t max)
{
        size_t len = strspn(text, characters);

        return len > 0 && len <= max && text[len] == '\0';
}

int
transport_is_service(const char *text)
{
        return is_word(text, "abcdefghijklmnopqrstuvwxyz0123456789-", SERVICE_MAX);
}

int
transport_is_id(const char *text)
{
        return is_word(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-",
                       DELIVERY_ID_MAX);
}

static void
release(struct transport_request *request)
{
        LIST_REMOVE(request, entry);
        (void)curl_multi_remove_handle(request->transport->multi, request->easy);
        curl_easy_cleanup(request->easy);
        curl_slist_free_all(request->lines);
        free(request);
}

static void
finish(struct transport_request *request, CURLcode code)
{
        struct transport_request copy = *request;
        struct transport_result result = {0, NULL};
        long status = 0;

        for (char *c = copy.reason; *c != '\0'; c++) {
                if (*c < ' ' || *c > '~')
                        *c = '?'; /* it may quote the name in the receiver's certificate */
        }
        if (code == CURLE_OK)
                (void)curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &status);
        else
                result.reason = copy.reason[0] != '\0' ? copy.reason : curl_easy_strerror(code);
        result.status = (int)status;
        release(request);
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

int
transport_check_ca_file(const char *path, struct error *error)
{
        X509_STORE *store = X509_STORE_new();
        int usable = store != NULL && X509_STORE_load_file(store, path) == 1;

        X509_STORE_free(store);
        ERR_clear_error();
        if (usable)
                return 0;
        if (access(path, R_OK) != 0)
                return error_set(error, "%s: %s", path, strerror(errno));
        return error_set(error, "%s contains no certificate in PEM format", path);
}

struct transport *
transport_new(struct event_base *base, const char *ca_file, size_t max_idle)
{
        struct transport *transport = calloc(1, sizeof(*transport));

        if (transport == NULL)
                return NULL;
        LIST_INIT(&transport->requests);
        transport->base = base;
        transport->multi = curl_multi_init();
        transport->timer = evtimer_new(base, on_timer, transport);
        transport->ca_file = ca_file == NULL ? NULL : strdup(ca_file);
        if (transport->multi == NULL || transport->timer == NULL ||
            (ca_file != NULL && transport->ca_file == NULL)) {
                transport_free(transport);
                return NULL;
        }
        (void)curl_multi_setopt(transport->multi, CURLMOPT_SOCKETFUNCTION, on_socket_change);
        (void)curl_multi_setopt(transport->multi, CURLMOPT_SOCKETDATA, transport);
        (void)curl_multi_setopt(transport->multi, CURLMOPT_TIMERFUNCTION, on_timer_change);
        (void)curl_multi_setopt(transport->multi, CURLMOPT_TIMERDATA, transport);
        (void)curl_multi_setopt(transport->multi, CURLMOPT_MAXCONNECTS, (long)max_idle);
        return transport;
}

void
transport_free(struct transport *transport)
{
        struct transport_request *request;

        if (transport == NULL)
                return;
        while ((request = LIST_FIRST(&transport->requests)) != NULL)
                release(request);
        if (transport->multi != NULL)
                (void)curl_multi_cleanup(transport->multi);
        if (transport->timer != NULL)
                event_free(transport->timer);
        free(transport->ca_file);
        free(transport);
}

/* Ignore the body of the answer. */
static size_t
discard(char *data, size_t size, size_t n, void *arg)
{
        (void)data;
        (void)arg;
        return size * n;
}

static void
set_options(const struct transport_request *request, const struct signed_post *post)
{
        CURL *easy = request->easy;

        (void)curl_easy_setopt(easy, CURLOPT_PRIVATE, request);
        (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, request->reason);
        (void)curl_easy_setopt(easy, CURLOPT_URL, post->url);
        (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
        (void)curl_easy_setopt(easy, CURLOPT_PROXY, "");
        (void)curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
        (void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
        (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, request->lines);
        (void)curl_easy_setopt(easy, CURLOPT_POST, 1L);
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, post->body);
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)post->len);
        (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
        (void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, TIMEOUT_MS);
        (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, discard);
        if (request->transport->ca_file != NULL) {
                (void)curl_easy_setopt(easy, CURLOPT_CAINFO, request->transport->ca_file);
                (void)curl_easy_setopt(easy, CURLOPT_CAPATH, NULL); /* do not trust the system's as well */
        }
}

static int
add_line(struct curl_slist **lines, const char *line)
{
        struct curl_slist *longer = curl_slist_append(*lines, line);

        if (longer == NULL)
                return -1;
        *lines = longer;
        return 0;
}

/* Sign the delivery, and append its four headers. */
static int
add_delivery_headers(struct curl_slist **lines, const struct signed_post *post)
{
        char line[LINE_SIZE], timestamp[24], text[SIGNATURE_HEADER_LEN + 1];
        const char *const values[DELIVERY_N_HEADERS] = {[DELIVERY_SIGNATURE] = text,
                                                        [DELIVERY_TIMESTAMP] = timestamp,
                                                        [DELIVERY_WEBHOOK_ID] = post->webhook_id,
                                                        [DELIVERY_ID] = post->delivery_id};
        uint8_t signature[SIGNATURE_SIZE];

        (void)snprintf(timestamp, sizeof(timestamp), "%010" PRId64, post->timestamp);
        if (signature_compute(post->key, timestamp, post->body, post->len, signature) != 0)
                return -1;
        signature_format(signature, text);
        for (size_t i = 0; i < DELIVERY_N_HEADERS; i++) {
                (void)snprintf(line, sizeof(line), "x-%s-%s: %s", post->service,
                               delivery_header_suffix((enum delivery_header)i), values[i]);
                if (add_line(lines, line) != 0)
                        return -1;
        }
        return 0;
}

struct transport_request *
transport_send(struct transport *transport, const struct signed_post *post, transport_done *done, void *arg)
{
        struct transport_request *request = calloc(1, sizeof(*request));

        if (request == NULL)
                return NULL;
        *request = (struct transport_request){.transport = transport, .done = done, .arg = arg};
        LIST_INSERT_HEAD(&transport->requests, request, entry);
        request->easy = curl_easy_init();
        if (request->easy == NULL || add_line(&request->lines, "Content-Type: application/json") != 0 ||
            add_line(&request->lines, "Expect:") != 0 || add_delivery_headers(&request->lines, post) != 0) {
                release(request);
                return NULL;
        }
        set_options(request, post);
        if (curl_multi_add_handle(transport->multi, request->easy) == CURLM_OK)
                return request;
        release(request);
        return NULL;
}

void
transport_cancel(struct transport_request *request)
{
        release(request);
}
