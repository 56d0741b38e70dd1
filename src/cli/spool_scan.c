#include "cli/spool_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/command.h"

int
spool_scan_open(const char *path, int exclusive, struct spool_directory **directory)
{
        struct error error;

        if (access(path, R_OK | X_OK) != 0)
                return command_fail(errno == EACCES ? EX_NOPERM : EX_NOINPUT, "cannot open %s: %s", path,
                                    strerror(errno));
        *directory = spool_directory_open(path, exclusive, &error);
        return *directory != NULL ? 0 : command_fail(exclusive ? EX_TEMPFAIL : EX_NOINPUT, "%s", error.text);
}

static void
add(struct spool_scan *scan, uint64_t number, int is_aside)
{
        struct spool_scan_segment *segment = &scan->segments[scan->n++];

        segment->is_aside = is_aside;
        (void)(is_aside ? spool_directory_damaged_name : spool_directory_name)(number, segment->name);
}

/* Report the segments in a directory. Return an exit status. */
static int
report_directory(struct spool_directory *directory, int (*report)(struct spool_scan *scan))
{
        struct spool_scan scan = {.directory = directory};
        struct spool_listing listing;
        struct error error;
        int status;

        if (spool_directory_list(directory, 0, &listing, &error) != 0)
                return command_fail(EX_NOINPUT, "%s", error.text);
        scan.n_others = listing.n_others;
        scan.segments = mem_alloc((listing.n_segments + listing.n_damaged + 1) * sizeof(*scan.segments));
        for (size_t i = 0; i < listing.n_segments; i++)
                add(&scan, listing.segments[i].number, 0);
        for (size_t i = 0; i < listing.n_damaged; i++)
                add(&scan, listing.damaged[i].number, 1);
        spool_listing_free(&listing);
        status = report(&scan);
        free(scan.segments);
        return status;
}

int
spool_scan_run(const char *file, const char *path, int (*report)(struct spool_scan *scan))
{
        struct config *config = path != NULL ? NULL : config_load(file);
        struct spool_directory *directory = NULL;
        int status;

        if (path == NULL && config == NULL)
                return EX_CONFIG;
        if (path == NULL)
                path = config->spool;
        status = path == NULL ? command_misused("needs DIR: %s has no spool in [receiver]", file)
                              : spool_scan_open(path, 0, &directory);
        if (status == 0)
                status = report_directory(directory, report);
        spool_directory_close(directory);
        config_free(config);
        return status;
}

void
spool_scan_read(const struct spool_scan *scan, struct spool_scan_segment *segment,
                void (*visit)(const struct spool_scan_segment *segment, const struct segment_record *record,
                              void *arg),
                void *arg)
{
        int directory = spool_directory_fd(scan->directory), found;
        struct segment_reader *reader = segment_reader_open(directory, segment->name, &segment->failure);
        struct segment_record record;

        if (reader == NULL) {
                segment->is_gone =
                    faccessat(directory, segment->name, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
                segment->has_failed = !segment->is_gone;
                return;
        }
        while ((found = segment_reader_next(reader, &record)) > 0) {
                if (visit != NULL)
                        visit(segment, &record, arg);
        }
        segment_reader_summary(reader, &segment->summary);
        segment_reader_close(reader);
        if (found < 0)
                segment->has_failed = error_set(&segment->failure, "out of memory") != 0;
        else if (segment->summary.unreadable_bytes > 0)
                segment->has_failed = error_set(&segment->failure, "the disk does not return all of it") != 0;
}
