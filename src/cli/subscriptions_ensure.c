#include "cli/commands.h"

#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "cli/ensuring.h"
#include "cli/subscription_calls.h"
#include "cli/subscription_run.h"
#include "cli/subscription_secret.h"
#include "config/secrets.h"

static void
print_text(const struct ensuring *ensuring)
{
        const struct subscription_args *args = ensuring->args;

        if (ensuring->right != NULL) {
                printf("%s ", ensuring->was_updated    ? "updated"
                              : ensuring->was_added    ? "added"
                              : ensuring->vain != NULL ? "stays:"
                                                       : "is right:");
                subscription_calls_print(ensuring->right);
        } else if (args->is_dry) {
                struct subscription_view wanted = {.id = "a new one:",
                                                   .url = (char *)(uintptr_t)args->url,
                                                   .events = args->events,
                                                   .n_events = args->n_events};

                printf("would add ");
                subscription_calls_print(&wanted);
        }
        for (size_t i = 0; i < (args->is_dry ? ensuring->n_old : ensuring->n_removed); i++) {
                printf("%s ", args->is_dry ? "would remove" : "removed");
                subscription_calls_print(ensuring->old[i]);
        }
}

static void
print_json(const struct ensuring *ensuring)
{
        const struct subscription_args *args = ensuring->args;
        yajl_gen json = json_new(1);

        (void)yajl_gen_map_open(json);
        json_member(json, "id", ensuring->right == NULL ? NULL : ensuring->right->id);
        json_flag(json, "added",
                  args->is_dry ? ensuring->right == NULL : ensuring->was_added && !ensuring->was_updated);
        json_flag(json, "updated", ensuring->was_updated);
        json_text(json, "removed");
        (void)yajl_gen_array_open(json);
        for (size_t i = 0; i < (args->is_dry ? ensuring->n_old : ensuring->n_removed); i++)
                json_text(json, ensuring->old[i]->id);
        (void)yajl_gen_array_close(json);
        json_flag(json, "dryRun", args->is_dry);
        (void)yajl_gen_map_close(json);
        json_print(json);
}

static int
ensure(struct api_client *client, const struct config *config, const char *command,
       const struct subscription_args *args)
{
        struct ensuring ensuring = {.client = client, .command = command, .args = args};
        size_t len = 0;
        int status;
        char *payload = subscription_secret_payload(args, config, &len, &status);

        if (payload == NULL)
                return status;
        status = ensuring_run(&ensuring, payload, len);
        secrets_free(payload, len);
        if (status == 0 || ensuring.was_added || ensuring.n_removed > 0)
                (args->as_json ? print_json : print_text)(&ensuring);
        ensuring_clear(&ensuring);
        return status;
}

int
subscriptions_ensure_run(const struct command_context *context, int argc, char **argv)
{
        return subscription_run(context, argc, argv, "uesdrjt", ensure);
}
