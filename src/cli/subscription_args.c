#include "cli/subscription_args.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/mem.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/service.h"
#include "model/topic_table.h"

#define MAX_TIMEOUT_MS UINT64_C(600000)

/* An unknown kind is told, and left to the service: it may know more than it documents. */
static void
check_kind(const struct topic_table *documented, const char *kind)
{
        const char *names[32], *closest;
        size_t n = topic_table_size(documented);

        for (size_t i = 0; i < n && i < ARRAY_LEN(names); i++) {
                names[i] = topic_table_rule(documented, i)->pattern;
                if (strcmp(names[i], kind) == 0)
                        return;
        }
        if (topic_table_find(documented, kind, strlen(kind)) != NULL)
                return;
        closest = text_closest(kind, names, n < ARRAY_LEN(names) ? n : ARRAY_LEN(names));
        fprintf(stderr, "gatepost: the service documents no events '%s'%s%s%s\n", kind,
                closest == NULL ? "" : "; did you mean ", closest == NULL ? "" : closest,
                closest == NULL ? "" : "?");
}

static int
has_event(const struct subscription_args *args, const char *kind)
{
        for (size_t i = 0; i < args->n_events; i++) {
                if (strcmp(args->events[i], kind) == 0)
                        return 1;
        }
        return 0;
}

/* Read a list of kinds, or `*` alone. Returns 0, or -1 with the reason. */
static int
parse_events(const char *text, struct subscription_args *args, struct error *error)
{
        struct topic_table *documented = topic_table_new();
        char *list = mem_strdup(text), *rest = list, *kind;
        int result = 0;

        topic_table_add_defaults(documented, "x");
        while (result == 0 && (kind = strsep(&rest, ",")) != NULL) {
                size_t len;

                kind += strspn(kind, " ");
                len = strcspn(kind, " ");
                if (len == 0 || kind[len + strspn(kind + len, " ")] != '\0') {
                        result = error_set(error, "takes kinds with commas between them, or '*' for all");
                        continue;
                }
                kind[len] = '\0';
                if (has_event(args, kind))
                        continue;
                if (strcmp(kind, "*") != 0)
                        check_kind(documented, kind);
                args->events = mem_resize(args->events, args->n_events + 1, sizeof(*args->events));
                args->events[args->n_events++] = mem_strdup(kind);
        }
        if (result == 0 && args->n_events > 1 && has_event(args, "*"))
                result = error_set(error, "'*' means every event, and stands alone");
        free(list);
        topic_table_free(documented);
        return result;
}

static int
take_option(const struct command_context *context, int option, struct subscription_args *args)
{
        struct error error;

        if (option == 'u')
                args->url = optarg;
        if (option == 's')
                args->secret_file = optarg;
        if (option == 'e' && args->events != NULL)
                return command_misused(context, "--events is there twice; give one list");
        if (option == 'e' && parse_events(optarg, args, &error) != 0)
                return command_misused(context, "--events: %s", error.text);
        if (option == 't' && number_parse_duration(optarg, 1, MAX_TIMEOUT_MS, &args->timeout_ms, &error) != 0)
                return command_misused(context, "--timeout: %s", error.text);
        args->is_dry |= option == 'd';
        args->rotates |= option == 'r';
        args->as_json |= option == 'j';
        return -1;
}

static int
check_complete(const struct command_context *context, int argc, char **argv, const char *takes,
               struct subscription_args *args)
{
        if (strchr(takes, 'u') != NULL &&
            (args->url == NULL || args->events == NULL || args->secret_file == NULL))
                return command_misused(context, "needs --url, --events and --secret-file");
        if (strchr(takes, 'i') == NULL)
                return optind == argc ? -1 : command_misused(context, "takes no arguments but options");
        if (argc - optind != 1 || argv[optind][0] == '\0')
                return command_misused(context, "needs an ID, as gatepost subscriptions list shows it");
        args->id = argv[optind];
        return -1;
}

int
subscription_args_parse(const struct command_context *context, int argc, char **argv, const char *takes,
                        struct subscription_args *args)
{
        static const struct option options[] = {{"url", required_argument, NULL, 'u'},
                                                {"events", required_argument, NULL, 'e'},
                                                {"secret-file", required_argument, NULL, 's'},
                                                {"dry-run", no_argument, NULL, 'd'},
                                                {"rotate", no_argument, NULL, 'r'},
                                                {"json", no_argument, NULL, 'j'},
                                                {"timeout", required_argument, NULL, 't'},
                                                {"help", no_argument, NULL, 'h'},
                                                {NULL, 0, NULL, 0}};
        int option;

        *args = (struct subscription_args){.timeout_ms = SERVICE_TIMEOUT_MS};
        while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
                int status;

                if (option == 'h')
                        return command_help(context);
                if (option == '?' || strchr(takes, option) == NULL)
                        return command_misused(context, "wrong option");
                status = take_option(context, option, args);
                if (status >= 0)
                        return status;
        }
        return check_complete(context, argc, argv, takes, args);
}

void
subscription_args_clear(struct subscription_args *args)
{
        for (size_t i = 0; i < args->n_events; i++)
                free(args->events[i]);
        free(args->events);
}
