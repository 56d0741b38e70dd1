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

/* The segments before draining, without damaged ones that were put aside. */
struct drain_work {
        const struct config *config;
        const char *path;
        struct spool_scan scan;
        uint64_t n_records;
        uint64_t n_late; /* records that the router will quarantine, if they are appended now */
        int64_t late_ms; /* received before that */
        int64_t oldest_ms, newest_ms;
        size_t n_segments;
        uint64_t last; /* the largest number of a segment */
        struct spool_stats stats;
        struct error failure; /* why something is left; "": not known */
        uint64_t n_left;      /* records in segments that are left */
        size_t n_segments_left;
        size_t n_unreadable; /* of these: the disk does not return all of them */
};

static void
count_record(const struct spool_scan_segment *segment, const struct segment_record *record, void *arg)
{
        struct drain_work *work = arg;

        (void)segment;
        work->n_late += record->received_ms < work->late_ms;
        if (work->n_records == 0 || record->received_ms < work->oldest_ms)
                work->oldest_ms = record->received_ms;
        if (work->n_records == 0 || record->received_ms > work->newest_ms)
                work->newest_ms = record->received_ms;
        work->n_records++;
}

/* Read all segments. */
static void
count_all(struct drain_work *work)
{
        struct terminal_progress progress;

        work->late_ms = clock_now_ms() - (int64_t)(work->config->dedup_window_ms / 2);
        terminal_progress_begin(&progress, "reading segments", work->scan.n);
        for (size_t i = 0; i < work->scan.n && !terminal_is_interrupted(); i++) {
                struct spool_scan_segment *segment = &work->scan.segments[i];

                work->last = segment->number > work->last ? segment->number : work->last;
                terminal_progress_step(&progress);
                if (segment->is_aside)
                        continue;
                spool_scan_read(&work->scan, segment, count_record, work);
        }
        terminal_progress_end(&progress);
}

/* Print what will be drained, and what the router will not publish. */
static void
print_plan(const struct drain_work *work)
{
        char oldest[CLOCK_RFC3339_SIZE], newest[CLOCK_RFC3339_SIZE], window[NUMBER_TEXT_SIZE];

        printf("%" PRIu64 " record%s in %zu segment%s", work->n_records, work->n_records == 1 ? "" : "s",
               work->n_segments, work->n_segments == 1 ? "" : "s");
        if (work->n_records > 0)
                printf(", received from %s to %s", clock_format_s(work->oldest_ms / 1000, oldest),
                       clock_format_s(work->newest_ms / 1000, newest));
        printf("\nthe router quarantines records received more than %s ago, half of dedup_window, as "
               "spooled-too-long: %" PRIu64 " of these\n",
               number_format_duration(work->config->dedup_window_ms / 2, window), work->n_late);
        (void)fflush(stdout);
}

/* Keep the first reason why deliveries cannot be appended. */
static void
on_finding(const struct topic_finding *finding, void *arg)
{
        struct error *error = arg;

        if (finding->fatal && error->text[0] == '\0')
                (void)error_set(error, "%s", finding->text);
}

/* Check that the topic of deliveries exists and keeps what is appended. Return 0, or an exit status. */
static int
check_topic(const struct config *config)
{
        const struct topic_need need = {config->deliveries_topic, TOPIC_DELIVERIES};
        rd_kafka_t *client = kafka_access_open(config, args.bootstrap);
        struct topic_state state = {0};
        struct error error = {""};
        int result;

        if (client == NULL)
                return EX_CONFIG;
        result =
            (config->embedded ? topics_describe_partitions
                              : topics_describe)(client, &need, 1, &state, KAFKA_ACCESS_TIMEOUT_MS, &error);
        rd_kafka_destroy(client);
        if (result != 0)
                return command_fail(EX_UNAVAILABLE, "%s", error.text);
        outage_set_logging(1); /* it waits until Kafka is back */
        error.text[0] = '\0';
        if (!config->embedded || !state.exists)
                topics_check(config, &need, &state, on_finding, &error);
        if (error.text[0] == '\0')
                return 0;
        return command_fail(state.hidden ? EX_NOPERM : EX_DATAERR, "%s: %s", need.name, error.text);
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

/*
 * Count the segments that are left, and the records in them, and note those that were put aside. Return 0, or
 * an exit status.
 */
static int
count_left(struct drain_work *work)
{
        struct spool_scan scan;
        int status = spool_scan_open(&scan, work->path);

        for (size_t i = 0, k = 0; i < scan.n; i++) {
                int is_left = !scan.segments[i].is_aside;
                struct spool_scan_segment *before;

                while (k < work->scan.n && work->scan.segments[k].number < scan.segments[i].number)
                        k++;
                before = k < work->scan.n && work->scan.segments[k].number == scan.segments[i].number
                             ? &work->scan.segments[k]
                             : NULL;
                work->n_segments_left += (size_t)is_left;
                if (before != NULL && is_left) {
                        work->n_left += before->summary.n_records;
                        work->n_unreadable += before->summary.unreadable_bytes > 0;
                } else if (before != NULL) {
                        before->is_aside = 1;
                }
        }
        spool_scan_close(&scan);
        return status;
}

/* Name the segments that were put aside because of torn bytes. Those put aside before were not read. */
static void
print_torn(const struct drain_work *work)
{
        char aside[SPOOL_NAME_SIZE];

        for (size_t i = 0; i < work->scan.n; i++) {
                const struct spool_scan_segment *segment = &work->scan.segments[i];

                if (segment->is_aside && segment->summary.torn_bytes > 0)
                        printf("%s: %" PRIu64 " bytes of no whole record: " SPOOL_SCAN_TORN "; kept as %s\n",
                               segment->name, segment->summary.torn_bytes,
                               spool_directory_damaged_name(segment->number, aside));
        }
}

/* Print the outcome. Return the exit status of the command. */
static int
print_summary(const struct drain_work *work)
{
        uint64_t n_drained = atomic_load(&work->stats.drained), n_damaged = atomic_load(&work->stats.damaged);

        printf("%" PRIu64 " record%s appended, %" PRIu64 " refused, %" PRIu64 " left in %zu segment%s\n",
               n_drained, n_drained == 1 ? "" : "s", atomic_load(&work->stats.refused), work->n_left,
               work->n_segments_left, work->n_segments_left == 1 ? "" : "s");
        print_torn(work);
        if (work->n_segments_left > 0 && work->n_unreadable == work->n_segments_left)
                return command_fail(EX_TEMPFAIL,
                                    "%s; if the disk does not recover, drain a copy: see DAMAGE in "
                                    "gatepost-spool(5)",
                                    work->failure.text[0] != '\0' ? work->failure.text : "segments are left");
        if (work->n_segments_left > 0)
                return command_fail(EX_TEMPFAIL,
                                    "%s; drain it again: the router drops records that Kafka has already",
                                    work->failure.text[0] != '\0' ? work->failure.text : "segments are left");
        if (n_damaged == 0)
                return 0;
        return command_fail(EX_DATAERR,
                            "%" PRIu64
                            " segment%s damaged and put aside: deliveries that were answered 200 may be "
                            "lost; see DAMAGE in gatepost-spool(5)",
                            n_damaged, n_damaged == 1 ? " was" : "s were");
}

/* Drain the directory, which this process has locked. Return an exit status. */
static int
drain_all(struct drain_work *work, const struct spool_directory *directory)
{
        const struct spool_drain_owner owner = {NULL, always, never, ignore};
        struct spool_drain *drain;
        struct error error;
        int status;

        for (size_t i = 0; i < work->scan.n; i++)
                work->n_segments += !work->scan.segments[i].is_aside;
        status = work->n_segments == 0 ? 0 : check_topic(work->config);
        if (status != 0)
                return status;
        count_all(work);
        if (terminal_is_interrupted())
                return command_fail(EX_TEMPFAIL, "interrupted before anything was appended");
        print_plan(work);
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
        status = count_left(work);
        return status != 0 ? status : print_summary(work);
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
    .run = run,
    COMMAND_OPTIONS(options),
};
