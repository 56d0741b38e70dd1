#include "metrics/spool_stats.h"

#include <string.h>

#include "base/clock.h"

#define MS UINT64_C(1000000)

static const struct histogram_scale sync_scale = {
    .per_unit = 1000 * MS,
    .n = 13,
    .bounds = {MS / 10, MS / 4, MS / 2, MS, 5 * MS / 2, 5 * MS, 10 * MS, 25 * MS, 50 * MS, 100 * MS, 250 * MS,
               1000 * MS, 5000 * MS},
};

static const char *const error_names[SPOOL_N_ERRORS] = {
    [SPOOL_ERROR_FULL] = "full", [SPOOL_ERROR_DISK] = "disk",   [SPOOL_ERROR_WRITE] = "write",
    [SPOOL_ERROR_SYNC] = "sync", [SPOOL_ERROR_PLACE] = "place",
};

void
spool_stats_init(struct spool_stats *stats, uint64_t max_bytes)
{
        memset(stats, 0, sizeof(*stats));
        stats->max_bytes = max_bytes;
        stats->directory = "";
        stats->last_error = SPOOL_N_ERRORS;
        histogram_init(&stats->sync, &sync_scale);
}

const char *
spool_stats_error_name(enum spool_error error)
{
        return error_names[error];
}

void
spool_stats_note_error(struct spool_stats *stats, enum spool_error error, uint64_t n)
{
        atomic_fetch_add(&stats->errors[error], n);
        atomic_store(&stats->last_error_s, clock_now_ms() / 1000);
        atomic_store(&stats->last_error, (int)error);
}

void
spool_stats_note_stored(struct spool_stats *stats)
{
        atomic_store(&stats->last_error, (int)SPOOL_N_ERRORS);
}

void
spool_stats_reduce(atomic_uint_fast64_t *gauge, uint64_t amount)
{
        uint_fast64_t value = atomic_load(gauge);

        while (!atomic_compare_exchange_weak(gauge, &value, value > amount ? value - amount : 0))
                ;
}

void
spool_stats_clear(struct spool_stats *stats)
{
        uint_fast64_t records = atomic_load(&stats->records), bytes = atomic_load(&stats->bytes);

        if (atomic_load(&stats->segments) > 0)
                return;
        (void)atomic_compare_exchange_strong(&stats->records, &records, 0);
        (void)atomic_compare_exchange_strong(&stats->bytes, &bytes, 0);
}

void
spool_stats_note_oldest(struct spool_stats *stats, int64_t received_ms)
{
        int_fast64_t oldest_ms = atomic_load(&stats->oldest_ms);

        while ((oldest_ms == 0 || received_ms < oldest_ms) &&
               !atomic_compare_exchange_weak(&stats->oldest_ms, &oldest_ms, received_ms))
                ;
}

/* The threads do not reset oldest_ms when the last record has left. */
int64_t
spool_stats_oldest_ms(const struct spool_stats *stats)
{
        int is_empty = atomic_load(&stats->records) == 0 && atomic_load(&stats->uncounted) == 0;
        int64_t oldest_ms = atomic_load(&stats->oldest_ms), kept_ms = atomic_load(&stats->kept_oldest_ms);

        if (is_empty)
                return 0;
        return kept_ms != 0 && (oldest_ms == 0 || kept_ms < oldest_ms) ? kept_ms : oldest_ms;
}
