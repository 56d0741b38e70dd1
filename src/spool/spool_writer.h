#ifndef SPOOL_SPOOL_WRITER_H
#define SPOOL_SPOOL_WRITER_H

#include <pthread.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "metrics/spool_stats.h"
#include "spool/segment_writer.h"
#include "spool/spool_directory.h"

/*
 * Writes deliveries to segments, in a thread of its own. All that wait are written and synced together, so a
 * sync serves as many as arrived during the one before.
 */
struct spool_writer;

/* Where a thread receives reports. */
struct spool_inbox {
        pthread_mutex_t mutex;
        struct segment_items items;
        int wake_fd; /* a byte is written to it, which must not block */
};

/* A delivery to be written. It belongs to the writer from spool_writer_put() until it is in its inbox. */
struct spool_item {
        struct segment_item item; /* its record has fields, body and received_ms */
        struct spool_inbox *inbox;
        const char *failure; /* NULL: it is on the disk; else why not, a constant text for the client */
        int may_be_there;    /* after a failure: it may be on the disk nevertheless, and be appended later */
};

void spool_inbox_init(struct spool_inbox *inbox, int wake_fd);

/* Return the next reported item, or NULL. */
struct spool_item *spool_inbox_take(struct spool_inbox *inbox);

/**
 * spool_writer_new(directory, stats, first, error):
 * Start the thread. The first segment that it begins has this number. directory and stats outlive the writer.
 * Return NULL with the reason.
 */
struct spool_writer *spool_writer_new(const struct spool_directory *directory, struct spool_stats *stats,
                                      uint64_t first, struct error *error) MUST_CHECK;

/* Write what still waits, report it, and stop. NULL is harmless. */
void spool_writer_free(struct spool_writer *writer);

/*
 * Return NULL if a delivery of this size would be written now; else why not, a constant text. Count it as an
 * error if the spool is full. Size 0 means: would the delivery that was last refused for lack of room fit
 * now? After a failed write that stays "no" until a write succeeds. To find out, the call makes the writer
 * try one, at most every two seconds, since no delivery may arrive that would. Any thread.
 */
const char *spool_writer_refuses(struct spool_writer *writer, uint64_t size);

/* Kafka takes deliveries again: forget the size for which there was no room. Any thread. */
void spool_writer_forget_size(struct spool_writer *writer);

/* Have an item written, and reported in any case. Any thread. */
void spool_writer_put(struct spool_writer *writer, struct spool_item *item);

/*
 * Return the number below which all segments have ended. Only the writer may read and delete others, even if
 * none was being written a moment ago. Any thread.
 */
uint64_t spool_writer_limit(const struct spool_writer *writer);

/* Return the number of the segment that is being written; 0 if there is none. Any thread. */
uint64_t spool_writer_segment(const struct spool_writer *writer);

/* Whether this process has ended the segment, with all of it synced. Any thread. */
int spool_writer_has_sealed(const struct spool_writer *writer, uint64_t number);

/*
 * The directory has no segment below this limit, which spool_writer_limit() had returned before it was read.
 * Unless another one was begun since, count the deliveries of the missing ones as lost. The drain's thread.
 */
void spool_writer_note_missing(struct spool_writer *writer, uint64_t limit);

/* End the segment that is being written, soon, so that it can be drained. Any thread. */
void spool_writer_end_segment(struct spool_writer *writer);

/* Return how long the thread has been busy with one write or sync, in ms; 0 when it is idle. Any thread. */
int64_t spool_writer_busy_ms(const struct spool_writer *writer);

#endif
