#include "cli/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/spool_scan.h"

static const char *directory;
static int as_json;

static char *
format_time(const struct segment_summary *summary, int64_t ms, char text[CLOCK_RFC3339_SIZE])
{
        if (summary->n_records > 0)
                return clock_format_s(ms / 1000, text);
        (void)snprintf(text, CLOCK_RFC3339_SIZE, "-");
        return text;
}

/* Print a segment, and why not all of it is readable. */
static void
print_segment(const struct spool_scan_segment *segment)
{
        const struct segment_summary *summary = &segment->summary;
        char oldest[CLOCK_RFC3339_SIZE], newest[CLOCK_RFC3339_SIZE];

        printf("%016" PRIx64 " %10" PRIu64 " %6" PRIu64 " %-20s %-20s %s\n", segment->number, summary->size,
               summary->n_records, format_time(summary, summary->oldest_ms, oldest),
               format_time(summary, summary->newest_ms, newest), spool_scan_state(segment));
        if (segment->has_failed)
                printf("    %s\n", segment->failure.text);
        if (summary->damaged_bytes > 0)
                printf("    %" PRIu64 " bytes are damaged\n", summary->damaged_bytes);
        if (summary->torn_bytes > 0)
                printf("    %" PRIu64 " bytes of no whole record, at its end\n", summary->torn_bytes);
}

static void
print_text(const struct spool_scan *scan)
{
        uint64_t bytes = 0, records = 0;

        if (scan->n > 0)
                printf("%-16s %10s %6s %-20s %-20s %s\n", "SEGMENT", "BYTES", "COUNT", "OLDEST", "NEWEST",
                       "STATE");
        for (size_t i = 0; i < scan->n; i++) {
                print_segment(&scan->segments[i]);
                bytes += scan->segments[i].summary.size;
                records += scan->segments[i].summary.n_records;
        }
        printf("%zu segments, %" PRIu64 " records, %" PRIu64 " bytes\n", scan->n, records, bytes);
        if (scan->n_others > 0)
                printf("%zu other files\n", scan->n_others);
}

static void
put_time(struct json_writer *json, const char *name, const struct segment_summary *summary, int64_t ms)
{
        char text[CLOCK_RFC3339_SIZE];

        json_member(json, name, summary->n_records == 0 ? NULL : clock_format_ms(ms, text));
}

static void
print_json(const struct spool_scan *scan)
{
        struct json_writer *json = json_new(1);

        json_open_array(json, NULL);
        for (size_t i = 0; i < scan->n; i++) {
                const struct spool_scan_segment *segment = &scan->segments[i];
                const struct segment_summary *summary = &segment->summary;

                json_open_object(json, NULL);
                json_member(json, "name", segment->name);
                json_number(json, "size", (int64_t)summary->size);
                json_number(json, "records", (int64_t)summary->n_records);
                put_time(json, "oldest", summary, summary->oldest_ms);
                put_time(json, "newest", summary, summary->newest_ms);
                json_member(json, "state", spool_scan_state(segment));
                json_number(json, "damagedBytes", (int64_t)summary->damaged_bytes);
                json_number(json, "tornBytes", (int64_t)summary->torn_bytes);
                json_member(json, "failure", segment->has_failed ? segment->failure.text : NULL);
                json_close_object(json);
        }
        json_close_array(json);
        json_print(json);
}

/* Report the segments in which deliveries that were answered 200 may be missing. Returns an exit status. */
static int
report_damage(const struct spool_scan *scan)
{
        size_t n = 0;

        for (size_t i = 0; i < scan->n; i++)
                n += scan->segments[i].has_failed || scan->segments[i].is_aside ||
                     scan->segments[i].summary.damaged_bytes > 0;
        return n == 0 ? 0
                      : command_fail(EX_DATAERR,
                                     "deliveries that were answered 200 may be missing in %zu of "
                                     "the segments: see DAMAGE in gatepost-spool(5)",
                                     n);
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
        if (status == 0) {
                spool_scan_read_all(&scan);
                (as_json ? print_json : print_text)(&scan);
                status = report_damage(&scan);
        }
        spool_scan_close(&scan);
        free(path);
        return status;
}

static const struct command_option options[] = {
    SPOOL_SCAN_DIRECTORY(directory),
    {"json", NULL, "print JSON", .flag = &as_json},
};

const struct command spool_list_command = {
    .name = "spool list",
    .help = "read the segments of a spool, and report damage",
    .becomes_daemon = 1,
    .run_with_file = run,
    COMMAND_OPTIONS(options),
};
