#include "base/http_client.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <openssl/crypto.h>

#include "base/mem.h"

/* The body of an answer so far. */
struct received {
        struct http_client_answer *answer;
        size_t size; /* of the memory */
        size_t max;
};

static size_t
on_data(char *data, size_t size, size_t n, void *arg)
{
        struct received *received = arg;
        struct http_client_answer *answer = received->answer;
        size_t len = size * n, room = received->max - answer->len;

        answer->is_cut = len > room;
        if (answer->is_cut)
                len = room;
        if (answer->len + len + 1 > received->size) {
                received->size = 2 * (answer->len + len + 1);
                answer->body = mem_resize(answer->body, received->size, 1);
        }
        memcpy(answer->body + answer->len, data, len);
        answer->len += len;
        answer->body[answer->len] = '\0';
        return answer->is_cut ? 0 : len; /* at 0 libcurl ends the call */
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
add_line(struct curl_slist **lines, const char *line)
{
        struct curl_slist *longer = curl_slist_append(*lines, line);

        if (longer == NULL)
                mem_exit();
        *lines = longer;
}

static void
add_lines(struct curl_slist **lines, const struct http_client_request *request)
{
        add_line(lines, "Expect:");
        if (request->body != NULL)
                add_line(lines, "Content-Type: application/json");
        for (size_t i = 0; i < request->n_headers; i++)
                add_line(lines, request->headers[i]);
}

static void
set_connection(CURL *curl, const struct http_client_request *request)
{
        const char *system_file = getenv("SSL_CERT_FILE"); /* OpenSSL's, which libcurl does not read */

        (void)curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR,
                               strncasecmp(request->url, "http:", 5) == 0 ? "http" : "https");
        (void)curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
        (void)curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, request->socket_path);
        if (!request->uses_proxy)
                (void)curl_easy_setopt(curl, CURLOPT_PROXY, "");
        if (request->ca_file != NULL) {
                (void)curl_easy_setopt(curl, CURLOPT_CAINFO, request->ca_file);
                (void)curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
        } else if (system_file != NULL && *system_file != '\0') {
                (void)curl_easy_setopt(curl, CURLOPT_CAINFO, system_file);
        }
        if (request->allows_any_name)
                (void)curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
        (void)curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, request->timeout_ms);
        (void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
}

static void
set_request(CURL *curl, const struct http_client_request *request, struct curl_slist *lines)
{
        (void)curl_easy_setopt(curl, CURLOPT_URL, request->url);
        (void)curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
        (void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, lines);
        if (request->body != NULL) {
                (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body);
                (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->len);
        }
}

void
http_client_prepare(struct http_client_transfer *transfer, const struct http_client_request *request)
{
        transfer->easy = curl_easy_init();
        if (transfer->easy == NULL)
                mem_exit();
        add_lines(&transfer->lines, request);
        set_connection(transfer->easy, request);
        set_request(transfer->easy, request, transfer->lines);
        (void)curl_easy_setopt(transfer->easy, CURLOPT_ERRORBUFFER, transfer->reason);
        (void)curl_easy_setopt(transfer->easy, CURLOPT_WRITEFUNCTION, discard);
}

void
http_client_release(struct http_client_transfer *transfer)
{
        curl_easy_cleanup(transfer->easy);
        /* A line may contain a key. */
        for (struct curl_slist *each = transfer->lines; each != NULL; each = each->next)
                OPENSSL_cleanse(each->data, strlen(each->data));
        curl_slist_free_all(transfer->lines);
}

static enum http_client_failure
failure_of(CURLcode code)
{
        if (code == CURLE_PEER_FAILED_VERIFICATION)
                return HTTP_CLIENT_UNTRUSTED;
        return code == CURLE_OPERATION_TIMEDOUT ? HTTP_CLIENT_TIMED_OUT : HTTP_CLIENT_FAILED;
}

static CURLcode
perform(CURL *easy, const struct http_client_request *request, struct http_client_answer *answer)
{
        struct received received = {answer, 1, request->max_answer};
        CURLcode code;
        long status = 0, os_error = 0, local_port = 0;

        (void)curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
        (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_data);
        (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, &received);
        code = curl_easy_perform(easy);
        (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        answer->status = (int)status;
        (void)curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &os_error);
        answer->os_error = code == CURLE_COULDNT_CONNECT ? (int)os_error : 0;
        /* Not CURLINFO_CONNECT_TIME_T: in libcurl 7.88.1, it is 0 after a TLS handshake that failed. */
        (void)curl_easy_getinfo(easy, CURLINFO_LOCAL_PORT, &local_port);
        answer->is_connected = code != CURLE_COULDNT_CONNECT && code != CURLE_COULDNT_RESOLVE_HOST &&
                               (code != CURLE_OPERATION_TIMEDOUT || local_port > 0);
        return answer->is_cut && code == CURLE_WRITE_ERROR ? CURLE_OK : code;
}

/* Return a question to follow the reason of a failure that another scheme in the URL may explain, or "". */
static const char *
ask_for_scheme(CURLcode code)
{
        return code == CURLE_SSL_CONNECT_ERROR || code == CURLE_GOT_NOTHING || code == CURLE_RECV_ERROR
                   ? "; is this a port for http:// or for https://?"
                   : "";
}

int
http_client_call(const struct http_client_request *request, struct http_client_answer *answer,
                 struct error *error)
{
        struct http_client_transfer transfer = {0};
        CURLcode code;
        int result = 0;

        *answer = (struct http_client_answer){.body = mem_alloc(1)};
        http_client_prepare(&transfer, request);
        code = perform(transfer.easy, request, answer);
        if (code != CURLE_OK) {
                free(answer->body);
                *answer = (struct http_client_answer){.failure = failure_of(code),
                                                      .os_error = answer->os_error,
                                                      .is_connected = answer->is_connected};
                result = error_set(error, "%s%s",
                                   transfer.reason[0] != '\0' ? transfer.reason : curl_easy_strerror(code),
                                   ask_for_scheme(code));
        }
        http_client_release(&transfer);
        return result;
}
