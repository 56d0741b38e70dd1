#include "cli/http_client.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <curl/curl.h>
#include <openssl/crypto.h>

#include "base/mem.h"

#define CONNECT_TIMEOUT_MS 10000L

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

static struct curl_slist *
make_lines(const struct http_client_request *request)
{
        struct curl_slist *lines = curl_slist_append(NULL, "Expect:");

        if (request->body != NULL)
                lines = curl_slist_append(lines, "Content-Type: application/json");
        for (size_t i = 0; i < request->n_headers; i++)
                lines = curl_slist_append(lines, request->headers[i]);
        return lines;
}

/* Wipe the lines, since one may have a key. */
static void
free_lines(struct curl_slist *lines)
{
        for (struct curl_slist *each = lines; each != NULL; each = each->next)
                OPENSSL_cleanse(each->data, strlen(each->data));
        curl_slist_free_all(lines);
}

static void
set_connection(CURL *curl, const struct http_client_request *request)
{
        long connect_ms = request->timeout_ms < CONNECT_TIMEOUT_MS ? request->timeout_ms : CONNECT_TIMEOUT_MS;

        (void)curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR,
                               strncasecmp(request->url, "http:", 5) == 0 ? "http" : "https");
        (void)curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
        (void)curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, request->socket_path);
        if (!request->uses_proxy)
                (void)curl_easy_setopt(curl, CURLOPT_PROXY, "");
        if (request->ca_file != NULL) {
                (void)curl_easy_setopt(curl, CURLOPT_CAINFO, request->ca_file);
                (void)curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
        }
        if (request->allows_any_name)
                (void)curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
        (void)curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
        (void)curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, request->timeout_ms);
        (void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
}

static void
set_request(CURL *curl, const struct http_client_request *request, struct curl_slist *lines)
{
        (void)curl_easy_setopt(curl, CURLOPT_URL, request->url);
        (void)curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
        (void)curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
        (void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, lines);
        if (request->body != NULL) {
                (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body);
                (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->len);
        }
}

static CURLcode
perform(CURL *curl, const struct http_client_request *request, struct http_client_answer *answer,
        char *reason)
{
        struct received received = {answer, 1, request->max_answer};
        struct curl_slist *lines = make_lines(request);
        CURLcode code;
        long status = 0;

        set_connection(curl, request);
        set_request(curl, request, lines);
        (void)curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason);
        (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
        (void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, &received);
        code = curl_easy_perform(curl);
        (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
        answer->status = (int)status;
        free_lines(lines);
        return answer->is_cut && code == CURLE_WRITE_ERROR ? CURLE_OK : code;
}

static enum http_client_failure
failure_of(CURLcode code)
{
        switch (code) {
        case CURLE_PEER_FAILED_VERIFICATION:
                return HTTP_CLIENT_UNTRUSTED;
        case CURLE_OPERATION_TIMEDOUT:
                return HTTP_CLIENT_TIMED_OUT;
        case CURLE_SSL_CACERT_BADFILE:
        case CURLE_SSL_ISSUER_ERROR:
        case CURLE_URL_MALFORMAT:
        case CURLE_UNSUPPORTED_PROTOCOL:
        case CURLE_WRITE_ERROR:
        case CURLE_OUT_OF_MEMORY:
                return HTTP_CLIENT_HOPELESS;
        default:
                return HTTP_CLIENT_FAILED;
        }
}

int
http_client_call(const struct http_client_request *request, struct http_client_answer *answer,
                 struct error *error)
{
        char reason[CURL_ERROR_SIZE] = "";
        CURL *curl = curl_easy_init();
        CURLcode code = CURLE_OUT_OF_MEMORY;

        *answer = (struct http_client_answer){.body = mem_alloc(1)};
        if (curl != NULL)
                code = perform(curl, request, answer, reason);
        curl_easy_cleanup(curl);
        if (code == CURLE_OK)
                return 0;
        free(answer->body);
        *answer = (struct http_client_answer){.failure = failure_of(code)};
        return error_set(error, "%s", reason[0] != '\0' ? reason : curl_easy_strerror(code));
}
