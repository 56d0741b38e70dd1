#include "cli/spool_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/command.h"

int
spool_scan_find(const char *file, const char *directory, char **path)
{
        struct config *config;
        int status = 0;

        if (directory != NULL) {
                *path = mem_strdup(directory);
                return 0;
        }
        config = config_load(file);
        if (config == NULL)
                return EX_CONFIG;
        if (config->spool == NULL)
                status = command_misused("needs DIR: %s has no spool in [receiver]", file);
        else
                *path = mem_strdup(config->spool);
        config_free(config);
        return status;
}

static void
add(struct spool_scan *scan, const struct spool_file *file, int is_aside)
{
        struct spool_scan_segment *segment;

        scan->segments = mem_resize(scan->segments, scan->n + 1, sizeof(*scan->segments));
        segment = &scan->segments[scan->n++];
        memset(segment, 0, sizeof(*segment));
        segment->number = file->number;
        segment->is_aside = is_aside;
        (void)(is_aside ? spool_directory_damaged_name : spool_directory_name)(file->number, segment->name);
}

static int
compare(const void *a, const void *b)
{
        const struct spool_scan_segment *one = a, *other = b;

        if (one->number != other->number)
                return one->number < other->number ? -1 : 1;
        return one->is_aside - other->is_aside;
}

int
spool_scan_open(struct spool_scan *scan, const char *path)
{
        struct spool_listing listing;
        struct error error;
        struct stat status;

        memset(scan, 0, sizeof(*scan));
        if (stat(path, &status) != 0)
                return command_fail(errno == EACCES ? EX_NOPERM : EX_NOINPUT, "cannot open %s: %s", path,
                                    strerror(errno));
        if (!S_ISDIR(status.st_mode))
                return command_fail(EX_NOINPUT, "%s is not a directory", path);
        scan->directory = spool_directory_open(path, 0, &error);
        if (scan->directory == NULL || spool_directory_list(scan->directory, 0, &listing, &error) != 0)
                return command_fail(EX_NOPERM, "%s", error.text);
        for (size_t i = 0; i < listing.n_segments; i++)
                add(scan, &listing.segments[i], 0);
        for (size_t i = 0; i < listing.n_damaged; i++)
                add(scan, &listing.damaged[i], 1);
        scan->n_others = listing.n_others;
        spool_listing_free(&listing);
        if (scan->n > 1)
                qsort(scan->segments, scan->n, sizeof(*scan->segments), compare);
        return 0;
}

void
spool_scan_close(struct spool_scan *scan)
{
        free(scan->segments);
        spool_directory_close(scan->directory);
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
        if (found < 0)
                segment->has_failed = error_set(&segment->failure, "out of memory") != 0;
        segment_reader_summary(reader, &segment->summary);
        if (found == 0 && segment->summary.unreadable_bytes > 0)
                segment->has_failed =
                    error_set(&segment->failure,
                              "the disk does not return all of it; readable records: %" PRIu64,
                              segment->summary.n_records) != 0;
        segment_reader_close(reader);
}

void
spool_scan_read_all(struct spool_scan *scan)
{
        size_t n = 0;

        for (size_t i = 0; i < scan->n; i++) {
                spool_scan_read(scan, &scan->segments[i], NULL, NULL);
                if (!scan->segments[i].is_gone)
                        scan->segments[n++] = scan->segments[i];
        }
        scan->n = n;
}

/* A segment that ends within its header was created just before a crash. */
const char *
spool_scan_state(const struct spool_scan_segment *segment)
{
        if (segment->has_failed)
                return "failed";
        if (segment->is_aside)
                return "aside";
        if (segment->summary.damaged_bytes > 0)
                return "damaged";
        return segment->summary.torn_bytes > 0 || segment->summary.size < SEGMENT_HEADER_SIZE ? "torn"
                                                                                              : "complete";
}

struct span
spool_scan_key(const struct segment_record *record)
{
        struct record_header field;
        size_t at = 0;

        while (segment_next_field(record->fields, &at, &field) > 0) {
                if (field.name[0] == '\0')
                        return field.value;
        }
        return (struct span){NULL, 0};
}
