#include "cli/doctor.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/unit.h"
#include "cli/commands.h"
#include "cli/receiver_url.h"
#include "kafka/client.h"

#define DESTROY_S 2

/* In the order of dependency: the first failure is the cause of the later ones. */
enum step {
        CONFIGURATION,
        KAFKA,
        BROKERS,
        TOPICS,
        GROUP,
        LISTEN,
        DAEMON,
        LOADED,
        STATE,
        DELIVERY,
        ROUTER,
        CLOCK,
        SERVICE,
        N_STEPS,
};

#define NEEDS(step) (1u << (step))

static const struct {
        const char *name;
        unsigned needs; /* it is skipped if one of these has failed, or was skipped for that */
        void (*check)(struct doctor *doctor);
} steps[N_STEPS] = {
    [CONFIGURATION] = {"configuration", 0, doctor_check_configuration},
    [KAFKA] = {"kafka", NEEDS(CONFIGURATION), doctor_check_kafka},
    [BROKERS] = {"brokers", NEEDS(KAFKA), doctor_check_brokers},
    [TOPICS] = {"topics", NEEDS(KAFKA), doctor_check_topics},
    [GROUP] = {"group", NEEDS(TOPICS), doctor_check_group},
    [LISTEN] = {"listen", NEEDS(CONFIGURATION), doctor_check_listeners},
    [DAEMON] = {"daemon", NEEDS(CONFIGURATION), doctor_check_daemon},
    [LOADED] = {"loaded", NEEDS(DAEMON), doctor_check_loaded},
    [STATE] = {"state", NEEDS(CONFIGURATION), doctor_check_state},
    [DELIVERY] = {"delivery", NEEDS(TOPICS) | NEEDS(LISTEN) | NEEDS(DAEMON) | NEEDS(LOADED),
                  doctor_check_delivery},
    [ROUTER] = {"router", NEEDS(GROUP) | NEEDS(DELIVERY), doctor_check_router},
    [CLOCK] = {"clock", NEEDS(DELIVERY), doctor_check_clock},
    [SERVICE] = {"service", NEEDS(CONFIGURATION), doctor_check_service},
};

static struct {
        int as_json;
        int sends_not;
        int is_verbose;
        const char *url;
} args;

struct finding *
doctor_fail(struct doctor *doctor, int status, const char *subject, const char *remedy, const char *format,
            ...)
{
        char text[FINDING_TEXT_SIZE];
        struct finding *finding;
        va_list list;

        va_start(list, format);
        (void)vsnprintf(text, sizeof(text), format, list);
        va_end(list);
        finding = findings_add(&doctor->findings, FINDING_ERROR, subject, "%s", text);
        finding->status = status;
        if (remedy != NULL)
                finding_set_remedy(finding, "%s", remedy);
        return finding;
}

/* What is in order or was skipped is only counted, unless --verbose is given. */
static int
is_printed(const struct finding *finding)
{
        return !args.as_json &&
               (args.is_verbose || (finding->level != FINDING_PASSED && finding->level != FINDING_SKIPPED));
}

/* Give an error or a warning a remedy, unless whoever found it knows a better one. */
static void
complete(const struct doctor *doctor, struct finding *finding, unsigned step)
{
        if (finding->remedy != NULL || (finding->level != FINDING_ERROR && finding->level != FINDING_WARNING))
                return;
        if (step == CONFIGURATION)
                finding_set_remedy(finding, "correct it, then: %s check", doctor->command);
        else
                finding_set_remedy(finding, "gatepost-guide(7), TROUBLESHOOTING");
}

/* Name the step of the findings from this one on, and print them. Returns whether one is an error. */
static int
end_step(struct doctor *doctor, unsigned step, size_t first)
{
        int has_failed = 0;

        for (size_t i = first; i < doctor->findings.n; i++) {
                struct finding *finding = &doctor->findings.items[i];

                finding->step = steps[step].name;
                has_failed |= finding->level == FINDING_ERROR;
                complete(doctor, finding, step);
                if (is_printed(finding))
                        finding_print(stdout, finding);
        }
        (void)fflush(stdout);
        return has_failed;
}

static void
check_all(struct doctor *doctor)
{
        unsigned failed = 0;

        for (unsigned i = 0; i < N_STEPS; i++) {
                size_t first = doctor->findings.n;
                int is_skipped = (steps[i].needs & failed) != 0;

                if (is_skipped)
                        (void)doctor_skip(doctor, NULL, "it needs a step that has failed");
                else
                        steps[i].check(doctor);
                if (end_step(doctor, i, first) || is_skipped)
                        failed |= NEEDS(i);
        }
}

/* Return a finding on one line, without its remedy, to be freed. */
static char *
describe(const struct finding *finding)
{
        const char *subject = finding->subject == NULL ? "" : finding->subject;
        char line[32] = "";

        if (finding->line != 0)
                (void)snprintf(line, sizeof(line), ":%zu", finding->line);
        return mem_printf("%s%s%s%s: %s", finding->step, *subject == '\0' ? "" : " ", subject, line,
                          finding->text);
}

static void
print_json(const struct findings *findings)
{
        const struct finding *cause = findings_first(findings, FINDING_ERROR);
        struct json_writer *json = json_new(1);
        char *text = cause == NULL ? NULL : describe(cause);

        json_open_object(json, NULL);
        json_open_array(json, "steps");
        for (size_t i = 0; i < findings->n; i++)
                finding_put_json(json, &findings->items[i]);
        json_close_array(json);
        json_member(json, "cause", text);
        json_member(json, "remedy", cause == NULL ? NULL : cause->remedy);
        json_close_object(json);
        json_print(json);
        free(text);
}

/* Print how much is in order, and the last line: the first failure, or without one the first warning. */
static void
print_end(const struct findings *findings)
{
        const struct finding *first = findings_first(findings, FINDING_ERROR);
        size_t n_skipped = findings_count(findings, FINDING_SKIPPED);
        char *text, *line;

        if (first == NULL)
                first = findings_first(findings, FINDING_WARNING);
        printf("%zu ok", findings_count(findings, FINDING_PASSED));
        if (n_skipped > 0)
                printf(", %zu skipped", n_skipped);
        putchar('\n');
        if (first == NULL) {
                puts("no trouble found");
                return;
        }
        text = describe(first);
        line = mem_printf("%s: %s; remedy: %s", first->level == FINDING_ERROR ? "cause" : "warning", text,
                          first->remedy);
        text_print(stdout, line, strlen(line));
        putchar('\n');
        free(text);
        free(line);
}

/* Nothing has to be undone, and some steps wait for seconds in a library that knows no interrupts. */
static void
on_interrupt(int number)
{
        static const char text[] = "gatepost doctor: interrupted\n";

        (void)number;
        if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
                _exit(EX_IOERR);
        _exit(EX_TEMPFAIL);
}

static void
prepare(struct doctor *doctor)
{
        char *unit = unit_name(doctor->file);

        doctor->command = config_command(doctor->file);
        doctor->start = mem_printf("systemctl start %s; if it does not stay: journalctl -u %s", unit, unit);
        doctor->reload = mem_printf("systemctl reload %s", unit);
        doctor->restart = mem_printf("systemctl restart %s", unit);
        free(unit);
        (void)signal(SIGINT, on_interrupt);
        (void)signal(SIGTERM, on_interrupt);
        (void)signal(SIGPIPE, SIG_IGN); /* OpenSSL writes to connections that the other side has closed */
}

static void
free_doctor(struct doctor *doctor)
{
        if (doctor->client != NULL)
                (void)client_destroy_within(doctor->client, DESTROY_S);
        offsets_free(doctor->offsets);
        json_tree_free(doctor->status);
        config_free(doctor->config);
        findings_clear(&doctor->findings);
        free(doctor->logs);
        free(doctor->sent);
        free(doctor->command);
        free(doctor->start);
        free(doctor->reload);
        free(doctor->restart);
}

static int
run(const char *file)
{
        struct doctor doctor = {.file = file, .url = args.url, .sends = !args.sends_not, .n_routers = -1};
        int status;

        prepare(&doctor);
        check_all(&doctor);
        if (args.as_json)
                print_json(&doctor.findings);
        else
                print_end(&doctor.findings);
        status = findings_status(&doctor.findings);
        free_doctor(&doctor);
        return status;
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
    {"verbose", NULL, "also print what is in order", .letter = 'v', .flag = &args.is_verbose},
};

const struct command doctor_command = {
    .name = "doctor",
    .help = "check the installation step by step",
    .check = check,
    .becomes_daemon = 1,
    .run_with_file = run,
    COMMAND_OPTIONS(options),
};
