#include "cli/subscription_run.h"

#include <sysexits.h>

int
subscription_run(const struct command_context *context, int argc, char **argv, const char *takes,
                 subscription_action *act)
{
        struct subscription_args args;
        int status = subscription_args_parse(context, argc, argv, takes, &args);
        struct config *config = NULL;
        struct service *service = NULL;

        if (status < 0) {
                config = config_load(context->file);
                status = EX_CONFIG;
        }
        if (config != NULL)
                service = service_open(config, args.timeout_ms, &status);
        if (service != NULL)
                status = act(service, config, context->command->name, &args);
        service_close(service);
        config_free(config);
        subscription_args_clear(&args);
        return status;
}
