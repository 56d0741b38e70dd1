#include "cli/source_choice.h"

#include <errno.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/command.h"
#include "config/config.h"
#include "config/secrets.h"
#include "model/signature.h"

int
source_choice_check(const struct source_choice *choice, struct error *error)
{
        if ((choice->secret_file == NULL) != (choice->header_prefix == NULL))
                return error_set(error, "--secret-file and --header-prefix go together");
        if (choice->secret_file != NULL && choice->name != NULL)
                return error_set(error, "takes either --source or --secret-file, not both");
        return 0;
}

/* Load or make the configuration. Return NULL, with *status, after printing why. */
static struct config *
load(const struct source_choice *choice, const char *file, int *status)
{
        struct config *config = NULL;
        struct error error;
        size_t len = 0;
        char *secret;

        if (choice->secret_file == NULL) {
                *status = EX_CONFIG;
                return config_load(file);
        }
        secret = secrets_read_signing(choice->secret_file, &len, NULL, &error);
        secrets_free(secret, len);
        if (secret == NULL) {
                *status = source_choice_secret_status(choice->secret_file);
        } else {
                *status = EX_USAGE;
                config = config_for_secret(choice->secret_file, choice->header_prefix, &error);
        }
        if (config == NULL)
                (void)command_fail(*status, "%s", error.text);
        return config;
}

int
source_choice_secret_status(const char *secret_file)
{
        if (access(secret_file, R_OK) == 0)
                return EX_DATAERR;
        return errno == EACCES ? EX_NOPERM : EX_NOINPUT;
}

int
source_choice_run(const struct source_choice *choice, const char *file,
                  int (*run)(const struct config *config))
{
        int status;
        struct config *config = load(choice, file, &status);

        if (config != NULL)
                status = run(config);
        config_free(config);
        return status;
}

const struct config_source *
source_choice_find(const char *name, const struct config *config)
{
        const struct config_source *source =
            name == NULL ? &config->sources[0] : config_find_source(config, name, strlen(name));

        if (source == NULL)
                (void)command_fail(EX_USAGE, "no source %s is configured", name);
        return source;
}
