#include "cli/transfer.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct received {
        char *text; /* with room for a NUL */
        size_t len;
        size_t size;
        size_t max;
};

static size_t
on_data(char *data, size_t size, size_t n, void *arg)
{
        struct received *received = arg;
        size_t len = size * n, room = received->max - received->len, taken = len < room ? len : room;

        if (received->len + taken + 1 > received->size) {
                received->size = 2 * (received->len + taken + 1);
                received->text = mem_resize(received->text, received->size, 1);
        }
        memcpy(received->text + received->len, data, taken);
        received->len += taken;
        return len;
}

int
transfer_run(const struct transfer *transfer, CURL *curl, struct transfer_answer *answer, struct error *error)
{
        struct received received = {mem_alloc(1), 0, 1, transfer->max_body};
        char reason[CURL_ERROR_SIZE] = "";
        CURLcode result = CURLE_OUT_OF_MEMORY;
        long status = 0;

        if (curl != NULL) {
                (void)curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason);
                (void)curl_easy_setopt(curl, CURLOPT_URL, transfer->url);
                (void)curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
                (void)curl_easy_setopt(curl, CURLOPT_PROXY, "");
                (void)curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, transfer->socket_path);
                if (transfer->ca_file != NULL) {
                        (void)curl_easy_setopt(curl, CURLOPT_CAINFO, transfer->ca_file);
                        (void)curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
                        (void)curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
                }
                (void)curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, transfer->timeout_ms);
                (void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
                (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
                (void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, &received);
                result = curl_easy_perform(curl);
                (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
                (void)curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, NULL);
        }
        if (result != CURLE_OK) {
                free(received.text);
                return error_set(error, "%s: %s", transfer->url,
                                 reason[0] != '\0' ? reason : curl_easy_strerror(result));
        }
        received.text[received.len] = '\0';
        *answer = (struct transfer_answer){(int)status, received.text};
        return 0;
}

int
transfer_get(const struct transfer *transfer, struct transfer_answer *answer, struct error *error)
{
        CURL *curl = curl_easy_init();
        int result = transfer_run(transfer, curl, answer, error);

        curl_easy_cleanup(curl);
        return result;
}
