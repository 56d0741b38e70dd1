#include "cli/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#include "base/text.h"
#include "cli/spool_scan.h"

static const char *directory;

/* Print what is wrong with a segment. */
static void
print_trouble(const struct spool_scan_segment *segment)
{
        const struct segment_summary *summary = &segment->summary;

        if (segment->has_failed)
                printf("%s: cannot be read: %s\n", segment->name, segment->failure.text);
        else if (summary->damaged_bytes > 0)
                printf("%s: damaged: %" PRIu64 " unreadable bytes, %" PRIu64 " readable records\n",
                       segment->name, summary->damaged_bytes, summary->n_records);
        else if (segment->is_aside)
                printf("%s: put aside: %" PRIu64 " readable records\n", segment->name, summary->n_records);
        if (!segment->has_failed && summary->torn_bytes > 0)
                printf("%s: torn: %" PRIu64 " bytes of no whole record: " SPOOL_SCAN_TORN "\n", segment->name,
                       summary->torn_bytes);
}

static int
check_all(struct spool_scan *scan)
{
        uint64_t n_records = 0, torn = 0, damaged = 0;
        size_t n_damaged = 0;

        spool_scan_read_all(scan);
        for (size_t i = 0; i < scan->n; i++) {
                const struct spool_scan_segment *segment = &scan->segments[i];

                print_trouble(segment);
                n_records += segment->summary.n_records;
                torn += segment->summary.torn_bytes;
                damaged += segment->summary.damaged_bytes;
                n_damaged += (size_t)spool_scan_is_damaged(segment);
        }
        printf("%zu segment%s: %" PRIu64 " readable record%s, %" PRIu64 " torn bytes, %" PRIu64
               " damaged bytes\n",
               scan->n, scan->n == 1 ? "" : "s", n_records, n_records == 1 ? "" : "s", torn, damaged);
        if (scan->n_others > 0)
                printf("%zu other file%s ignored\n", scan->n_others, scan->n_others == 1 ? " is" : "s are");
        if (n_damaged == 0)
                return 0;
        return command_fail(
            EX_DATAERR,
            "%zu segment%s damaged: deliveries that were answered 200 may be lost; see DAMAGE "
            "in gatepost-spool(5)",
            n_damaged, n_damaged == 1 ? " is" : "s are");
}

static int
run(const char *file)
{
        struct spool_scan scan;
        char *path;
        int status = spool_scan_find(file, directory, &path);

        if (status != 0)
                return status;
        status = spool_scan_open(&scan, path);
        if (status == 0)
                status = check_all(&scan);
        spool_scan_close(&scan);
        free(path);
        return status;
}

static const struct command_option options[] = {
    SPOOL_SCAN_DIRECTORY(directory),
};

const struct command spool_check_command = {
    .name = "spool check",
    .help = "read all segments of a spool and report damage",
    .run_with_file = run,
    COMMAND_OPTIONS(options),
};
