#ifndef SPOOL_SEGMENT_DRAIN_H
#define SPOOL_SEGMENT_DRAIN_H

#include "base/compiler.h"
#include "base/error.h"
#include "base/log_flood.h"
#include "kafka/producer.h"
#include "metrics/spool_stats.h"
#include "spool/noted_damage.h"
#include "spool/segment.h"
#include "spool/spool_directory.h"

/*
 * A segment on its way to Kafka. Its records are appended in passes: the first over all, each further one
 * over those that failed, each in a batch of its own if Kafka has refused some, maybe for the size of their
 * batch. Remembers which records Kafka has acknowledged. For one thread.
 */
struct segment_drain;

/* What may be in flight to Kafka. */
struct segment_drain_window {
        size_t records;
        uint64_t bytes;
};

/* The number of records that Kafka has acknowledged in a pass; that failed; that it refuses. */
struct segment_pass {
        size_t n_acknowledged;
        size_t n_failed;
        size_t n_refused;
};

enum segment_drain_result {
        SEGMENT_DRAIN_MORE,  /* the window is full, or reports are missing */
        SEGMENT_DRAIN_AGAIN, /* the pass has ended, and some records failed, or were refused in a batch */
        SEGMENT_DRAIN_UNREADABLE, /* the pass has ended, and the disk does not return all records */
        SEGMENT_DRAIN_KEPT,       /* the pass has ended; some records are refused */
        SEGMENT_DRAIN_DONE,       /* Kafka has all records */
};

/**
 * segment_drain_open(directory, number, stats, refusals, damage, watch, error):
 * Read a segment from its beginning to its end, for its summary. refusals limits the log lines about records
 * that Kafka refuses, and damage those about what is unreadable, of all segments. watch, which may be NULL,
 * watches all reading. The arguments outlive it. Return NULL with the reason.
 */
struct segment_drain *segment_drain_open(const struct spool_directory *directory, uint64_t number,
                                         struct spool_stats *stats, struct log_flood *refusals,
                                         struct noted_damage *damage, struct segment_watch *watch,
                                         struct error *error) MUST_CHECK;

/* No record may be outstanding. NULL is harmless. */
void segment_drain_close(struct segment_drain *segment);

uint64_t segment_drain_number(const struct segment_drain *segment);
const struct segment_summary *segment_drain_summary(const struct segment_drain *segment);

/* Count its records as spooled. The writer has counted those of this process. */
void segment_drain_count(struct segment_drain *segment);

/**
 * segment_drain_begin(segment, error):
 * Begin a pass over the records that Kafka does not have. If the disk did not return all records so far, they
 * are listed again, and the summary changes; if none of the list is left, nothing more is read. Return 0, or
 * -1 with the reason.
 */
int segment_drain_begin(struct segment_drain *segment, struct error *error) MUST_CHECK;

/**
 * segment_drain_send(segment, producer, window, error):
 * Append records to the producer, with the segment as part of their arg, while the window has room. A record
 * that fails does not keep the others: they may be for other partitions. Return 0, or -1 with the reason why
 * nothing can be appended now, which ends the pass.
 */
int segment_drain_send(struct segment_drain *segment, struct producer *producer,
                       const struct segment_drain_window *window, struct error *error) MUST_CHECK;

/* A record that the producer has reported. */
struct segment_drain_sent {
        struct segment_drain *segment;
        uint64_t bytes;  /* in the segment */
        int64_t took_ms; /* from segment_drain_send() to the report */
};

/* Handle the producer's report on a record. arg is the record's. */
struct segment_drain_sent segment_drain_report(void *arg, const struct producer_outcome *outcome);

/* Return how far the pass has come. */
enum segment_drain_result segment_drain_result(const struct segment_drain *segment);

/* Take what is in flight of a segment off a window for another one. */
void segment_drain_narrow(const struct segment_drain *segment, struct segment_drain_window *window);

/* Return how often in succession the disk has not returned all of it. */
unsigned segment_drain_n_unreadable(const struct segment_drain *segment);

/* Whether the pass has read all records; some may still be in flight. */
int segment_drain_is_read(const struct segment_drain *segment);

/* Return how the producer for this pass must batch. */
enum producer_batching segment_drain_batching(const struct segment_drain *segment);

/* Return what has become of the records in this pass. */
const struct segment_pass *segment_drain_pass(const struct segment_drain *segment);

/*
 * Return when the oldest record was received that Kafka lacks after this pass, in ms since the epoch, or a
 * time before that.
 */
int64_t segment_drain_oldest_ms(const struct segment_drain *segment);

/* The producer is gone: records without a report have failed. */
void segment_drain_fail_outstanding(struct segment_drain *segment);

/*
 * Kafka has all records: delete the file or, if noted_damage_keeps() it, put it aside. Return 0, or -1 with
 * the reason.
 */
int segment_drain_remove(const struct segment_drain *segment, struct error *error) MUST_CHECK;

#endif
