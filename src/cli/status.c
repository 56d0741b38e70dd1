#include "cli/commands.h"

#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/number.h"
#include "cli/interrupt.h"
#include "cli/status_print.h"

#define WATCH_MS 5000
#define CLEAR_SCREEN "\033[H\033[J"

/* What the arguments ask for. */
struct wish {
        int as_json;
        uint64_t watch_ms; /* 0: once */
};

static void
show(const struct status *status, const struct status *earlier, const struct wish *wish)
{
        struct status_rates rates;

        status_rates(status, earlier, &rates);
        if (wish->as_json) {
                status_print_json(status, &rates, wish->watch_ms > 0);
        } else {
                if (wish->watch_ms > 0)
                        fputs(isatty(STDOUT_FILENO) ? CLEAR_SCREEN : earlier != NULL ? "\n" : "", stdout);
                status_print(status, &rates);
        }
}

/* Ask once. Returns an exit status, and the status in place of the earlier one. */
static int
ask(const struct own_url *endpoint, const struct wish *wish, struct status *earlier, int *has_earlier)
{
        struct status status;
        struct error error;
        int exit_status;

        if (status_read(endpoint, &status, &error) != 0) {
                fprintf(stderr, "gatepost status: %s\n", error.text);
                return EX_UNAVAILABLE;
        }
        show(&status, *has_earlier ? earlier : NULL, wish);
        exit_status = status.is_ready ? 0 : EX_TEMPFAIL;
        if (*has_earlier)
                status_clear(earlier);
        *earlier = status;
        *has_earlier = 1;
        return exit_status;
}

static int
run(const struct config *config, const struct wish *wish)
{
        struct status earlier;
        struct own_url endpoint;
        int has_earlier = 0, exit_status;

        if (config->admin == NULL || own_url_make(config->admin, NULL, "", &endpoint) != 0) {
                fprintf(
                    stderr,
                    "gatepost status: the configuration does not say where to ask: [admin] listen is %s\n",
                    config->admin == NULL ? "off" : "at a port that only gatepostd knows");
                return EX_CONFIG;
        }
        exit_status = ask(&endpoint, wish, &earlier, &has_earlier);
        while (wish->watch_ms > 0 && has_earlier && !interrupt_came() && fflush(stdout) == 0) {
                (void)poll(NULL, 0, (int)wish->watch_ms);
                if (!interrupt_came())
                        exit_status = ask(&endpoint, wish, &earlier, &has_earlier);
        }
        if (has_earlier)
                status_clear(&earlier);
        free(endpoint.url);
        return exit_status;
}

/* Read the arguments. Returns -1 to go on, or an exit status. */
static int
parse(const struct command_context *context, int argc, char **argv, struct wish *wish)
{
        static const struct option options[] = {{"json", no_argument, NULL, 'j'},
                                                {"watch", optional_argument, NULL, 'w'},
                                                {"help", no_argument, NULL, 'h'},
                                                {NULL, 0, NULL, 0}};
        const char *time = NULL;
        struct error error;
        int option;

        while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
                if (option == 'h')
                        return command_help(context);
                if (option == '?')
                        return command_misused(context, "wrong option");
                wish->as_json |= option == 'j';
                if (option == 'w') {
                        wish->watch_ms = WATCH_MS;
                        time = optarg;
                }
        }
        if (time == NULL && wish->watch_ms > 0 && optind < argc) /* --watch 5s, as well as --watch=5s */
                time = argv[optind++];
        if (optind != argc)
                return command_misused(context, "takes no arguments");
        if (time != NULL && number_parse_duration(time, 100, 86400000, &wish->watch_ms, &error) != 0)
                return command_misused(context, "--watch: %s", error.text);
        return -1;
}

int
status_run(const struct command_context *context, int argc, char **argv)
{
        struct wish wish = {0};
        int status = parse(context, argc, argv, &wish);
        struct config *config;

        if (status >= 0)
                return status;
        config = config_load(context->file);
        if (config == NULL)
                return EX_CONFIG;
        interrupt_watch();
        status = run(config, &wish);
        config_free(config);
        return status;
}
