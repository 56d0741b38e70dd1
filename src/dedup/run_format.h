#ifndef DEDUP_RUN_FORMAT_H
#define DEDUP_RUN_FORMAT_H

#include <stdint.h>

#include "base/compiler.h"
#include "dedup/entry.h"

/*
 * The file of a run (run.h):
 *
 *   header   512 bytes: struct run_header, zeros
 *   blocks   512 bytes each: 14 entries, sorted by identity and body, and their checksum
 *   index    4 bytes for each block: the first 32 bits of its first identity
 *   filter   lines of 64 bytes, a blocked Bloom filter of about 12 bits for each identity
 *
 * An identity with several bodies has one more entry after theirs, DEDUP_ANY_BODY. All numbers are in the
 * order of bytes of the machine, which the version shows as well. Checksums are CRC-32C. Those of header,
 * index and filter are verified when the file is opened, that of a block, which covers the run's id and the
 * number of the block, when it is read.
 */

#define RUN_MAGIC "GPRUN\0\0"
#define RUN_VERSION 1
#define RUN_BLOCK_SIZE 512
#define RUN_BLOCK_ENTRIES 14
#define RUN_LINE_SIZE 64

/* A record by which to recognise the log. offset is -1 if there is none. */
struct run_mark {
        int64_t offset;
        int64_t timestamp_ms;
        uint64_t body;
        uint8_t identity[DEDUP_IDENTITY_SIZE];
};

/* What a run is of. */
struct run_range {
        uint8_t owner[16]; /* a digest of the topic under the key of the state: shows files of another one */
        int64_t from;      /* the records from this offset on, */
        int64_t to;        /* up to before this one */
        int64_t complete_from_ms; /* but not all of those with earlier timestamps */
        struct run_mark before;   /* the last record of the run before it */
        struct run_mark last;     /* its own last record that has an identity */
        int32_t partition;
        int32_t has_doubtful; /* as dedup_note_doubtful() */
};

struct run_header {
        char magic[8];
        uint32_t version; /* also shows the order of bytes */
        uint32_t crc;     /* of the header, with 0 here */
        uint64_t id;      /* random */
        uint64_t n_entries;
        uint64_t n_lines; /* of the filter */
        int64_t least_ms; /* of the entries' last times */
        int64_t most_ms;
        struct run_range range;
        uint32_t index_crc;
        uint32_t filter_crc;
};

struct run_disk_entry {
        uint8_t identity[DEDUP_IDENTITY_SIZE];
        uint64_t body;
        int64_t last_ms;
        uint32_t first_offset; /* relative to the run's first offset */
} __attribute__((packed));

struct run_block {
        struct run_disk_entry entries[RUN_BLOCK_ENTRIES];
        uint32_t crc;
        uint32_t zero;
} __attribute__((packed));

/* Offsets in a run are relative, with 32 bits. */
#define RUN_MAX_RECORDS (INT64_C(1) << 32)

/* Return a reason why this is not the header of a run of a file of this size, or NULL. */
const char *run_header_fault(const struct run_header *header, const uint8_t owner[16],
                             uint64_t file_size) MUST_CHECK;

/* Number of blocks. */
uint64_t run_n_blocks(const struct run_header *header);

/* Bytes of the whole file. */
uint64_t run_size(const struct run_header *header);

/* The checksum of a block. */
uint32_t run_block_crc(uint64_t id, uint64_t number, const struct run_block *block);

/* The checksum of a header. */
uint32_t run_header_crc(const struct run_header *header);

/* The first 32 bits of an identity, as in the index. */
uint32_t run_index_key(const uint8_t identity[DEDUP_IDENTITY_SIZE]);

/* Add an identity to a filter. */
void run_filter_add(uint8_t *lines, uint64_t n_lines, const uint8_t identity[DEDUP_IDENTITY_SIZE]);

/* Return whether a filter may have an identity; it has all that were added, and about one in 200 others. */
int run_filter_has(const uint8_t *lines, uint64_t n_lines,
                   const uint8_t identity[DEDUP_IDENTITY_SIZE]) MUST_CHECK;

/* Return the line of an identity. */
const uint8_t *run_filter_line(const uint8_t *lines, uint64_t n_lines,
                               const uint8_t identity[DEDUP_IDENTITY_SIZE]);

#endif
