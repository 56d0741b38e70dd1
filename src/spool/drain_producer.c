#include "spool/drain_producer.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"

/* What may be in flight: alone; beside other deliveries, which wait behind it; to try whether Kafka works. */
static const struct segment_drain_window alone = {5000, UINT64_C(16) << 20};
static const struct segment_drain_window beside = {500, UINT64_C(1) << 20};
static const struct segment_drain_window trial = {1000, UINT64_C(4) << 20};

#define PATIENCE_MAX 1024
#define ROOM_MIN (UINT64_C(16) << 10)
#define TRYING_MS 10000 /* longer than the pauses between attempts */
#define SOON_MS 250     /* what is acknowledged in this time is never too much */

void
drain_producer_init(struct drain_producer *appends, const struct config *config, const char *bootstrap,
                    int wake_fd, producer_report *report, void *arg)
{
        memset(appends, 0, sizeof(*appends));
        appends->config = config;
        appends->bootstrap = bootstrap;
        appends->wake_fd = wake_fd;
        appends->report = report;
        appends->arg = arg;
        drain_producer_forget_failures(appends);
        pthread_mutex_init(&appends->mutex, NULL);
}

void
drain_producer_end(struct drain_producer *appends)
{
        drain_producer_close(appends);
        log_flood_end(&appends->failed);
        pthread_mutex_destroy(&appends->mutex);
}

int
drain_producer_works(const struct drain_producer *appends)
{
        struct error error;

        return appends->producer != NULL && !producer_is_broken(appends->producer, &error);
}

int
drain_producer_open(struct drain_producer *appends, enum producer_batching batching)
{
        struct producer_manner manner = {batching, appends->patience};
        struct error error;

        appends->batching = batching;
        appends->producer = producer_new(appends->config, appends->bootstrap, manner, appends->wake_fd,
                                         appends->report, appends->arg, &error);
        if (appends->producer != NULL)
                return 0;
        drain_producer_note_failure(appends, error.text);
        return -1;
}

void
drain_producer_close(struct drain_producer *appends)
{
        producer_free(appends->producer);
        appends->producer = NULL;
}

void
drain_producer_be_careful(struct drain_producer *appends)
{
        if (appends->patience < PATIENCE_MAX)
                appends->patience *= 2;
        appends->room = appends->room > trial.bytes ? trial.bytes : appends->room;
        appends->room = appends->room / 2 > ROOM_MIN ? appends->room / 2 : ROOM_MIN;
}

void
drain_producer_forget_failures(struct drain_producer *appends)
{
        appends->patience = 1;
        appends->room = UINT64_MAX;
}

/* Twice as much would then be acknowledged in half of ack_timeout. */
static int
is_soon(const struct drain_producer *appends, int64_t took_ms)
{
        return took_ms < SOON_MS || took_ms < (int64_t)appends->config->ack_timeout_ms / 4;
}

void
drain_producer_note(struct drain_producer *appends, const struct producer_outcome *outcome, uint64_t bytes,
                    int64_t took_ms)
{
        atomic_store(&appends->tried_ms, clock_monotonic_ms());
        if (outcome->failure == NULL && appends->room < UINT64_MAX - bytes && is_soon(appends, took_ms))
                appends->room += bytes;
        if (outcome->failure == NULL)
                appends->is_proven = 1;
        else if (!outcome->is_final)
                drain_producer_note_failure(appends, outcome->failure);
}

void
drain_producer_explain(struct drain_producer *appends, const char *reason)
{
        pthread_mutex_lock(&appends->mutex);
        (void)error_set(&appends->failure, "%s", reason);
        pthread_mutex_unlock(&appends->mutex);
}

void
drain_producer_note_failure(struct drain_producer *appends, const char *reason)
{
        char quoted[LOG_QUOTED_SIZE];

        appends->is_proven = 0;
        drain_producer_explain(appends, reason);
        log_flood(&appends->failed, LOG_LEVEL_WARNING,
                  "appending from the spool failed and will be repeated reason=%s",
                  log_quote(reason, quoted));
}

struct segment_drain_window
drain_producer_window(struct drain_producer *appends, int has_traffic)
{
        struct segment_drain_window window = !appends->is_proven ? trial : has_traffic ? beside : alone;

        atomic_store(&appends->tried_ms, clock_monotonic_ms());
        if (window.bytes > appends->room)
                window.bytes = appends->room;
        return window;
}

int
drain_producer_is_trying(const struct drain_producer *appends)
{
        int64_t tried_ms = atomic_load(&appends->tried_ms);

        return tried_ms != 0 && clock_monotonic_ms() - tried_ms < TRYING_MS;
}

void
drain_producer_failure(struct drain_producer *appends, struct error *error)
{
        pthread_mutex_lock(&appends->mutex);
        *error = appends->failure;
        pthread_mutex_unlock(&appends->mutex);
}
