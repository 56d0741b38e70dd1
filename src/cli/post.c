#include "cli/post.h"

#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "base/mem.h"

#define ANSWER_MAX 65536
#define TIMEOUT_S 30L

struct received {
        char *text;
        size_t len;
};

static size_t
on_data(char *data, size_t size, size_t n, void *arg)
{
        struct received *received = arg;
        size_t len = size * n, room = ANSWER_MAX - received->len;

        memcpy(received->text + received->len, data, len < room ? len : room);
        received->len += len < room ? len : room;
        return len;
}

static CURLcode
perform(CURL *curl, const char *url, const char *socket_path, struct curl_slist *lines, const void *body,
        size_t len, struct received *received)
{
        (void)curl_easy_setopt(curl, CURLOPT_URL, url);
        (void)curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
        (void)curl_easy_setopt(curl, CURLOPT_PROXY, "");
        if (socket_path != NULL)
                (void)curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, socket_path);
        (void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, lines);
        (void)curl_easy_setopt(curl, CURLOPT_POST, 1L);
        (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
        (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
        (void)curl_easy_setopt(curl, CURLOPT_TIMEOUT, TIMEOUT_S);
        (void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
        (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
        (void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, received);
        return curl_easy_perform(curl);
}

int
post_send(const char *url, const char *socket_path, const char *const *headers, size_t n_headers,
          const void *body, size_t len, struct post_answer *answer, struct error *error)
{
        CURL *curl = curl_easy_init();
        struct curl_slist *lines = curl_slist_append(NULL, "Content-Type: application/json");
        struct received received = {mem_alloc(ANSWER_MAX + 1), 0};
        char reason[CURL_ERROR_SIZE] = "";
        long status = 0;
        CURLcode result = CURLE_OUT_OF_MEMORY;

        lines = curl_slist_append(lines, "Expect:");
        for (size_t i = 0; i < n_headers; i++)
                lines = curl_slist_append(lines, headers[i]);
        if (curl != NULL) {
                (void)curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason);
                result = perform(curl, url, socket_path, lines, body, len, &received);
                (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
        }
        curl_slist_free_all(lines);
        curl_easy_cleanup(curl);
        if (result != CURLE_OK) {
                free(received.text);
                return error_set(error, "%s: %s", url,
                                 reason[0] != '\0' ? reason : curl_easy_strerror(result));
        }
        answer->status = (int)status;
        answer->body = received.text;
        return 0;
}
