#ifndef METRICS_SPOOL_STATS_H
#define METRICS_SPOOL_STATS_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "metrics/histogram.h"

/* Why a delivery was not stored in the spool, or what went wrong with a segment. */
enum spool_error {
        SPOOL_ERROR_FULL,  /* it has reached spool_max */
        SPOOL_ERROR_DISK,  /* the disk has no space left */
        SPOOL_ERROR_WRITE, /* a segment could not be created or written */
        SPOOL_ERROR_SYNC,  /* the disk did not confirm what was written */
        SPOOL_ERROR_PLACE, /* the directory or the segment was renamed or deleted */
        SPOOL_N_ERRORS
};

/* The figures of a spool, written by its threads and read by any. */
struct spool_stats {
        uint64_t max_bytes;          /* spool_max; constant */
        const char *directory;       /* the path that was opened; constant */
        dev_t device;                /* of the directory; constant */
        ino_t inode;                 /* likewise */
        atomic_int is_displaced;     /* the path does not lead to the directory any more */
        atomic_uint_fast64_t bytes;  /* of the segments, without damaged ones that were put aside */
        atomic_uint_fast64_t queued; /* bytes of deliveries that wait to be written */
        atomic_uint_fast64_t segments;
        atomic_uint_fast64_t records;   /* that are not in Kafka yet, of the segments that were counted */
        atomic_uint_fast64_t uncounted; /* segments of an earlier process that were not read yet */
        atomic_int_fast64_t oldest_ms;  /* see spool_stats_oldest_ms() */
        /* Likewise, of segments that were left behind; 0: none. */
        atomic_int_fast64_t kept_oldest_ms;
        atomic_int_fast64_t since_ms; /* since then deliveries go to the spool; 0: to Kafka */
        atomic_uint_fast64_t written; /* records since the process started */
        atomic_uint_fast64_t drained; /* likewise */
        atomic_uint_fast64_t refused; /* records that Kafka refuses for good; they stay */
        atomic_uint_fast64_t errors[SPOOL_N_ERRORS];
        atomic_int last_error; /* enum spool_error; SPOOL_N_ERRORS: none since a delivery was stored */
        atomic_int_fast64_t last_error_s; /* when, since the epoch */
        atomic_uint_fast64_t damaged;     /* damaged segments, put aside or still being drained */
        atomic_uint_fast64_t lost_bytes;  /* of damaged segments, found unreadable by this process */
        /* Records that were answered 200 and cannot be read back, as their segment was deleted. */
        atomic_uint_fast64_t lost_records;
        struct histogram sync; /* ns: to write and sync the deliveries of one turn */
};

/* max_bytes is spool_max. */
void spool_stats_init(struct spool_stats *stats, uint64_t max_bytes);

/* Count n failures, now; note that a delivery was stored after those. */
void spool_stats_note_error(struct spool_stats *stats, enum spool_error error, uint64_t n);
void spool_stats_note_stored(struct spool_stats *stats);

/*
 * Subtract from a gauge, but not below 0: a segment may be drained that somebody has put into the directory
 * and that was not counted.
 */
void spool_stats_reduce(atomic_uint_fast64_t *gauge, uint64_t amount);

/*
 * There is no segment any more: count no records, which may have become unreadable, and no bytes, of a
 * segment whose size has changed, unless another thread counts new ones.
 */
void spool_stats_clear(struct spool_stats *stats);

/* A record that was received then is in the spool: it is the oldest, if no other one is older. */
void spool_stats_note_oldest(struct spool_stats *stats, int64_t received_ms);

/* Return when the oldest delivery in the spool was received, in ms since the epoch; 0: the spool is empty. */
int64_t spool_stats_oldest_ms(const struct spool_stats *stats);

/* Return the name of an error in the metrics: full, disk, write, sync, place. */
const char *spool_stats_error_name(enum spool_error error);

#endif
