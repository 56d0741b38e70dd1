#ifndef CLI_SPOOL_SCAN_H
#define CLI_SPOOL_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "spool/segment.h"
#include "spool/spool_directory.h"

/*
 * The segments of a spool that a `gatepost spool` command reads, the damaged ones that were put aside too. It
 * takes no lock and writes nothing, so it works beside a running gatepostd, which adds and deletes segments.
 */

struct spool_scan_segment {
        uint64_t number;
        char name[SPOOL_NAME_SIZE];
        int is_aside;   /* it was put aside as damaged or torn */
        int is_gone;    /* it was deleted since it was listed */
        int has_failed; /* it could not be read, for the reason in failure */
        struct error failure;
        struct segment_summary summary; /* once it was read */
};

struct spool_scan {
        struct spool_directory *directory;
        struct spool_scan_segment *segments; /* by number */
        size_t n;
        size_t n_others; /* files that are not segments */
};

/* The argument of a command that names the directory. */
/* clang-format off */
#define SPOOL_SCAN_DIRECTORY(destination) \
    {NULL, "[DIR]", "use this directory (default: [receiver] spool)", .text = &(destination)}
/* clang-format on */

/**
 * spool_scan_find(file, directory, path):
 * Set *path to the directory or, if it is NULL, to the spool of a configuration file. Return 0, and then the
 * caller frees *path, or an exit status after printing the reason.
 */
int spool_scan_find(const char *file, const char *directory, char **path) MUST_CHECK;

/* List the segments in a directory. Return 0, or an exit status after printing the reason. */
int spool_scan_open(struct spool_scan *scan, const char *path) MUST_CHECK;
void spool_scan_close(struct spool_scan *scan);

/**
 * spool_scan_read(scan, segment, visit, arg):
 * Read a segment to its end, and set its summary, or why it could not be read; call visit, unless it is NULL,
 * with each record.
 */
void spool_scan_read(const struct spool_scan *scan, struct spool_scan_segment *segment,
                     void (*visit)(const struct spool_scan_segment *segment,
                                   const struct segment_record *record, void *arg),
                     void *arg);

/* Read all segments, and leave out those that are gone. */
void spool_scan_read_all(struct spool_scan *scan);

/* Return the state of a segment that was read: complete, torn, damaged, aside or failed. */
const char *spool_scan_state(const struct spool_scan_segment *segment);

/* Find the delivery-id of a record; without data if it has none. */
struct span spool_scan_key(const struct segment_record *record);

#endif
