#include "cli/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/http_client.h"
#include "base/mem.h"
#include "config/secrets.h"

#define ANSWER_MAX 1048576 /* bytes */

struct service {
        char *base_url; /* without a slash at its end */
        const char *ca_file;
        char *key;
        size_t key_len;
};

/* Read the API key. Returns 0, or -1 with the reason. */
static int
read_key(struct service *service, const struct config *config, struct error *error)
{
        if (config->service_api_key != NULL) {
                service->key = mem_strdup(config->service_api_key);
                service->key_len = strlen(service->key);
        } else if (config->service_api_key_file == NULL) {
                return error_set(error, "no API key; set api_key_file in [service] of %s", config->file);
        } else {
                service->key = secrets_read(config->service_api_key_file, 1, &service->key_len, NULL, error);
        }
        return service->key == NULL ? -1 : secrets_check_api_key(service->key, error);
}

struct service *
service_open(const struct config *config, struct error *error)
{
        struct service *service;
        size_t len;

        if (config->service_base_url == NULL) {
                (void)error_set(error,
                                "no service; set base_url in [service] of %s, such as https://api.example/v1",
                                config->file);
                return NULL;
        }
        service = mem_alloc(sizeof(*service));
        *service = (struct service){.base_url = mem_strdup(config->service_base_url),
                                    .ca_file = config->service_ca_file};
        len = strlen(service->base_url);
        while (len > 0 && service->base_url[len - 1] == '/')
                service->base_url[--len] = '\0';
        if (read_key(service, config, error) == 0)
                return service;
        service_close(service);
        return NULL;
}

void
service_close(struct service *service)
{
        if (service == NULL)
                return;
        secrets_free(service->key, service->key_len);
        free(service->base_url);
        free(service);
}

/* Overwrite the key in an answer that quotes the request, since parts of answers are printed. */
static void
hide_key(const struct service *service, char *body, size_t len)
{
        char *at, *end = body + len;

        for (char *next = body;
             (at = memmem(next, (size_t)(end - next), service->key, service->key_len)) != NULL;
             next = at + service->key_len)
                memset(at, '*', service->key_len);
}

/* Send a request. Returns 0 with the answer, or -1 with the reason if there is none. */
static int
call(const struct service *service, const char *method, const char *path, const char *body,
     struct http_client_answer *answer, struct error *error)
{
        char *url = mem_printf("%s%s", service->base_url, path),
             *key = mem_printf("x-api-key: %s", service->key);
        const char *const headers[] = {key, "Accept: application/json",
                                       "User-Agent: gatepost/" PACKAGE_VERSION};
        const struct http_client_request request = {
            .method = method,
            .url = url,
            .ca_file = service->ca_file,
            .uses_proxy = strncmp(url, "http:", 5) != 0, /* a tunnel; for HTTP the proxy would see the key */
            .headers = headers,
            .n_headers = ARRAY_LEN(headers),
            .body = body,
            .len = body == NULL ? 0 : strlen(body),
            .timeout_ms = HTTP_CLIENT_TIMEOUT_MS,
            .max_answer = ANSWER_MAX,
        };
        int result = http_client_call(&request, answer, error);

        if (result == 0)
                hide_key(service, answer->body, answer->len);
        secrets_free(key, strlen(key));
        free(url);
        return result;
}

/* Explain why there is no answer. Returns the exit status. */
static int
explain_absence(const struct http_client_answer *answer, struct service_failure *failure)
{
        if (answer->failure == HTTP_CLIENT_UNTRUSTED) {
                (void)error_prefix(&failure->reason, "the API key was not sent");
                failure->remedy = "check base_url and this machine's clock; for an authority of your own, "
                                  "set ca_file in [service]";
        } else {
                (void)error_prefix(&failure->reason, "the service cannot be reached");
                failure->remedy = "check base_url in [service], name resolution, and the proxy (https_proxy)";
                failure->may_be_done = answer->is_connected;
        }
        return EX_UNAVAILABLE;
}

/* What the HTTP status of a refusal means. The first row that has it counts. */
static const struct meaning {
        int from, to;
        int exit_status;
        const char *remedy;
} meanings[] = {
    {300, 399, EX_CONFIG, "check base_url in [service]; redirects are not followed"},
    {401, 401, EX_NOPERM, "check api_key_file or api_key in [service]"},
    {403, 403, EX_NOPERM, "use a key that may change the webhooks of this account"},
    {404, 404, EX_CONFIG, "check base_url in [service]; it ends with the version, /v1"},
    {429, 429, EX_TEMPFAIL, "try again later"},
    {500, 999, EX_TEMPFAIL, "try again later"},
    {0, 999, EX_DATAERR, NULL},
};

static const struct meaning *
find_meaning(int http_status)
{
        const struct meaning *meaning = meanings;

        while (http_status < meaning->from || http_status > meaning->to)
                meaning++;
        return meaning;
}

static void
quote(FILE *out, const char *before, const char *text)
{
        if (text != NULL)
                fprintf(out, "%s%s", before, text);
}

/* Set the reason to what an answer says about its refusal, in one line. A long one is cut at its end. */
static void
quote_refusal(const struct http_client_answer *answer, struct error *reason)
{
        struct error ignored;
        struct json_value *root = json_tree_parse(answer->body, answer->len, &ignored);
        const struct json_value *said = json_tree_get(root, "error"),
                                *list = json_tree_get(said, "violations");
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        if (out == NULL)
                mem_exit();
        fprintf(out, "the service answers %d", answer->status);
        quote(out, " ", json_tree_text(said, "code"));
        quote(out, ": ", json_tree_text(said, "message"));
        quote(out, "; request id ", json_tree_text(said, "requestId"));
        for (const struct json_value *each = list == NULL ? NULL : list->first; each != NULL;
             each = each->next) {
                quote(out, "; ", json_tree_text(each, "field"));
                quote(out, ": ", json_tree_text(each, "message"));
        }
        if (fclose(out) != 0)
                mem_exit();
        (void)error_set(reason, "%s", text);
        free(text);
        json_tree_free(root);
}

/* Explain an answer that refuses the request. Returns the exit status. */
static int
explain_refusal(const struct http_client_answer *answer, struct service_failure *failure)
{
        const struct meaning *meaning = find_meaning(answer->status);

        quote_refusal(answer, &failure->reason);
        failure->remedy = meaning->remedy;
        failure->may_be_done = answer->status >= 500;
        return meaning->exit_status;
}

/* Read a successful answer. Returns 0, or an exit status with the failure. */
static int
read_answer(const struct http_client_answer *answer, struct json_value **root,
            struct service_failure *failure)
{
        if (answer->len == 0)
                return 0;
        if (answer->is_cut)
                (void)error_set(&failure->reason, "it is longer than %d bytes", ANSWER_MAX);
        else if ((*root = json_tree_parse(answer->body, answer->len, &failure->reason)) != NULL)
                return 0;
        (void)error_prefix(&failure->reason, "the service's answer is not understood");
        failure->remedy = "check base_url in [service]";
        failure->may_be_done = 1;
        return EX_DATAERR;
}

int
service_request(struct service *service, const char *method, const char *path, const char *body,
                struct json_value **answer, struct service_failure *failure)
{
        struct http_client_answer received;
        int status;

        *failure = (struct service_failure){0};
        *answer = NULL;
        if (call(service, method, path, body, &received, &failure->reason) != 0)
                return explain_absence(&received, failure);
        failure->http_status = received.status;
        if (received.status >= 200 && received.status <= 299)
                status = read_answer(&received, answer, failure);
        else
                status = explain_refusal(&received, failure);
        free(received.body);
        return status;
}
