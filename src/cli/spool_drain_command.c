#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/number.h"
#include "cli/commands.h"
#include "cli/kafka_access.h"
#include "cli/spool_scan.h"
#include "cli/terminal.h"
#include "kafka/outage.h"
#include "kafka/topics_check.h"
#include "spool/spool_drain.h"

#define TURN_MS 20

static struct {
        const char *directory;
        uint64_t timeout_ms;
        const char *bootstrap;
} args = {.timeout_ms = 120000};

struct drain_work {
        const struct config *config;
        const char *path;
        struct spool_scan scan; /* before draining */
        uint64_t n_records;     /* in segments that were not put aside */
        size_t n_segments;
        uint64_t last; /* the largest number of a segment */
        struct spool_stats stats;
        struct error failure; /* why something is left; "": not known */
};

/* Count the records and segments that are not put aside. */
static void
count(const struct spool_scan *scan, uint64_t *n_records, size_t *n_segments)
{
        *n_records = *n_segments = 0;
        for (size_t i = 0; i < scan->n; i++) {
                if (scan->segments[i].is_aside)
                        continue;
                *n_records += scan->segments[i].summary.n_records;
                ++*n_segments;
        }
}

/* Check that the topic of deliveries exists and keeps what is appended. Return 0, or an exit status. */
static int
check_topic(const struct config *config)
{
        const struct topic_need need = {config->deliveries_topic, TOPIC_DELIVERIES};
        rd_kafka_t *client = kafka_access_open(config, args.bootstrap);
        struct topic_state state = {0};
        struct findings findings = {0};
        const struct finding *first;
        struct error error;
        int result, status = 0;

        if (client == NULL)
                return EX_CONFIG;
        result =
            (config->embedded ? topics_describe_partitions
                              : topics_describe)(client, &need, 1, &state, KAFKA_ACCESS_TIMEOUT_MS, &error);
        rd_kafka_destroy(client);
        if (result != 0)
                return command_fail(EX_UNAVAILABLE, "%s", error.text);
        outage_set_logging(1); /* it waits until Kafka is back */
        if (!config->embedded || !state.exists)
                topics_check(config, &need, &state, 1, &findings, NULL);
        first = findings_first(&findings, FINDING_ERROR);
        if (first != NULL)
                status =
                    command_fail(state.hidden ? EX_NOPERM : EX_DATAERR, "%s: %s", need.name, first->text);
        if (first != NULL)
                command_advise("%s", first->remedy);
        findings_clear(&findings);
        return status;
}

static int
always(void *arg)
{
        (void)arg;
        return 1;
}

static int
never(void *arg)
{
        (void)arg;
        return 0;
}

static void
ignore(void *arg)
{
        (void)arg;
}

/* Wait until nothing can be drained any more. */
static void
wait_for_drain(struct drain_work *work, struct spool_drain *drain)
{
        struct terminal_progress progress;
        int64_t progress_ms = clock_monotonic_ms();
        uint64_t n = 0;
        char timeout[NUMBER_TEXT_SIZE];

        terminal_progress_begin(&progress, "appending records", work->n_records);
        while (spool_drain_state(drain) == SPOOL_DRAIN_WORKING) {
                uint64_t n_drained = atomic_load(&work->stats.drained);

                if (terminal_is_interrupted()) {
                        (void)error_set(&work->failure, "interrupted");
                        break;
                }
                if (n_drained > n)
                        progress_ms = clock_monotonic_ms();
                for (; n < n_drained; n++)
                        terminal_progress_step(&progress);
                if (clock_monotonic_ms() - progress_ms > (int64_t)args.timeout_ms) {
                        spool_drain_failure(drain, &work->failure);
                        (void)error_prefix(&work->failure, "Kafka acknowledged nothing for %s",
                                           number_format_duration(args.timeout_ms, timeout));
                        break;
                }
                clock_sleep_ms(TURN_MS);
        }
        if (spool_drain_state(drain) == SPOOL_DRAIN_KEPT) {
                uint64_t n_refused = atomic_load(&work->stats.refused);

                spool_drain_failure(drain, &work->failure);
                (void)error_prefix(&work->failure, "a segment stays");
                if (n_refused > 0)
                        (void)error_prefix(&work->failure, "%" PRIu64 " refused by Kafka", n_refused);
        }
        terminal_progress_end(&progress);
}

/* Print the outcome. Return the exit status of the command. */
static int
print_summary(const struct drain_work *work)
{
        uint64_t n_damaged = atomic_load(&work->stats.damaged), n_records;
        struct spool_scan left;
        size_t n_segments, n_failed = 0;
        int status = spool_scan_open(&left, work->path);

        spool_scan_read_all(&left);
        count(&left, &n_records, &n_segments);
        for (size_t i = 0; i < left.n; i++)
                n_failed += left.segments[i].has_failed && !left.segments[i].is_aside;
        spool_scan_close(&left);
        if (status != 0)
                return status;
        printf("%" PRIu64 " records appended, %" PRIu64 " refused, %" PRIu64 " left in %zu segments\n",
               atomic_load(&work->stats.drained), atomic_load(&work->stats.refused), n_records, n_segments);
        if (n_segments > 0)
                return command_fail(EX_TEMPFAIL, "%s; %s",
                                    work->failure.text[0] != '\0' ? work->failure.text : "segments are left",
                                    n_failed == n_segments
                                        ? "if the disk does not recover, drain a copy: see DAMAGE in "
                                          "gatepost-spool(5)"
                                        : "drain it again: the router drops records that Kafka has already");
        if (n_damaged == 0)
                return 0;
        return command_fail(EX_DATAERR,
                            "damaged segments, which were put aside: %" PRIu64 "; deliveries that were "
                            "answered 200 may be lost: see DAMAGE in gatepost-spool(5)",
                            n_damaged);
}

/* Drain the directory, which this process has locked. Return an exit status. */
static int
drain_all(struct drain_work *work, const struct spool_directory *directory)
{
        const struct spool_drain_owner owner = {NULL, always, never, ignore};
        struct spool_drain *drain;
        struct error error;
        int status;

        spool_scan_read_all(&work->scan);
        count(&work->scan, &work->n_records, &work->n_segments);
        for (size_t i = 0; i < work->scan.n; i++) {
                if (work->scan.segments[i].number > work->last)
                        work->last = work->scan.segments[i].number;
        }
        status = work->n_segments == 0 ? 0 : check_topic(work->config);
        if (status != 0)
                return status;
        if (terminal_is_interrupted())
                return command_fail(EX_TEMPFAIL, "interrupted before anything was appended");
        printf("%" PRIu64 " records in %zu segments\n", work->n_records, work->n_segments);
        (void)fflush(stdout);
        if (work->n_segments == 0)
                return 0;
        spool_stats_init(&work->stats, 0);
        atomic_store(&work->stats.uncounted, work->n_segments);
        log_set_level(LOG_LEVEL_ERROR);
        drain = spool_drain_new(directory, NULL, &work->stats, work->last, work->config, args.bootstrap,
                                &owner, &error);
        if (drain == NULL)
                return command_fail(EX_OSERR, "%s", error.text);
        wait_for_drain(work, drain);
        spool_drain_free(drain);
        return print_summary(work);
}

static int
drain_path(const struct config *config, const char *path)
{
        struct drain_work *work = mem_alloc(sizeof(*work));
        int status = spool_scan_open(&work->scan, path);
        struct spool_directory *directory = NULL;
        struct error error;

        work->config = config;
        work->path = path;
        if (status == 0) {
                directory = spool_directory_open(path, 1, &error);
                status = directory == NULL ? command_fail(EX_TEMPFAIL, "%s", error.text) : 0;
        }
        if (status == 0) {
                /* A daemon may have drained it until now. */
                spool_scan_close(&work->scan);
                status = spool_scan_open(&work->scan, path);
        }
        if (status == 0)
                status = drain_all(work, directory);
        spool_directory_close(directory);
        spool_scan_close(&work->scan);
        free(work);
        return status;
}

static int
run(const struct config *config)
{
        const char *path = args.directory != NULL ? args.directory : config->spool;
        int status;

        if (path == NULL)
                return command_misused("needs DIR: %s has no spool in [receiver]", config->file);
        status = kafka_access_find(config, &args.bootstrap);
        if (status != 0)
                return status;
        terminal_catch_interrupts();
        return drain_path(config, path);
}

static const struct command_option options[] = {
    SPOOL_SCAN_DIRECTORY(args.directory),
    {"timeout", "TIME", "stop when Kafka acknowledges nothing for this long (default: 2min)",
     .duration_ms = &args.timeout_ms, .min = 1000, .max = 86400000},
    KAFKA_ACCESS_BOOTSTRAP(args.bootstrap),
};

const struct command spool_drain_command = {
    .name = "spool drain",
    .help = "append the deliveries in a spool to Kafka",
    .becomes_daemon = 1,
    .run = run,
    COMMAND_OPTIONS(options),
};
