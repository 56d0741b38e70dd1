#ifndef CLI_SPOOL_SCAN_H
#define CLI_SPOOL_SCAN_H

#include <stddef.h>

#include "base/compiler.h"
#include "spool/segment.h"
#include "spool/spool_directory.h"

/*
 * The segments of a spool that `gatepost spool` lists or shows, the damaged ones that were put aside too. It
 * takes no lock and writes nothing, so it works beside a running gatepostd, which adds and deletes segments.
 */

struct spool_scan_segment {
        char name[SPOOL_NAME_SIZE];
        int is_aside;   /* it was put aside as damaged or torn */
        int is_gone;    /* it was deleted since it was listed */
        int has_failed; /* it could not be read, for the reason in failure */
        struct error failure;
        struct segment_summary summary; /* once it was read */
};

struct spool_scan {
        struct spool_directory *directory;
        struct spool_scan_segment *segments; /* by number; then those that were put aside */
        size_t n;
        size_t n_others; /* files that are not segments */
};

/* The argument of a command that names the directory. */
/* clang-format off */
#define SPOOL_SCAN_DIRECTORY(destination) \
    {NULL, "[DIR]", "use this directory (default: [receiver] spool)", .text = &(destination)}
/* clang-format on */

/**
 * spool_scan_open(path, exclusive, directory):
 * Open a directory as spool_directory_open() does. Return 0, or an exit status after printing the reason.
 */
int spool_scan_open(const char *path, int exclusive, struct spool_directory **directory) MUST_CHECK;

/**
 * spool_scan_run(file, path, report):
 * List the segments in a directory or, if path is NULL, in the spool of a configuration file, and report
 * them. Return the exit status of the report, or another one after printing the reason.
 */
int spool_scan_run(const char *file, const char *path, int (*report)(struct spool_scan *scan)) MUST_CHECK;

/**
 * spool_scan_read(scan, segment, visit, arg):
 * Read a segment to its end, and set its summary, or why it could not be read; call visit, unless it is NULL,
 * with each record.
 */
void spool_scan_read(const struct spool_scan *scan, struct spool_scan_segment *segment,
                     void (*visit)(const struct spool_scan_segment *segment,
                                   const struct segment_record *record, void *arg),
                     void *arg);

#endif
