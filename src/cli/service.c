#include "cli/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/http_client.h"
#include "base/mem.h"
#include "config/secrets.h"

#define ANSWER_MAX 1048576 /* bytes */

/* Read the API key. Returns it, to be released by secrets_free(), or NULL with the reason. */
static char *
read_key(const struct config *config, struct error *error)
{
        const char *file = config->service_api_key_file;
        char *key = NULL;
        size_t len;

        if (config->service_api_key != NULL)
                key = mem_strdup(config->service_api_key);
        else if (file != NULL)
                key = secrets_read(file, 1, &len, NULL, error);
        else
                (void)error_set(error, "no API key; set api_key_file in [service] of %s", config->file);
        if (key == NULL || secrets_check_api_key(key, error) == 0)
                return key;
        secrets_free(key, strlen(key));
        return NULL;
}

/* Overwrite the key in an answer that quotes the request, since parts of answers are printed. */
static void
hide_key(const char *key, char *body, size_t len)
{
        char *at, *next = body, *end = body + len;
        size_t key_len = strlen(key);

        while ((at = memmem(next, (size_t)(end - next), key, key_len)) != NULL) {
                memset(at, '*', key_len);
                next = at + key_len;
        }
}

/* Return the URL of a path, to be freed. A slash at the end of base_url does not count. */
static char *
make_url(const char *base_url, const char *path)
{
        size_t len = strlen(base_url);

        while (len > 0 && base_url[len - 1] == '/')
                len--;
        return mem_printf("%.*s%s", (int)len, base_url, path);
}

/* Send a request. Returns 0 with the answer, or -1 with the reason if there is none. */
static int
call(const struct config *config, const char *key, struct http_client_request *request, const char *path,
     struct http_client_answer *answer, struct error *error)
{
        char *url = make_url(config->service_base_url, path), *header = mem_printf("x-api-key: %s", key);
        const char *const headers[] = {header, "Accept: application/json",
                                       "User-Agent: gatepost/" PACKAGE_VERSION};
        int result;

        request->url = url;
        request->ca_file = config->service_ca_file;
        /* A tunnel; for HTTP the proxy would see the key. */
        request->uses_proxy = strncmp(url, "http:", 5) != 0;
        request->headers = headers;
        request->n_headers = ARRAY_LEN(headers);
        request->timeout_ms = HTTP_CLIENT_TIMEOUT_MS;
        request->max_answer = ANSWER_MAX;
        result = http_client_call(request, answer, error);
        if (result == 0)
                hide_key(key, answer->body, answer->len);
        secrets_free(header, strlen(header));
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

static int
exit_status_of(int http_status)
{
        if (http_status == 401 || http_status == 403)
                return EX_NOPERM;
        if (http_status == 404 || (http_status >= 300 && http_status <= 399))
                return EX_CONFIG;
        return http_status == 429 || http_status >= 500 ? EX_TEMPFAIL : EX_DATAERR;
}

/* Append what the service says. A long reason is cut at its end. */
static void
quote(struct error *reason, const char *before, const char *text)
{
        size_t len = strlen(reason->text);

        if (text != NULL)
                (void)snprintf(reason->text + len, sizeof(reason->text) - len, "%s%s", before, text);
}

/* Explain an answer that refuses the request, by what it says itself. Returns the exit status. */
static int
explain_refusal(const struct http_client_answer *answer, struct service_failure *failure)
{
        struct error *reason = &failure->reason, ignored;
        struct json_value *root = json_tree_parse(answer->body, answer->len, &ignored);
        const struct json_value *said = json_tree_get(root, "error"),
                                *list = json_tree_get(said, "violations"),
                                *violation = list == NULL ? NULL : list->first;
        int status = exit_status_of(answer->status);

        (void)error_set(reason, "the service answers %d", answer->status);
        quote(reason, " ", json_tree_text(said, "code"));
        quote(reason, ": ", json_tree_text(said, "message"));
        quote(reason, "; request id ", json_tree_text(said, "requestId"));
        for (; violation != NULL; violation = violation->next) {
                quote(reason, "; ", json_tree_text(violation, "field"));
                quote(reason, ": ", json_tree_text(violation, "message"));
        }
        json_tree_free(root);
        if (status == EX_NOPERM)
                failure->remedy = "check the API key in [service], and what the service allows it to do";
        else if (status == EX_CONFIG)
                failure->remedy = "check base_url in [service]; it ends with the version, /v1, and redirects "
                                  "are not followed";
        failure->may_be_done = answer->status >= 500;
        return status;
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
service_request(const struct config *config, const char *method, const char *path, const char *body,
                struct json_value **answer, struct service_failure *failure)
{
        struct http_client_request request = {.method = method,
                                              .body = body,
                                              .len = body == NULL ? 0 : strlen(body)};
        struct http_client_answer received;
        char *key;
        int status;

        *failure = (struct service_failure){0};
        *answer = NULL;
        if (config->service_base_url == NULL) {
                (void)error_set(&failure->reason,
                                "no service; set base_url in [service] of %s, such as https://api.example/v1",
                                config->file);
                return EX_CONFIG;
        }
        if ((key = read_key(config, &failure->reason)) == NULL)
                return EX_CONFIG;
        status = call(config, key, &request, path, &received, &failure->reason);
        secrets_free(key, strlen(key));
        if (status != 0)
                return explain_absence(&received, failure);
        failure->http_status = received.status;
        if (received.status >= 200 && received.status <= 299)
                status = read_answer(&received, answer, failure);
        else
                status = explain_refusal(&received, failure);
        free(received.body);
        return status;
}
