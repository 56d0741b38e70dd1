#include <getopt.h>
#include <stdio.h>
#include <sysexits.h>

#include "base/log.h"
#include "base/process.h"
#include "config/access_check.h"
#include "config/config.h"
#include "daemon/daemon.h"
#include "daemon/reload.h"
#include "http/listen_check.h"
#include "http/tls.h"
#include "kafka/clients_check.h"
#include "spool/spool_place.h"

static void
usage(FILE *out)
{
        fprintf(out,
                "usage: gatepostd [-t] [-c FILE]\n"
                "Receives signed webhook deliveries and publishes each as one event on Kafka. Stays in the "
                "foreground\n"
                "and logs to stderr.\n\n"
                "  -c, --config FILE  the configuration (default: %s)\n"
                "  -t, --test         check the configuration and exit\n"
                "  -h, --help         show this and exit\n"
                "  -V, --version      show the version and exit\n",
                CONFIG_DEFAULT_FILE);
}

/* Warnings of the start, which are logged when the log level is known. */
static struct problems warnings;

static void
report_at_start(const char *file, const struct problem *problem)
{
        if (problem->level == PROBLEM_ERROR)
                problems_print(file, problem);
        else
                problems_warn(&warnings, problem->line, "%s", problem->text);
}

static void
log_warnings(const struct config *config)
{
        log_set_level(config->log_level);
        for (size_t i = 0; i < warnings.n; i++)
                reload_log_problem(config->file, &warnings.items[i]);
        problems_clear(&warnings);
}

int
main(int argc, char **argv)
{
        static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                                {"test", no_argument, NULL, 't'},
                                                {"help", no_argument, NULL, 'h'},
                                                {"version", no_argument, NULL, 'V'},
                                                {NULL, 0, NULL, 0}};
        const char *file = CONFIG_DEFAULT_FILE;
        struct config *config;
        int option, only_check = 0, status = 0;

        daemon_hold_signals();
        process_open_standard_files();
        while ((option = getopt_long(argc, argv, "c:thV", options, NULL)) != -1) {
                switch (option) {
                case 'c':
                        file = optarg;
                        break;
                case 't':
                        only_check = 1;
                        break;
                case 'h':
                        usage(stdout);
                        return 0;
                case 'V':
                        printf("gatepostd %s\n", PACKAGE_VERSION);
                        return 0;
                default:
                        usage(stderr);
                        return EX_USAGE;
                }
        }
        if (optind != argc) {
                fprintf(stderr, "gatepostd: unexpected argument '%s'; -c FILE names a configuration\n",
                        argv[optind]);
                usage(stderr);
                return EX_USAGE;
        }
        log_init();
        config = config_load_reporting(file, only_check ? problems_print : report_at_start);
        if (config == NULL)
                return EX_CONFIG;
        log_warnings(config);
        if (only_check)
                access_check_files(config, problems_print);
        if (tls_check_strength(config, problems_print) != 0 || clients_check(config, problems_print) != 0 ||
            (only_check &&
             (tls_check_dates(config, problems_print) != 0 || listen_check(config, problems_print) != 0 ||
              spool_place_check(config, problems_print) != 0 ||
              access_check_state(config, problems_print) != 0)))
                status = EX_CONFIG;
        else if (!only_check)
                status = daemon_run(config);
        config_free(config);
        return status;
}
