#include "cli/subscriptions.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/service_refusal.h"
#include "cli/subscription_calls.h"
#include "cli/subscription_run.h"
#include "cli/subscription_secret.h"
#include "config/secrets.h"

static void
print_json(const struct subscription_views *views)
{
        yajl_gen json = json_new(1);

        (void)yajl_gen_array_open(json);
        for (size_t i = 0; i < views->n; i++) {
                (void)yajl_gen_map_open(json);
                subscription_calls_members(json, &views->items[i]);
                (void)yajl_gen_map_close(json);
        }
        (void)yajl_gen_array_close(json);
        json_print(json);
}

static void
print_text(const struct subscription_views *views)
{
        if (views->n > 0)
                printf("%-36s %-50s %s\n", "ID", "URL", "EVENTS");
        for (size_t i = 0; i < views->n; i++) {
                const struct subscription_view *view = &views->items[i];

                text_print_column(view->id, strlen(view->id), 36);
                text_print_column(view->url, strlen(view->url), 50);
                subscription_calls_print_events(view);
                putchar('\n');
        }
}

static int
list(struct service *service, const struct config *config, const char *command,
     const struct subscription_args *args)
{
        struct subscription_views views;
        int status = subscription_calls_list(service, command, &views);

        (void)config;
        if (status == 0)
                (args->as_json ? print_json : print_text)(&views);
        subscription_views_clear(&views);
        return status;
}

/* The service does not document how it answers, so what was registered may not be shown. */
static void
print_added(const struct service_answer *answer, const struct subscription_args *args)
{
        struct subscription_views views;
        struct subscription_view view = {.url = (char *)(uintptr_t)args->url,
                                         .events = args->events,
                                         .n_events = args->n_events};

        service_answer_one(answer->body, answer->len, &views);
        if (views.n == 1) {
                view.id = views.items[0].id;
                view.created = views.items[0].created;
        }
        if (args->as_json) {
                yajl_gen json = json_new(1);

                (void)yajl_gen_map_open(json);
                subscription_calls_members(json, &view);
                (void)yajl_gen_map_close(json);
                json_print(json);
        } else if (view.id != NULL) {
                subscription_calls_print(&view);
        }
        if (view.id == NULL)
                fprintf(stderr,
                        "gatepost subscriptions add: it is registered, but the service does not say under "
                        "which ID; see gatepost subscriptions list\n");
        subscription_views_clear(&views);
}

/* Registering is not repeated: a service that failed may have registered it all the same. */
static int
add(struct service *service, const struct config *config, const char *command,
    const struct subscription_args *args)
{
        struct service_answer answer = {0};
        size_t len = 0;
        int status;
        char *payload = subscription_secret_payload(args, config, &len, &status);

        if (payload == NULL)
                return status;
        service_call(service, "POST", "/webhooks", payload, len, &answer);
        secrets_free(payload, len);
        if (service_succeeded(&answer)) {
                print_added(&answer, args);
        } else {
                status = service_refusal(command, &answer);
                if (service_may_recover(&answer))
                        fprintf(stderr,
                                "    It may be registered all the same: see gatepost subscriptions list, or "
                                "use ensure, which looks\n");
        }
        service_answer_clear(&answer);
        return status;
}

static int
remove_one(struct service *service, const struct config *config, const char *command,
           const struct subscription_args *args)
{
        int was_there, status = subscription_calls_remove(service, command, args->id, &was_there);

        (void)config;
        if (status != 0)
                return status;
        if (!was_there) {
                fprintf(stderr,
                        "gatepost %s: the service has no subscription %s; see gatepost subscriptions list\n",
                        command, args->id);
                return EX_NOINPUT;
        }
        if (args->as_json) {
                yajl_gen json = json_new(1);

                (void)yajl_gen_map_open(json);
                json_member(json, "removed", args->id);
                (void)yajl_gen_map_close(json);
                json_print(json);
        } else {
                printf("removed %s\n", args->id);
        }
        return 0;
}

int
subscriptions_list_run(const struct command_context *context, int argc, char **argv)
{
        return subscription_run(context, argc, argv, "jt", list);
}

int
subscriptions_add_run(const struct command_context *context, int argc, char **argv)
{
        return subscription_run(context, argc, argv, "uesjt", add);
}

int
subscriptions_remove_run(const struct command_context *context, int argc, char **argv)
{
        return subscription_run(context, argc, argv, "ijt", remove_one);
}
