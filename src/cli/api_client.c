#include "cli/api_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include <curl/curl.h>
#include <openssl/x509_vfy.h>

#include "base/clock.h"
#include "base/http_client.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/service_answer.h"
#include "config/secrets.h"

#define MAX_CALLS 4
#define FIRST_PAUSE_MS 500
#define MAX_TEXT 500 /* bytes of a text from the service that are printed */
#define MAX_VIOLATIONS 50

struct api_client {
        char *base_url; /* without a slash at its end */
        const char *ca_file;
        long timeout_ms;
        char *key;
        size_t key_len;
};

static struct api_client *
refuse(struct api_client *client, int *status, int reason)
{
        *status = reason;
        api_client_close(client);
        return NULL;
}

/* Read the API key. Returns 0, or -1 with the reason and an exit status. */
static int
read_key(struct api_client *client, const struct config *config, int *status, struct error *error)
{
        *status = EX_CONFIG;
        if (config->service_api_key != NULL) {
                client->key = mem_strdup(config->service_api_key);
                client->key_len = strlen(client->key);
        } else if (config->service_api_key_file == NULL) {
                return error_set(error, "no API key; set api_key_file in [service] of %s", config->file);
        } else {
                if (access(config->service_api_key_file, R_OK) != 0 && errno == EACCES)
                        *status = EX_NOPERM;
                client->key = secrets_read(config->service_api_key_file, 1, &client->key_len, NULL, error);
                if (client->key == NULL)
                        return -1;
        }
        return secrets_check_api_key(client->key, error);
}

struct api_client *
api_client_new(const struct config *config, uint64_t timeout_ms, int *status, struct error *error)
{
        struct api_client *client = mem_alloc(sizeof(*client));
        size_t len;

        if (config->service_base_url == NULL) {
                (void)error_set(error,
                                "no service; set base_url in [service] of %s, such as https://api.example/v1",
                                config->file);
                return refuse(client, status, EX_CONFIG);
        }
        client->base_url = mem_strdup(config->service_base_url);
        len = strlen(client->base_url);
        while (len > 0 && client->base_url[len - 1] == '/')
                client->base_url[--len] = '\0';
        client->ca_file = config->service_ca_file;
        client->timeout_ms = (long)timeout_ms;
        if (client->ca_file != NULL && access(client->ca_file, R_OK) != 0) {
                int reason = errno == EACCES ? EX_NOPERM : EX_CONFIG;

                (void)error_set(error, "ca_file in [service]: %s: %s", client->ca_file, strerror(errno));
                return refuse(client, status, reason);
        }
        if (read_key(client, config, status, error) != 0)
                return refuse(client, status, *status);
        *status = 0;
        return client;
}

struct api_client *
api_client_open(const struct config *config, uint64_t timeout_ms, int *status)
{
        struct error error;
        struct api_client *client = api_client_new(config, timeout_ms, status, &error);

        if (client == NULL)
                fprintf(stderr, "gatepost: %s\n", error.text);
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

/* Explain why there is no answer. The caller frees it. */
static char *
explain(const struct api_client *client, enum http_client_failure failure, const char *reason)
{
        if (failure == HTTP_CLIENT_UNTRUSTED)
                return mem_printf("%s; the API key was not sent", reason);
        if (failure == HTTP_CLIENT_TIMED_OUT)
                return mem_printf("no answer within %ld ms", client->timeout_ms);
        return mem_strdup(reason);
}

/* Return the remedy for a certificate of the service that is not trusted (X509_V_ERR_*). */
static const char *
certificate_remedy(const struct api_client *client, int verify_error)
{
        if (http_client_lacks_issuer(verify_error))
                return client->ca_file != NULL
                           ? "ca_file in [service] does not have the authority of the service's certificate: "
                             "add it, or remove ca_file if the system trusts that authority"
                           : "if your own authority, or a proxy's, signs the service's certificate, set "
                             "ca_file in [service]";
        switch (verify_error) {
        case X509_V_ERR_HOSTNAME_MISMATCH:
                return "check base_url in [service]: the service's certificate is not for its host";
        case X509_V_ERR_CERT_HAS_EXPIRED:
        case X509_V_ERR_CERT_NOT_YET_VALID:
                return "check this machine's clock; if it is right, the service, or its authority, needs a "
                       "new certificate";
        default:
                return "the service needs another certificate";
        }
}

/* An answer that quotes the request has the key in it: overwrite it, since parts of answers are printed. */
static void
hide_key(const struct api_client *client, char *body, size_t len)
{
        char *at, *end = body + len;

        for (char *next = body;
             (at = memmem(next, (size_t)(end - next), client->key, client->key_len)) != NULL;
             next = at + client->key_len)
                memset(at, '*', client->key_len);
}

void
api_client_call(struct api_client *client, const char *method, const char *path, const char *body, size_t len,
                struct api_client_answer *answer)
{
        char *url = mem_printf("%s%s", client->base_url, path),
             *key = mem_printf("x-api-key: %s", client->key);
        const char *const headers[] = {key, "Accept: application/json",
                                       "User-Agent: gatepost/" PACKAGE_VERSION};
        const struct http_client_request request = {
            .method = method,
            .url = url,
            .ca_file = client->ca_file,
            .uses_proxy = strncmp(url, "http:", 5) != 0, /* a tunnel; for HTTP the proxy would see the key */
            .headers = headers,
            .n_headers = ARRAY_LEN(headers),
            .body = body,
            .len = len,
            .timeout_ms = client->timeout_ms,
            .max_answer = API_CLIENT_ANSWER_MAX,
        };
        struct http_client_answer received;
        struct error error;
        int result;

        *answer = (struct api_client_answer){.n_calls = answer->n_calls + 1};
        result = http_client_call(&request, &received, &error);
        if (result != 0) {
                answer->failure = explain(client, received.failure, error.text);
                if (received.failure == HTTP_CLIENT_UNTRUSTED)
                        answer->remedy = certificate_remedy(client, received.verify_error);
                answer->is_hopeless =
                    received.failure == HTTP_CLIENT_UNTRUSTED || received.failure == HTTP_CLIENT_HOPELESS;
        } else if (received.is_cut) {
                answer->failure = mem_printf("the answer is longer than %d bytes", API_CLIENT_ANSWER_MAX);
                answer->is_hopeless = 1;
        } else {
                answer->status = received.status;
        }
        answer->body = received.body;
        answer->len = received.len;
        if (answer->body != NULL)
                hide_key(client, answer->body, answer->len);
        secrets_free(key, strlen(key));
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
api_client_call_repeatedly(struct api_client *client, const char *method, const char *path,
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

/* Meaning and remedy of each status, as the service documents them; the first row that fits counts. */
static const struct meaning {
        long first, last;
        int status;
        const char *means;
        const char *remedy; /* NULL: the service's message says it */
} meanings[] = {
    {300, 399, EX_CONFIG, "answers with a redirect, which is not followed", "check base_url in [service]"},
    {400, 400, EX_DATAERR, "rejects the request as invalid", NULL},
    {401, 401, EX_NOPERM, "rejects the API key", "check api_key_file or api_key in [service]"},
    {403, 403, EX_NOPERM, "does not allow this API key to do that",
     "use another key: a read-only key cannot change webhooks, and a key for one entity cannot access "
     "another's"},
    {404, 404, EX_CONFIG, "does not have this path",
     "check base_url in [service]; it ends with the version, /v1"},
    {409, 409, EX_DATAERR, "reports a conflict with an existing webhook", "see gatepost subscriptions list"},
    {422, 422, EX_DATAERR, "refuses the request by a rule of the country or product", NULL},
    {429, 429, EX_TEMPFAIL, "has received too many requests", "try again later"},
    {400, 499, EX_DATAERR, "refuses the request", NULL},
    {500, 599, EX_TEMPFAIL, "has failed",
     "try again later; if it keeps failing, report the request id to its support"},
    {0, 999, EX_DATAERR, "sends an unexpected status", "check base_url in [service]"},
};

static void
print_text(const char *text)
{
        size_t len = strlen(text);

        text_print(stderr, text, len < MAX_TEXT ? len : MAX_TEXT);
}

static void
print_error(const struct service_error *error)
{
        if (error->code != NULL || error->message != NULL) {
                fprintf(stderr, "    ");
                if (error->code != NULL)
                        print_text(error->code);
                if (error->message != NULL) {
                        fprintf(stderr, "%s", error->code == NULL ? "" : ": ");
                        print_text(error->message);
                }
                fputc('\n', stderr);
        }
        for (size_t i = 0; i < error->n_violations && i < MAX_VIOLATIONS; i++) {
                const struct service_violation *violation = &error->violations[i];

                fprintf(stderr, "    ");
                print_text(violation->field == NULL ? "(no field)" : violation->field);
                fprintf(stderr, ": ");
                print_text(violation->message == NULL ? "(no message)" : violation->message);
                fputc('\n', stderr);
        }
        if (error->n_violations > MAX_VIOLATIONS)
                fprintf(stderr, "    and %zu more\n", error->n_violations - MAX_VIOLATIONS);
        if (error->request_id != NULL) {
                fprintf(stderr, "    request id: ");
                print_text(error->request_id);
                fputc('\n', stderr);
        }
}

static void
print_times(const struct api_client_answer *answer)
{
        if (answer->n_calls > 1)
                fprintf(stderr, "    tried %zu times\n", answer->n_calls);
}

static const struct meaning *
find_meaning(const struct api_client_answer *answer)
{
        const struct meaning *meaning = meanings;

        while (answer->status < meaning->first || answer->status > meaning->last)
                meaning++;
        return meaning;
}

int
api_client_explain(const struct api_client_answer *answer, struct error *error, const char **remedy)
{
        const struct meaning *meaning;
        struct service_error said;

        if (answer->status == 0) {
                *remedy = answer->remedy != NULL
                              ? answer->remedy
                              : "check base_url in [service], name resolution, and proxies (https_proxy)";
                (void)error_set(error, "no usable answer from the service: %s", answer->failure);
                return EX_UNAVAILABLE;
        }
        meaning = find_meaning(answer);
        service_error_read(answer->body, answer->len, &said);
        (void)error_set(error, "the service %s (%ld)%s%.200s", meaning->means, answer->status,
                        said.message == NULL ? "" : ": ", said.message == NULL ? "" : said.message);
        service_error_clear(&said);
        *remedy = meaning->remedy == NULL ? "do what its message says" : meaning->remedy;
        return meaning->status;
}

int
api_client_report(const char *command, const struct api_client_answer *answer)
{
        const struct meaning *meaning;
        struct service_error error;

        if (answer->status == 0) {
                fprintf(stderr, "gatepost %s: no usable answer from the service: ", command);
                text_print(stderr, answer->failure, strlen(answer->failure)); /* it may quote a certificate */
                fprintf(stderr, "%s%s\n", answer->remedy == NULL ? "" : "; ",
                        answer->remedy == NULL ? "" : answer->remedy);
                print_times(answer);
                return EX_UNAVAILABLE;
        }
        meaning = find_meaning(answer);
        fprintf(stderr, "gatepost %s: the service %s (%ld)%s%s\n", command, meaning->means, answer->status,
                meaning->remedy == NULL ? "" : "; ", meaning->remedy == NULL ? "" : meaning->remedy);
        service_error_read(answer->body, answer->len, &error);
        print_error(&error);
        service_error_clear(&error);
        print_times(answer);
        return meaning->status;
}

int
api_client_succeeded(const struct api_client_answer *answer)
{
        return answer->status >= 200 && answer->status <= 299;
}
