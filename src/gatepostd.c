#include <getopt.h>
#include <stdio.h>
#include <sysexits.h>

#include "base/account.h"
#include "base/log.h"
#include "base/process.h"
#include "daemon/daemon.h"
#include "daemon/reload.h"
#include "http/listen_check.h"
#include "http/tls.h"
#include "kafka/clients_check.h"
#include "spool/config_checks.h"

static void
usage(FILE *out)
{
        fprintf(out,
                "usage: gatepostd [-t] [--user NAME] [-c FILE]\n"
                "Receives signed webhook deliveries and publishes each as one event on Kafka. Stays in the "
                "foreground\n"
                "and logs to stderr.\n\n"
                "  -c, --config FILE  the configuration (default: %s)\n"
                "  -t, --test         check the configuration and exit\n"
                "      --user NAME    check as this user, when root runs it (default: gatepost)\n"
                "  -h, --help         show this and exit\n"
                "  -V, --version      show the version and exit\n",
                CONFIG_DEFAULT_FILE);
}

/* Become the user of the daemon, if root checks. Returns 0, or an exit status. */
static int
become(const char *user)
{
        struct error error;
        int result = account_become(user, &error);

        if (result > 0)
                fprintf(stderr, "gatepostd: checking as user %s; --user root to do otherwise\n",
                        user == NULL ? ACCOUNT_SERVICE_USER : user);
        if (result < 0)
                fprintf(stderr, "gatepostd: --user: %s\n", error.text);
        return result < 0 ? EX_NOPERM : 0;
}

/* Print what is wrong with the configuration, as `gatepost check` does. Returns an exit status. */
static int
check(const char *file, const char *user)
{
        struct findings findings = {0};
        struct config *config;
        int status = become(user);

        if (status != 0)
                return status;
        config = config_checks_load(file, &findings);
        if (config != NULL)
                listen_check(config, &findings);
        for (size_t i = 0; i < findings.n; i++)
                finding_print(stderr, &findings.items[i]);
        status = findings_status(&findings);
        findings_clear(&findings);
        config_free(config);
        return status;
}

/* Warnings are logged when the log level is known; errors are printed: nobody may read the log yet. */
static void
report(const struct findings *findings, const struct config *config)
{
        for (size_t i = 0; i < findings->n; i++) {
                if (config == NULL || findings->items[i].level == FINDING_ERROR)
                        finding_print(stderr, &findings->items[i]);
                else
                        reload_log_finding(&findings->items[i]);
        }
}

static int
run(const char *file)
{
        struct findings findings = {0};
        struct config *config = config_load_reporting(file, &findings);
        int status;

        if (config != NULL) {
                log_set_level(config->log_level);
                tls_check_strength(config, &findings);
                clients_check(config, &findings);
        }
        report(&findings, config);
        status = findings_status(&findings);
        findings_clear(&findings);
        if (config != NULL && status == 0)
                status = daemon_run(config);
        config_free(config);
        return status;
}

int
main(int argc, char **argv)
{
        static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                                {"test", no_argument, NULL, 't'},
                                                {"user", required_argument, NULL, 'u'},
                                                {"help", no_argument, NULL, 'h'},
                                                {"version", no_argument, NULL, 'V'},
                                                {NULL, 0, NULL, 0}};
        const char *file = CONFIG_DEFAULT_FILE;
        const char *user = NULL;
        int option, only_check = 0;

        daemon_hold_signals();
        process_open_standard_files();
        while ((option = getopt_long(argc, argv, "c:thV", options, NULL)) != -1) {
                switch (option) {
                case 'c':
                        file = optarg;
                        break;
                case 'u':
                        user = optarg;
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
        return only_check ? check(file, user) : run(file);
}
