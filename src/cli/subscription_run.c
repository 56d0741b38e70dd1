#include "cli/subscription_run.h"

#include <sysexits.h>

int
subscription_run(const struct command_context *context, int argc, char **argv, const char *takes,
                 subscription_action *act)
{
        struct subscription_args args;
        int status = subscription_args_parse(context, argc, argv, takes, &args);
        struct config *config = NULL;
        struct api_client *client = NULL;

        if (status < 0) {
                config = config_load(context->file);
                status = EX_CONFIG;
        }
        if (config != NULL)
                client = api_client_open(config, args.timeout_ms, &status);
        if (client != NULL)
                status = act(client, config, context->command->name, &args);
        api_client_close(client);
        config_free(config);
        subscription_args_clear(&args);
        return status;
}
