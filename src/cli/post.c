#include "cli/post.h"

#define ANSWER_MAX 65536
#define TIMEOUT_MS 30000L

int
post_send(const struct own_url *to, const char *const *headers, size_t n_headers, const void *body,
          size_t len, struct transfer_answer *answer, struct error *error)
{
        const struct transfer transfer = {to->url, to->socket_path, to->ca_file, TIMEOUT_MS, ANSWER_MAX};
        CURL *curl = curl_easy_init();
        struct curl_slist *lines = curl_slist_append(NULL, "Content-Type: application/json");
        int result;

        lines = curl_slist_append(lines, "Expect:");
        for (size_t i = 0; i < n_headers; i++)
                lines = curl_slist_append(lines, headers[i]);
        if (curl != NULL) {
                (void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, lines);
                (void)curl_easy_setopt(curl, CURLOPT_POST, 1L);
                (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
                (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
        }
        result = transfer_run(&transfer, curl, answer, error);
        curl_slist_free_all(lines);
        curl_easy_cleanup(curl);
        return result;
}
