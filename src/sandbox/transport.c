#include "sandbox/transport.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include <curl/curl.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#define CONNECT_TIMEOUT_MS 5000L
#define TIMEOUT_MS 10000L

struct transfer {
        LIST_ENTRY(transfer) entry;
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
        LIST_HEAD(transfers, transfer) transfers;
};

static void
release(struct transfer *transfer)
{
        LIST_REMOVE(transfer, entry);
        (void)curl_multi_remove_handle(transfer->transport->multi, transfer->easy);
        curl_easy_cleanup(transfer->easy);
        curl_slist_free_all(transfer->lines);
        free(transfer);
}

static void
finish(struct transfer *transfer, CURLcode code)
{
        struct transfer copy = *transfer;
        struct transport_result result = {0, NULL};
        long status = 0;

        for (char *c = copy.reason; *c != '\0'; c++) {
                if (*c < ' ' || *c > '~')
                        *c = '?'; /* some of it may be the receiver's: the name in its certificate */
        }
        if (code == CURLE_OK)
                (void)curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
        else
                result.reason = copy.reason[0] != '\0' ? copy.reason : curl_easy_strerror(code);
        result.status = (int)status;
        release(transfer);
        copy.done(&result, copy.arg);
}

static void
finish_those_done(struct transport *transport)
{
        CURLMsg *message;
        int n_left;

        while ((message = curl_multi_info_read(transport->multi, &n_left)) != NULL) {
                char *private = NULL;

                if (message->msg != CURLMSG_DONE)
                        continue;
                (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
                finish((struct transfer *)(void *)private, message->data.result);
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
        finish_those_done(transport);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
        struct transport *transport = arg;
        int n_running;

        (void)fd;
        (void)what;
        (void)curl_multi_socket_action(transport->multi, CURL_SOCKET_TIMEOUT, 0, &n_running);
        finish_those_done(transport);
}

/* libcurl says what to wait for on a socket. */
static int
on_socket_wish(CURL *easy, curl_socket_t fd, int wish, void *arg, void *event_arg)
{
        struct transport *transport = arg;
        struct event *event = event_arg;
        int what = EV_PERSIST;

        (void)easy;
        if (event != NULL)
                event_free(event);
        (void)curl_multi_assign(transport->multi, fd, NULL);
        if (wish == CURL_POLL_REMOVE)
                return 0;
        if (wish & CURL_POLL_IN)
                what |= EV_READ;
        if (wish & CURL_POLL_OUT)
                what |= EV_WRITE;
        event = event_new(transport->base, fd, (short)what, on_socket_ready, transport);
        if (event == NULL || event_add(event, NULL) != 0)
                return -1;
        (void)curl_multi_assign(transport->multi, fd, event);
        return 0;
}

static int
on_timer_wish(CURLM *multi, long ms, void *arg)
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
        return error_set(error, "%s has no certificate (PEM) in it", path);
}

struct transport *
transport_new(struct event_base *base, const char *ca_file, size_t max_idle)
{
        struct transport *transport = calloc(1, sizeof(*transport));

        if (transport == NULL)
                return NULL;
        LIST_INIT(&transport->transfers);
        transport->base = base;
        transport->multi = curl_multi_init();
        transport->timer = evtimer_new(base, on_timer, transport);
        transport->ca_file = ca_file == NULL ? NULL : strdup(ca_file);
        if (transport->multi == NULL || transport->timer == NULL ||
            (ca_file != NULL && transport->ca_file == NULL)) {
                transport_free(transport);
                return NULL;
        }
        (void)curl_multi_setopt(transport->multi, CURLMOPT_SOCKETFUNCTION, on_socket_wish);
        (void)curl_multi_setopt(transport->multi, CURLMOPT_SOCKETDATA, transport);
        (void)curl_multi_setopt(transport->multi, CURLMOPT_TIMERFUNCTION, on_timer_wish);
        (void)curl_multi_setopt(transport->multi, CURLMOPT_TIMERDATA, transport);
        (void)curl_multi_setopt(transport->multi, CURLMOPT_MAXCONNECTS, (long)max_idle);
        return transport;
}

void
transport_free(struct transport *transport)
{
        struct transfer *transfer;

        if (transport == NULL)
                return;
        while ((transfer = LIST_FIRST(&transport->transfers)) != NULL)
                release(transfer);
        if (transport->multi != NULL)
                (void)curl_multi_cleanup(transport->multi);
        if (transport->timer != NULL)
                event_free(transport->timer);
        free(transport->ca_file);
        free(transport);
}

/* What the receiver answers besides the status is of no interest. */
static size_t
discard(char *data, size_t size, size_t n, void *arg)
{
        (void)data;
        (void)arg;
        return size * n;
}

static void
set_options(const struct transfer *transfer, const struct transport_post *post)
{
        CURL *easy = transfer->easy;

        (void)curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
        (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->reason);
        (void)curl_easy_setopt(easy, CURLOPT_URL, post->url);
        (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
        (void)curl_easy_setopt(easy, CURLOPT_PROXY, "");
        (void)curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
        (void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
        (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->lines);
        (void)curl_easy_setopt(easy, CURLOPT_POST, 1L);
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, post->body);
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)post->len);
        (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
        (void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, TIMEOUT_MS);
        (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, discard);
        if (transfer->transport->ca_file != NULL) {
                (void)curl_easy_setopt(easy, CURLOPT_CAINFO, transfer->transport->ca_file);
                (void)curl_easy_setopt(easy, CURLOPT_CAPATH, NULL); /* the system's would be trusted, too */
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

struct transfer *
transport_start(struct transport *transport, const struct transport_post *post, transport_done *done,
                void *arg)
{
        struct transfer *transfer = calloc(1, sizeof(*transfer));
        int failed;

        if (transfer == NULL)
                return NULL;
        *transfer = (struct transfer){.transport = transport, .done = done, .arg = arg};
        transfer->easy = curl_easy_init();
        failed = add_line(&transfer->lines, "Content-Type: application/json") != 0 ||
                 add_line(&transfer->lines, "Expect:") != 0;
        for (size_t i = 0; i < post->n_headers; i++)
                failed = failed || add_line(&transfer->lines, post->headers[i]) != 0;
        LIST_INSERT_HEAD(&transport->transfers, transfer, entry);
        if (failed || transfer->easy == NULL) {
                release(transfer);
                return NULL;
        }
        set_options(transfer, post);
        if (curl_multi_add_handle(transport->multi, transfer->easy) == CURLM_OK)
                return transfer;
        release(transfer);
        return NULL;
}

void
transport_cancel(struct transfer *transfer)
{
        release(transfer);
}
