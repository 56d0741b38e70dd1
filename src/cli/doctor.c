#include "cli/doctor.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#include "cli/commands.h"
#include "cli/receiver_url.h"
#include "cli/terminal.h"

/*
 * The steps, in the order of dependency: the first failure is the cause of all later ones, as far as it has
 * to do with them. A step is skipped if one that it needs has failed.
 */
enum step {
        CONFIGURATION,
        FILES,
        CERTIFICATE,
        BROKERS,
        CLIENT,
        ADVERTISED,
        PERMISSIONS,
        TOPICS,
        LISTENERS,
        DAEMON,
        DELIVERY,
        PROXY,
        PARTITIONS,
        CLOCK,
        SERVICE,
        N_STEPS,
};

#define NEEDS(step) (1u << (step))

static const struct {
        const char *name;
        unsigned needs;
        void (*check)(struct doctor *doctor);
} steps[N_STEPS] = {
    [CONFIGURATION] = {"configuration", 0, doctor_check_configuration},
    [FILES] = {"files", NEEDS(CONFIGURATION), doctor_check_files},
    [CERTIFICATE] = {"certificate", NEEDS(CONFIGURATION), doctor_check_certificate},
    [BROKERS] = {"brokers", NEEDS(CONFIGURATION), doctor_check_brokers},
    [CLIENT] = {"client", NEEDS(BROKERS), doctor_check_client},
    [ADVERTISED] = {"advertised", NEEDS(CLIENT), doctor_check_advertised},
    [PERMISSIONS] = {"permissions", NEEDS(ADVERTISED), doctor_check_permissions},
    [TOPICS] = {"topics", NEEDS(ADVERTISED), doctor_check_topics},
    [LISTENERS] = {"listeners", NEEDS(CONFIGURATION), doctor_check_listeners},
    [DAEMON] = {"daemon", NEEDS(CONFIGURATION), doctor_check_daemon},
    [DELIVERY] = {"delivery", NEEDS(TOPICS) | NEEDS(PERMISSIONS) | NEEDS(LISTENERS) | NEEDS(DAEMON),
                  doctor_check_delivery},
    [PROXY] = {"proxy", NEEDS(CONFIGURATION), doctor_check_proxy},
    [PARTITIONS] = {"partitions", NEEDS(TOPICS) | NEEDS(PERMISSIONS) | NEEDS(DAEMON) | NEEDS(DELIVERY),
                    doctor_check_partitions},
    [CLOCK] = {"clock", NEEDS(DELIVERY), doctor_check_clock},
    [SERVICE] = {"service", NEEDS(CONFIGURATION), doctor_check_service},
};

/* Return the first step that this one needs and that has failed or was skipped for that, or N_STEPS. */
static unsigned
find_missing(unsigned step, unsigned failed)
{
        unsigned i = 0;

        while (i < N_STEPS && !(steps[step].needs & failed & NEEDS(i)))
                i++;
        return i;
}

/* Whether a failed step is no reason to skip others: one of several brokers is enough to go on. */
static int
can_go_on(const struct doctor *doctor, unsigned step)
{
        return step == BROKERS && doctor->usable != NULL && !doctor->has_two_clusters;
}

/* Without a configuration there is nothing else to check. Programs get each step, and people one line. */
static int
skip_all(struct doctor *doctor)
{
        static char name[32];

        if (doctor->report.json != NULL)
                return 0;
        (void)snprintf(name, sizeof(name), "%d steps skipped", N_STEPS - 1);
        doctor_begin(doctor, name, "%s", "");
        doctor_skip(doctor, "they need a valid configuration");
        return 1;
}

static void
check_all(struct doctor *doctor)
{
        unsigned failed = 0;

        for (unsigned i = 0; i < N_STEPS && !terminal_is_interrupted(); i++) {
                size_t n_before = doctor->report.n_results[DOCTOR_FAILED];
                unsigned missing = find_missing(i, failed);

                if (missing < N_STEPS) {
                        doctor_begin(doctor, steps[i].name, "%s", "");
                        doctor_skip(doctor, "needs what failed above (%s)", steps[missing].name);
                        failed |= NEEDS(i);
                        continue;
                }
                steps[i].check(doctor);
                if (doctor->report.n_results[DOCTOR_FAILED] > n_before && !can_go_on(doctor, i))
                        failed |= NEEDS(i);
                if (failed & NEEDS(CONFIGURATION) && skip_all(doctor))
                        return;
        }
}

static struct {
        int as_json;
        int sends_not;
        const char *url;
} args;

static int
run(const char *file)
{
        char *url = args.url == NULL ? NULL : receiver_url_complete(args.url);
        struct doctor doctor = {.file = file, .url = url, .sends = !args.sends_not};

        doctor_report_begin(&doctor.report, file, args.as_json);
        (void)signal(SIGPIPE, SIG_IGN); /* OpenSSL writes to connections that the other side has closed */
        check_all(&doctor);
        doctor_kafka_close(&doctor);
        json_tree_free(doctor.status);
        config_free(doctor.config);
        free(doctor.restart);
        free(url);
        return doctor_report_end(&doctor.report);
}

static int
check(struct error *error)
{
        return args.url != NULL && receiver_url_check(args.url, error) != 0 ? error_prefix(error, "--to") : 0;
}

static const struct command_option options[] = {
    {"json", NULL, "print JSON", .flag = &args.as_json},
    {"no-send", NULL, "send no test delivery", .flag = &args.sends_not},
    {"to", "URL", "send the test delivery to this URL, as the service does (default: the first `listen`)",
     .text = &args.url},
};

const struct command doctor_command = {
    .name = "doctor",
    .help = "check the installation step by step",
    .check = check,
    .run_with_file = run,
    COMMAND_OPTIONS(options),
};
