#include "cli/subscription.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>

#include <curl/curl.h>
#include <openssl/crypto.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/uri.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/source_choice.h"
#include "config/secrets.h"

int
subscription_list(struct api_client *client, struct subscription_views *views)
{
        struct api_client_answer answer;
        struct error error;
        int status = 0;

        memset(views, 0, sizeof(*views));
        api_client_call_repeatedly(client, "GET", "/webhooks", &answer);
        if (!api_client_succeeded(&answer)) {
                status = api_client_report(command_name(), &answer);
        } else if (service_answer_list(answer.body, answer.len, views, &error) != 0) {
                fprintf(stderr,
                        "gatepost %s: the service's answer to GET /webhooks (%ld) is not understood: ",
                        command_name(), answer.status);
                text_print(stderr, error.text, strlen(error.text));
                fprintf(stderr, "; check base_url in [service]\n");
                status = EX_DATAERR;
        }
        api_client_answer_clear(&answer);
        return status;
}

int
subscription_remove(struct api_client *client, const char *id, int *was_there)
{
        char *escaped = api_client_escape(id), *path = mem_printf("/webhooks/%s", escaped);
        struct api_client_answer answer = {0};
        int status = 0;

        *was_there = 1;
        if (strcmp(id, ".") == 0 || strcmp(id, "..") == 0) {
                /* Dots cannot be escaped: a proxy or the service would resolve them as path segments. */
                fprintf(stderr, "gatepost %s: %s is not an ID\n", command_name(), id);
                free(path);
                free(escaped);
                return EX_DATAERR;
        }
        api_client_call_repeatedly(client, "DELETE", path, &answer);
        *was_there = answer.status != 404 && answer.status != 410;
        /* It may have been removed by an earlier call whose answer was lost. */
        if (!*was_there && answer.n_calls > 1)
                *was_there = 1;
        else if (*was_there && !api_client_succeeded(&answer))
                status = api_client_report(command_name(), &answer);
        api_client_answer_clear(&answer);
        free(path);
        free(escaped);
        return status;
}

/* Return whether a part of two URLs is the same, or missing in both. */
static int
same_part(CURLU *a, CURLU *b, CURLUPart part, int (*compare)(const char *one, const char *other))
{
        char *one = NULL, *other = NULL;
        int same;

        (void)curl_url_get(a, part, &one, part == CURLUPART_PORT ? CURLU_DEFAULT_PORT : 0);
        (void)curl_url_get(b, part, &other, part == CURLUPART_PORT ? CURLU_DEFAULT_PORT : 0);
        same = one == NULL || other == NULL ? one == other : compare(one, other) == 0;
        curl_free(one);
        curl_free(other);
        return same;
}

int
subscription_same_url(const char *a, const char *b)
{
        CURLU *one = curl_url(), *other = curl_url();
        int same = strcmp(a, b) == 0;

        if (!same && one != NULL && other != NULL && curl_url_set(one, CURLUPART_URL, a, 0) == CURLUE_OK &&
            curl_url_set(other, CURLUPART_URL, b, 0) == CURLUE_OK)
                same = same_part(one, other, CURLUPART_SCHEME, strcasecmp) &&
                       same_part(one, other, CURLUPART_HOST, strcasecmp) &&
                       same_part(one, other, CURLUPART_PORT, strcmp) &&
                       same_part(one, other, CURLUPART_PATH, strcmp) &&
                       same_part(one, other, CURLUPART_QUERY, strcmp) &&
                       same_part(one, other, CURLUPART_USER, strcmp) &&
                       same_part(one, other, CURLUPART_PASSWORD, strcmp);
        curl_url_cleanup(one);
        curl_url_cleanup(other);
        return same;
}

static int
contains(char *const *events, size_t n, const char *event)
{
        for (size_t i = 0; i < n; i++) {
                if (strcmp(events[i], event) == 0)
                        return 1;
        }
        return 0;
}

int
subscription_same_events(const struct subscription_view *view, char *const *events, size_t n)
{
        for (size_t i = 0; i < view->n_events; i++) {
                if (!contains(events, n, view->events[i]))
                        return 0;
        }
        for (size_t i = 0; i < n; i++) {
                if (!contains(view->events, view->n_events, events[i]))
                        return 0;
        }
        return 1;
}

void
subscription_print_events(const struct subscription_view *view)
{
        for (size_t i = 0; i < view->n_events; i++) {
                if (i > 0)
                        putchar(',');
                text_print(stdout, view->events[i], strlen(view->events[i]));
        }
}

int
subscription_covers(const char *event, const char *other)
{
        return arguments_kind_matches(event, other, strlen(other));
}

int
subscription_shows(const struct subscription_view *view, const char *event)
{
        for (size_t i = 0; i < view->n_events; i++) {
                if (subscription_covers(view->events[i], event))
                        return 1;
        }
        return 0;
}

const char *
subscription_common_event(const char *one, const char *other)
{
        if (subscription_covers(one, other))
                return other;
        return subscription_covers(other, one) ? one : NULL;
}

char *
subscription_shown_url(const struct subscription_view *view)
{
        return view->url == NULL ? NULL : uri_hide_secrets(view->url);
}

void
subscription_print(const struct subscription_view *view)
{
        char *url = subscription_shown_url(view);

        text_print(stdout, view->id, strlen(view->id));
        putchar(' ');
        if (url != NULL)
                text_print(stdout, url, strlen(url));
        free(url);
        putchar(' ');
        subscription_print_events(view);
        putchar('\n');
}

void
subscription_put_members(struct json_writer *json, const struct subscription_view *view)
{
        char *url = subscription_shown_url(view);

        json_member(json, "id", view->id);
        json_member(json, "url", url);
        free(url);
        json_open_array(json, "events");
        for (size_t i = 0; i < view->n_events; i++)
                json_member(json, NULL, view->events[i]);
        json_close_array(json);
        json_member(json, "createdAt", view->created);
}

/* Return whether a source has the secret, or it cannot be found out. */
static int
is_configured(const struct config *config, const char *secret, size_t len)
{
        struct signature_key *key = signature_key_new(secret, len);
        uint8_t signature[SIGNATURE_SIZE];
        int found = 0;

        if (key == NULL || signature_compute(key, "0", "", 0, signature) != 0)
                found = 1;
        for (size_t i = 0; i < config->n_sources && !found; i++)
                found = signature_verify(config->sources[i].keys, config->sources[i].n_keys, "0", "", 0,
                                         signature) != 0;
        signature_key_free(key);
        return found;
}

static char *
write_payload(const struct subscription_args *args, const char *secret, size_t secret_len, size_t *len)
{
        struct json_writer *json = json_new(0);

        json_open_object(json, NULL);
        json_member(json, "url", args->url);
        json_open_array(json, "events");
        for (size_t i = 0; i < args->n_events; i++)
                json_member(json, NULL, args->events[i]);
        json_close_array(json);
        json_string(json, "secret", secret, secret_len);
        json_close_object(json);
        return json_take(json, len);
}

char *
subscription_payload(const struct subscription_args *args, const struct config *config, size_t *len,
                     int *status)
{
        struct error error;
        size_t secret_len;
        char *secret = secrets_read_signing(args->secret_file, &secret_len, NULL, &error), *payload = NULL;

        *status = 0;
        if (secret == NULL) {
                fprintf(stderr, "gatepost: %s\n", error.text);
                *status = source_choice_secret_status(args->secret_file);
                return NULL;
        }
        if (!text_is_utf8(args->url, strlen(args->url))) {
                fprintf(stderr, "gatepost: --url is not UTF-8\n");
                *status = EX_USAGE;
        } else if (!text_is_utf8(secret, secret_len)) {
                fprintf(stderr,
                        "gatepost: the secret in %s is not UTF-8, as JSON requires; create one with gatepost "
                        "secret new FILE\n",
                        args->secret_file);
                *status = EX_DATAERR;
        } else {
                if (!is_configured(config, secret, secret_len))
                        fprintf(stderr,
                                "gatepost: no [source] of %s has the secret in %s; until one has, gatepostd "
                                "refuses its deliveries\n",
                                config->file, args->secret_file);
                payload = write_payload(args, secret, secret_len, len);
        }
        secrets_free(secret, secret_len);
        return payload;
}
