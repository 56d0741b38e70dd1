#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "cli/commands.h"
#include "cli/kafka_access.h"
#include "cli/spool_scan.h"
#include "kafka/outage.h"
#include "kafka/topics_check.h"
#include "spool/spool_drain.h"

#define TURN_MS 20

static struct {
        const char *directory;
        uint64_t timeout_ms;
        const char *bootstrap;
} args = {.timeout_ms = 120000};

/* What the drain does. */
static struct spool_stats stats;

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
        if (first != NULL) {
                status =
                    command_fail(state.hidden ? EX_NOPERM : EX_DATAERR, "%s: %s", need.name, first->text);
                command_advise("%s", first->remedy);
        }
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

/* Wait until nothing can be drained any more, and find out why something is left, if that is known. */
static void
wait_for_drain(struct spool_drain *drain, struct error *failure)
{
        int64_t progress_ms = clock_monotonic_ms();
        uint64_t n = 0;
        char timeout[NUMBER_TEXT_SIZE];

        while (spool_drain_state(drain) == SPOOL_DRAIN_WORKING) {
                uint64_t n_drained = atomic_load(&stats.drained);

                if (n_drained > n)
                        progress_ms = clock_monotonic_ms();
                n = n_drained;
                if (clock_monotonic_ms() - progress_ms > (int64_t)args.timeout_ms) {
                        spool_drain_failure(drain, failure);
                        (void)error_prefix(failure, "drain it again, since Kafka acknowledged nothing for %s",
                                           number_format_duration(args.timeout_ms, timeout));
                        return;
                }
                clock_sleep_ms(TURN_MS);
        }
        spool_drain_failure(drain, failure);
        (void)error_prefix(failure, "see DAMAGE in gatepost-spool(5)");
}

/* Count the segments in the directory, and find the largest number. Return 0, or an exit status. */
static int
count_segments(const struct spool_directory *directory, size_t *n, uint64_t *last)
{
        struct spool_listing listing;
        struct error error;

        if (spool_directory_list(directory, 0, &listing, &error) != 0)
                return command_fail(EX_NOINPUT, "%s", error.text);
        *n = listing.n_segments;
        *last = listing.last;
        spool_listing_free(&listing);
        return 0;
}

/* Print the totals. Return the exit status of the command. */
static int
print_totals(size_t n_left, const struct error *failure)
{
        uint64_t n_damaged = atomic_load(&stats.damaged);

        printf("%" PRIu64 " records appended, %" PRIu64 " refused, %zu segments left\n",
               atomic_load(&stats.drained), atomic_load(&stats.refused), n_left);
        if (n_left > 0)
                return command_fail(EX_TEMPFAIL, "segments are left; %s", failure->text);
        if (n_damaged == 0)
                return 0;
        return command_fail(EX_DATAERR,
                            "damaged segments, which were put aside: %" PRIu64 "; deliveries that were "
                            "answered 200 may be lost: see DAMAGE in gatepost-spool(5)",
                            n_damaged);
}

/* Drain n segments up to the number `last`. Return an exit status. */
static int
drain_segments(const struct config *config, const struct spool_directory *directory, size_t n, uint64_t last)
{
        const struct spool_drain_owner owner = {NULL, always, never, ignore};
        struct spool_drain *drain;
        struct error error;
        int status = check_topic(config);

        if (status != 0)
                return status;
        (void)command_fail(0, "draining %zu segments", n);
        atomic_store(&stats.uncounted, n);
        log_set_level(LOG_LEVEL_ERROR);
        drain = spool_drain_new(directory, NULL, &stats, last, config, args.bootstrap, &owner, &error);
        if (drain == NULL)
                return command_fail(EX_OSERR, "%s", error.text);
        wait_for_drain(drain, &error);
        spool_drain_free(drain);
        status = count_segments(directory, &n, &last);
        return status != 0 ? status : print_totals(n, &error);
}

/* Drain the directory, which this process has locked. Return an exit status. */
static int
drain_all(const struct config *config, const struct spool_directory *directory)
{
        uint64_t last;
        size_t n;
        int status = count_segments(directory, &n, &last);

        spool_stats_init(&stats, 0);
        if (status != 0)
                return status;
        return n == 0 ? print_totals(0, NULL) : drain_segments(config, directory, n, last);
}

static int
run(const struct config *config)
{
        const char *path = args.directory != NULL ? args.directory : config->spool;
        struct spool_directory *directory = NULL;
        int status;

        if (path == NULL)
                return command_misused("needs DIR: %s has no spool in [receiver]", config->file);
        status = kafka_access_find(config, &args.bootstrap);
        if (status == 0)
                status = spool_scan_open(path, 1, &directory);
        if (status == 0)
                status = drain_all(config, directory);
        spool_directory_close(directory);
        return status;
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
