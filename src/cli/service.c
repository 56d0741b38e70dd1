#include "cli/service.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/http_client.h"
#include "base/mem.h"
#include "config/secrets.h"

#define ANSWER_MAX 1048576 /* bytes */
#define MAX_VIOLATIONS 5   /* that are quoted */
#define MAX_TEXT 200       /* bytes of each text that is quoted */

struct service {
        char *base_url; /* without a slash at its end */
        const char *ca_file;
        long timeout_ms;
        char *key;
        size_t key_len;
};

/* Read the API key. Returns 0, or an exit status with the reason. */
static int
read_key(struct service *service, const struct config *config, struct error *error)
{
        const char *file = config->service_api_key_file;
        int status = EX_CONFIG;

        if (config->service_api_key != NULL) {
                service->key = mem_strdup(config->service_api_key);
                service->key_len = strlen(service->key);
        } else if (file == NULL) {
                (void)error_set(error, "no API key; set api_key_file in [service] of %s", config->file);
        } else {
                if (access(file, R_OK) != 0 && errno == EACCES)
                        status = EX_NOPERM;
                service->key = secrets_read(file, 1, &service->key_len, NULL, error);
        }
        return service->key != NULL && secrets_check_api_key(service->key, error) == 0 ? 0 : status;
}

/* Take over what the configuration says. Returns 0, or an exit status with the reason. */
static int
configure(struct service *service, const struct config *config, struct error *error)
{
        size_t len;

        if (config->service_base_url == NULL) {
                (void)error_set(error,
                                "no service; set base_url in [service] of %s, such as https://api.example/v1",
                                config->file);
                return EX_CONFIG;
        }
        service->base_url = mem_strdup(config->service_base_url);
        len = strlen(service->base_url);
        while (len > 0 && service->base_url[len - 1] == '/')
                service->base_url[--len] = '\0';
        service->ca_file = config->service_ca_file;
        if (service->ca_file != NULL && access(service->ca_file, R_OK) != 0) {
                int status = errno == EACCES ? EX_NOPERM : EX_CONFIG;

                (void)error_set(error, "ca_file in [service]: %s: %s", service->ca_file, strerror(errno));
                return status;
        }
        return read_key(service, config, error);
}

struct service *
service_open(const struct config *config, uint64_t timeout_ms, int *status, struct error *error)
{
        struct service *service = mem_alloc(sizeof(*service));

        *service = (struct service){.timeout_ms = (long)timeout_ms};
        *status = configure(service, config, error);
        if (*status == 0)
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
            .timeout_ms = service->timeout_ms,
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
explain_absence(const struct service *service, enum http_client_failure cause,
                struct service_failure *failure)
{
        if (cause == HTTP_CLIENT_UNTRUSTED) {
                (void)error_prefix(&failure->reason, "the API key was not sent");
                failure->remedy = "check base_url and this machine's clock; for an authority of your own, "
                                  "set ca_file in [service]";
                return EX_UNAVAILABLE;
        }
        if (cause == HTTP_CLIENT_TIMED_OUT)
                (void)error_set(&failure->reason, "no answer within %ld ms", service->timeout_ms);
        (void)error_prefix(&failure->reason, "the service cannot be reached");
        failure->remedy = "check base_url in [service], name resolution, and the proxy (https_proxy)";
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

static const char *
remedy_for(int http_status)
{
        switch (exit_status_of(http_status)) {
        case EX_NOPERM:
                return http_status == 401 ? "check api_key_file or api_key in [service]"
                                          : "use a key that may change the webhooks of this account";
        case EX_CONFIG:
                return "check base_url in [service]; it ends with the version, /v1, and redirects are not "
                       "followed";
        case EX_TEMPFAIL:
                return "try again later";
        default:
                return NULL;
        }
}

static void
quote(FILE *out, const char *before, const char *text)
{
        if (text != NULL)
                fprintf(out, "%s%.*s", before, MAX_TEXT, text);
}

/* Explain an answer that refuses the request, by what it says itself. Returns the exit status. */
static int
explain_refusal(const struct http_client_answer *answer, struct service_failure *failure)
{
        struct error ignored;
        struct json_value *root = json_tree_parse(answer->body, answer->len, &ignored);
        const struct json_value *said = json_tree_get(root, "error");
        const struct json_value *list = json_tree_get(said, "violations"),
                                *violation = list == NULL ? NULL : list->first;
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        if (out != NULL) {
                fprintf(out, "the service answers %d", answer->status);
                quote(out, " ", json_tree_text(said, "code"));
                quote(out, ": ", json_tree_text(said, "message"));
                for (int i = 0; violation != NULL && i < MAX_VIOLATIONS; i++, violation = violation->next) {
                        quote(out, "; ", json_tree_text(violation, "field"));
                        quote(out, ": ", json_tree_text(violation, "message"));
                }
                quote(out, "; request id ", json_tree_text(said, "requestId"));
                if (fclose(out) == 0)
                        (void)error_set(&failure->reason, "%s", text);
                free(text);
        }
        json_tree_free(root);
        failure->remedy = remedy_for(answer->status);
        return exit_status_of(answer->status);
}

/* Read a successful answer. Returns 0, or an exit status with the failure. */
static int
read_answer(const struct http_client_answer *answer, struct json_value **root,
            struct service_failure *failure)
{
        *root = NULL;
        if (answer->len == 0)
                return 0;
        if (answer->is_cut)
                (void)error_set(&failure->reason, "it is longer than %d bytes", ANSWER_MAX);
        else if ((*root = json_tree_parse(answer->body, answer->len, &failure->reason)) != NULL)
                return 0;
        (void)error_prefix(&failure->reason, "the service's answer is not understood");
        failure->remedy = "check base_url in [service]";
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
        if (call(service, method, path, body, &received, &failure->reason) != 0) {
                failure->was_sent = received.is_connected && received.failure != HTTP_CLIENT_UNTRUSTED;
                return explain_absence(service, received.failure, failure);
        }
        failure->was_sent = 1;
        failure->http_status = received.status;
        if (received.status >= 200 && received.status <= 299)
                status = read_answer(&received, answer, failure);
        else
                status = explain_refusal(&received, failure);
        free(received.body);
        return status;
}

int
service_may_have_done(const struct service_failure *failure)
{
        return failure->was_sent && (failure->http_status < 300 || failure->http_status >= 500);
}
