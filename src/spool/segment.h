#ifndef SPOOL_SEGMENT_H
#define SPOOL_SEGMENT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/heartbeat.h"
#include "model/record.h"

/*
 * A segment: a file of the spool with records, each a delivery as it goes to `deliveries`. Segments are
 * written once, from beginning to end, and never changed. gatepost-spool(5) describes the format.
 *
 * A crash may leave any part of what was not synced: nothing, zeros, or some blocks. Each record says how
 * many bytes of its segment were synced when it was written, so bytes below that limit that are not intact
 * are damage, and all others are the torn tail of a crash, which was never answered 200.
 */

/* A segment ends before the record that would exceed this size, unless it is its first. */
#define SEGMENT_SIZE (UINT64_C(64) << 20)

#define SEGMENT_HEADER_SIZE 32
#define SEGMENT_HEAD_SIZE 48
#define SEGMENT_FIELDS_MAX 65535
#define SEGMENT_BODY_MAX (UINT64_C(64) << 20)

/* Identifies a segment, at random, so that old blocks of the disk are not taken for its records. */
#define SEGMENT_ID_SIZE 8

/* Write the header with which the segment begins. */
void segment_write_header(const uint8_t id[SEGMENT_ID_SIZE], uint8_t header[SEGMENT_HEADER_SIZE]);

/**
 * segment_add_field(fields, size, len, name, value):
 * Add a field to the *len bytes in fields, which has room for size bytes: a header of the record, or its key,
 * whose name is "". Return 0, or -1 if there is no room or the name or value is longer than 65,535 bytes.
 */
int segment_add_field(uint8_t *fields, size_t size, size_t *len, const char *name,
                      struct span value) MUST_CHECK;

/* Read a field at *at, and go to the next. Return 1, 0 at the end, or -1 if the fields are malformed. */
int segment_next_field(struct span fields, size_t *at, struct record_header *field);

/* A record. Its spans belong to the writer, or to the reader until its next use. */
struct segment_record {
        int64_t received_ms; /* since the epoch; not negative */
        struct span fields;  /* none: a seal, which only says how much was synced */
        struct span body;
        uint64_t synced; /* bytes of the segment that were synced when it was written */
        uint64_t offset; /* in the segment */
};

/* Return the bytes that a record takes in a segment: a multiple of 8. */
uint64_t segment_record_size(const struct segment_record *record);

/* Write the head of a record, before its fields, its body and the zeros up to segment_record_size(). */
void segment_write_head(const uint8_t id[SEGMENT_ID_SIZE], const struct segment_record *record,
                        uint8_t head[SEGMENT_HEAD_SIZE]);

/* Reads a segment from beginning to end, whatever its state. It needs memory for the largest record. */
struct segment_reader;

/* Of a thread that reads: a failing disk may take seconds for each block. Zero-initialise it. */
struct segment_watch {
        struct heartbeat heartbeat; /* waits while the disk is read */
        atomic_int is_stopping;     /* read no more */
};

/* Return NULL with the reason, also for anything but a regular file. */
struct segment_reader *segment_reader_open(int directory, const char *name, struct error *error) MUST_CHECK;
void segment_reader_close(struct segment_reader *reader);

/* Watch the reader, from the first record on. watch outlives it; NULL: nobody. */
void segment_reader_watch(struct segment_reader *reader, struct segment_watch *watch);

/*
 * Read the next intact record other than a seal. Return 1, 0 at the end, or -1 if memory fails or the thread
 * stops.
 */
int segment_reader_next(struct segment_reader *reader, struct segment_record *record) MUST_CHECK;

/* What was read so far. */
struct segment_summary {
        uint64_t size; /* of the file */
        uint64_t n_records;
        int64_t oldest_ms; /* of reception; 0 without records */
        int64_t newest_ms;
        uint64_t damaged_bytes;    /* synced once, and not intact now */
        uint64_t torn_bytes;       /* not intact, and not known to have been synced */
        uint64_t unreadable_bytes; /* of no record, while the disk fails to read some: maybe not damaged */
};

void segment_reader_summary(const struct segment_reader *reader, struct segment_summary *summary);

#endif
