#include "cli/api_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include <curl/curl.h>
#include <openssl/crypto.h>

#include "base/clock.h"
#include "base/mem.h"
#include "config/secrets.h"

#define CONNECT_TIMEOUT_MS 10000L
#define MAX_CALLS 4
#define FIRST_PAUSE_MS 500

struct api_client {
        char *base_url; /* without a slash at its end */
        const char *ca_file;
        long timeout_ms;
        char *key;
        size_t key_len;
};

static struct api_client *
refuse(struct api_client *client, int *status, int reason, const char *text)
{
        fprintf(stderr, "gatepost: %s\n", text);
        *status = reason;
        api_client_close(client);
        return NULL;
}

/* Returns 0, or -1 with the reason and an exit status. */
static int
read_key(struct api_client *client, const struct config *config, int *status, struct error *error)
{
        *status = EX_CONFIG;
        if (config->service_api_key != NULL) {
                client->key = mem_strdup(config->service_api_key);
                client->key_len = strlen(client->key);
        } else if (config->service_api_key_file == NULL) {
                return error_set(error, "which API key? Give api_key_file in [service] of %s", config->file);
        } else {
                if (access(config->service_api_key_file, R_OK) != 0 && errno == EACCES)
                        *status = EX_NOPERM;
                client->key = secrets_read(config->service_api_key_file, 1, &client->key_len, error);
                if (client->key == NULL)
                        return -1;
        }
        for (size_t i = 0; i < client->key_len; i++) {
                if (client->key[i] <= 0x20 || client->key[i] >= 0x7f)
                        return error_set(error, "the API key has a character that no header can carry: is it "
                                                "the key alone, in one line?");
        }
        return 0;
}

struct api_client *
api_client_open(const struct config *config, uint64_t timeout_ms, int *status)
{
        struct api_client *client = mem_alloc(sizeof(*client));
        struct error error;
        size_t len;

        if (config->service_base_url == NULL) {
                (void)error_set(
                    &error, "which service? Give base_url in [service] of %s, such as https://api.example/v1",
                    config->file);
                return refuse(client, status, EX_CONFIG, error.text);
        }
        client->base_url = mem_strdup(config->service_base_url);
        len = strlen(client->base_url);
        while (len > 0 && client->base_url[len - 1] == '/')
                client->base_url[--len] = '\0';
        client->ca_file = config->service_ca_file;
        client->timeout_ms = (long)timeout_ms;
        if (client->ca_file != NULL && access(client->ca_file, R_OK) != 0) {
                (void)error_set(&error, "ca_file in [service]: %s: %s", client->ca_file, strerror(errno));
                return refuse(client, status, errno == EACCES ? EX_NOPERM : EX_CONFIG, error.text);
        }
        if (read_key(client, config, status, &error) != 0)
                return refuse(client, status, *status, error.text);
        *status = 0;
        return client;
}

void
api_client_close(struct api_client *client)
{
        if (client == NULL)
                return;
        secrets_free(client->key, client->key_len);
        free(client->base_url);
        free(client);
}

void
api_client_answer_clear(struct api_client_answer *answer)
{
        free(answer->body);
        free(answer->failure);
        memset(answer, 0, sizeof(*answer));
}

static size_t
on_data(char *data, size_t size, size_t n, void *arg)
{
        struct api_client_answer *answer = arg;
        size_t len = size * n;

        if (len > API_CLIENT_ANSWER_MAX - answer->len)
                return 0; /* libcurl gives up */
        answer->body = mem_resize(answer->body, answer->len + len + 1, 1);
        memcpy(answer->body + answer->len, data, len);
        answer->len += len;
        answer->body[answer->len] = '\0';
        return len;
}

/* The header lines of a call. The key's is wiped when they are released. */
static struct curl_slist *
make_lines(const struct api_client *client, int has_body)
{
        char *line = mem_printf("x-api-key: %s", client->key);
        struct curl_slist *lines = curl_slist_append(NULL, line);

        secrets_free(line, strlen(line));
        lines = curl_slist_append(lines, "Accept: application/json");
        lines = curl_slist_append(lines, "Expect:");
        return has_body ? curl_slist_append(lines, "Content-Type: application/json") : lines;
}

static void
free_lines(struct curl_slist *lines)
{
        for (struct curl_slist *each = lines; each != NULL; each = each->next)
                OPENSSL_cleanse(each->data, strlen(each->data));
        curl_slist_free_all(lines);
}

static void
set_options(CURL *curl, const struct api_client *client)
{
        int is_plain = strncmp(client->base_url, "http:", 5) == 0;

        (void)curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, is_plain ? "http" : "https");
        (void)curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
        (void)curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
        (void)curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
        (void)curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
        (void)curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
        if (client->ca_file != NULL) {
                (void)curl_easy_setopt(curl, CURLOPT_CAINFO, client->ca_file);
                (void)curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
        }
        if (is_plain) /* a proxy would see the key; through one, HTTPS is a tunnel */
                (void)curl_easy_setopt(curl, CURLOPT_PROXY, "");
        (void)curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                               client->timeout_ms < CONNECT_TIMEOUT_MS ? client->timeout_ms
                                                                       : CONNECT_TIMEOUT_MS);
        (void)curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, client->timeout_ms);
        (void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
        (void)curl_easy_setopt(curl, CURLOPT_USERAGENT, "gatepost/" PACKAGE_VERSION);
}

/* Whether trying again is of no use. */
static int
is_hopeless(CURLcode code)
{
        switch (code) {
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_CACERT_BADFILE:
        case CURLE_SSL_ISSUER_ERROR:
        case CURLE_URL_MALFORMAT:
        case CURLE_UNSUPPORTED_PROTOCOL:
        case CURLE_WRITE_ERROR:
        case CURLE_OUT_OF_MEMORY:
                return 1;
        default:
                return 0;
        }
}

static char *
explain(const struct api_client *client, CURLcode code, const char *reason)
{
        const char *text = reason[0] != '\0' ? reason : curl_easy_strerror(code);

        if (code == CURLE_WRITE_ERROR)
                return mem_printf("the answer is longer than %d bytes", API_CLIENT_ANSWER_MAX);
        if (code == CURLE_PEER_FAILED_VERIFICATION)
                return mem_printf(
                    "%s; the API key was not sent. Where the service's certificate is signed by an "
                    "authority of your own, name that in ca_file in [service]",
                    text);
        if (code == CURLE_OPERATION_TIMEDOUT)
                return mem_printf("no answer within %ld ms", client->timeout_ms);
        return mem_strdup(text);
}

void
api_client_call(struct api_client *client, const char *method, const char *path, const char *body, size_t len,
                struct api_client_answer *answer)
{
        CURL *curl = curl_easy_init();
        struct curl_slist *lines = make_lines(client, body != NULL);
        char *url = mem_printf("%s%s", client->base_url, path), reason[CURL_ERROR_SIZE] = "";
        CURLcode code = CURLE_OUT_OF_MEMORY;

        *answer = (struct api_client_answer){.body = mem_strdup(""), .n_calls = answer->n_calls + 1};
        if (curl != NULL) {
                set_options(curl, client);
                (void)curl_easy_setopt(curl, CURLOPT_URL, url);
                (void)curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
                (void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, lines);
                (void)curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason);
                (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
                (void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
                if (body != NULL) {
                        (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
                        (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
                }
                code = curl_easy_perform(curl);
                (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer->status);
        }
        if (code != CURLE_OK) {
                answer->status = 0;
                answer->failure = explain(client, code, reason);
                answer->is_hopeless = is_hopeless(code);
        }
        curl_easy_cleanup(curl);
        free_lines(lines);
        free(url);
}

int
api_client_may_recover(const struct api_client_answer *answer)
{
        return answer->status == 0 ? !answer->is_hopeless : answer->status >= 500;
}

void
api_client_pause(size_t n_calls)
{
        clock_sleep_ms((int64_t)FIRST_PAUSE_MS << (n_calls - 1));
}

void
api_client_call_again(struct api_client *client, const char *method, const char *path,
                      struct api_client_answer *answer)
{
        memset(answer, 0, sizeof(*answer));
        for (;;) {
                size_t n_calls;

                api_client_call(client, method, path, NULL, 0, answer);
                n_calls = answer->n_calls;
                if (!api_client_may_recover(answer) || n_calls == MAX_CALLS)
                        return;
                api_client_answer_clear(answer);
                answer->n_calls = n_calls;
                api_client_pause(n_calls);
        }
}

char *
api_client_escape(const char *text)
{
        char *escaped = curl_easy_escape(NULL, text, 0), *copy = mem_strdup(escaped == NULL ? "" : escaped);

        curl_free(escaped);
        return copy;
}
