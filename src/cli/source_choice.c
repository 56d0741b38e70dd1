#include "cli/source_choice.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "config/config.h"
#include "config/secrets.h"
#include "model/signature.h"

int
source_choice_check(const struct source_choice *choice, const struct command_context *context)
{
        if ((choice->secret_file == NULL) != (choice->header_prefix == NULL))
                return command_misused(context, "--secret-file and --header-prefix go together");
        if (choice->secret_file != NULL && choice->name != NULL)
                return command_misused(context, "needs either --source or --secret-file, not both");
        return -1;
}

struct config *
source_choice_load(const struct source_choice *choice, const struct command_context *context, int *status)
{
        struct config *config = NULL;
        struct error error;
        size_t len = 0;
        char *secret;

        if (choice->secret_file == NULL) {
                *status = EX_CONFIG;
                return config_load(context->file);
        }
        secret = secrets_read_signing(choice->secret_file, &len, &error);
        secrets_free(secret, len);
        if (secret == NULL) {
                *status = source_choice_secret_status(choice->secret_file);
        } else {
                *status = EX_USAGE;
                config = config_for_secret(choice->secret_file, choice->header_prefix, &error);
        }
        if (config == NULL)
                fprintf(stderr, "gatepost %s: %s\n", context->command->name, error.text);
        return config;
}

int
source_choice_secret_status(const char *secret_file)
{
        if (access(secret_file, R_OK) == 0)
                return EX_DATAERR;
        return errno == EACCES ? EX_NOPERM : EX_NOINPUT;
}

const struct config_source *
source_choice_find(const struct source_choice *choice, const struct config *config,
                   const struct command_context *context)
{
        const struct config_source *source;

        if (choice->name == NULL)
                return &config->sources[0];
        source = config_find_source(config, choice->name, strlen(choice->name));
        if (source == NULL)
                fprintf(stderr, "gatepost %s: no source %s is configured\n", context->command->name,
                        choice->name);
        return source;
}
