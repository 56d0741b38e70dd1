#include "cli/subscription_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>

#include <curl/curl.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/service_refusal.h"

int
subscription_calls_list(struct service *service, const char *command, struct subscription_views *views)
{
        struct service_answer answer;
        struct error error;
        int status = 0;

        memset(views, 0, sizeof(*views));
        service_call_again(service, "GET", "/webhooks", &answer);
        if (!service_succeeded(&answer)) {
                status = service_refusal(command, &answer);
        } else if (service_answer_list(answer.body, answer.len, views, &error) != 0) {
                fprintf(stderr,
                        "gatepost %s: the service's answer to GET /webhooks (%ld) is not understood: ",
                        command, answer.status);
                text_print(stderr, error.text, strlen(error.text));
                fprintf(stderr, "; check base_url in [service]\n");
                status = EX_DATAERR;
        }
        service_answer_clear(&answer);
        return status;
}

int
subscription_calls_remove(struct service *service, const char *command, const char *id, int *was_there)
{
        char *escaped = service_escape(id), *path = mem_printf("/webhooks/%s", escaped);
        struct service_answer answer = {0};
        int status = 0;

        *was_there = 1;
        if (strcmp(id, ".") == 0 || strcmp(id, "..") == 0) {
                /* Nothing escapes dots: a proxy or the service would take it for the path above. */
                fprintf(stderr, "gatepost %s: %s is no ID of a subscription\n", command, id);
                free(path);
                free(escaped);
                return EX_DATAERR;
        }
        service_call_again(service, "DELETE", path, &answer);
        *was_there = answer.status != 404 && answer.status != 410;
        /* After a try whose answer was lost it may be gone for that. */
        if (!*was_there && answer.n_calls > 1)
                *was_there = 1;
        else if (*was_there && !service_succeeded(&answer))
                status = service_refusal(command, &answer);
        service_answer_clear(&answer);
        free(path);
        free(escaped);
        return status;
}

/* Whether a part of two URLs is the same, or missing in both. */
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
subscription_calls_same_url(const char *a, const char *b)
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
subscription_calls_same_events(const struct subscription_view *view, char *const *events, size_t n)
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
subscription_calls_print_events(const struct subscription_view *view)
{
        for (size_t i = 0; i < view->n_events; i++) {
                if (i > 0)
                        putchar(',');
                text_print(stdout, view->events[i], strlen(view->events[i]));
        }
}

void
subscription_calls_print(const struct subscription_view *view)
{
        text_print(stdout, view->id, strlen(view->id));
        putchar(' ');
        if (view->url != NULL)
                text_print(stdout, view->url, strlen(view->url));
        putchar(' ');
        subscription_calls_print_events(view);
        putchar('\n');
}

void
subscription_calls_members(yajl_gen json, const struct subscription_view *view)
{
        json_member(json, "id", view->id);
        json_member(json, "url", view->url);
        json_text(json, "events");
        (void)yajl_gen_array_open(json);
        for (size_t i = 0; i < view->n_events; i++)
                json_text(json, view->events[i]);
        (void)yajl_gen_array_close(json);
        json_member(json, "createdAt", view->created);
}
