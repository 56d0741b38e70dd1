#include "cli/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/spool_scan.h"

static const char *directory;
static int as_json;

/* A segment that ends within its header was created just before a crash. */
static const char *
state_of(const struct spool_scan_segment *segment)
{
        const struct segment_summary *summary = &segment->summary;

        if (segment->has_failed)
                return "failed";
        if (segment->is_aside)
                return "aside";
        if (summary->damaged_bytes > 0)
                return "damaged";
        return summary->torn_bytes > 0 || summary->size < SEGMENT_HEADER_SIZE ? "torn" : "complete";
}

/* Return whether deliveries that were answered 200 may be missing in a segment. */
static int
may_lack_records(const struct spool_scan_segment *segment)
{
        return segment->has_failed || segment->is_aside || segment->summary.damaged_bytes > 0;
}

static const char *
format_time(const struct segment_summary *summary, int64_t ms, char text[CLOCK_RFC3339_SIZE])
{
        return summary->n_records == 0 ? "-" : clock_format_s(ms / 1000, text);
}

/* Print a segment, and why not all of it is readable. */
static void
print_segment(const struct spool_scan_segment *segment)
{
        const struct segment_summary *summary = &segment->summary;
        char oldest[CLOCK_RFC3339_SIZE], newest[CLOCK_RFC3339_SIZE];

        printf("%-24s %10" PRIu64 " %6" PRIu64 " %-20s %-20s %s", segment->name, summary->size,
               summary->n_records, format_time(summary, summary->oldest_ms, oldest),
               format_time(summary, summary->newest_ms, newest), state_of(segment));
        if (segment->has_failed)
                printf(": %s", segment->failure.text);
        if (summary->damaged_bytes > 0)
                printf(", %" PRIu64 " damaged bytes", summary->damaged_bytes);
        if (summary->torn_bytes > 0)
                printf(", %" PRIu64 " torn bytes", summary->torn_bytes);
        putchar('\n');
}

static void
put_time(struct json_writer *json, const char *name, const struct segment_summary *summary, int64_t ms)
{
        char text[CLOCK_RFC3339_SIZE];

        json_member(json, name, summary->n_records == 0 ? NULL : clock_format_ms(ms, text));
}

static void
put_segment(struct json_writer *json, const struct spool_scan_segment *segment)
{
        const struct segment_summary *summary = &segment->summary;

        json_open_object(json, NULL);
        json_member(json, "name", segment->name);
        json_number(json, "size", (int64_t)summary->size);
        json_number(json, "records", (int64_t)summary->n_records);
        put_time(json, "oldest", summary, summary->oldest_ms);
        put_time(json, "newest", summary, summary->newest_ms);
        json_member(json, "state", state_of(segment));
        json_number(json, "damagedBytes", (int64_t)summary->damaged_bytes);
        json_number(json, "tornBytes", (int64_t)summary->torn_bytes);
        json_member(json, "failure", segment->has_failed ? segment->failure.text : NULL);
        json_close_object(json);
}

/* Read and list the segments. Returns an exit status. */
static int
list(struct spool_scan *scan)
{
        struct json_writer *json = as_json ? json_new(1) : NULL;
        uint64_t bytes = 0, records = 0;
        size_t n = 0, n_damaged = 0;

        if (as_json)
                json_open_array(json, NULL);
        else if (scan->n > 0)
                printf("%-24s %10s %6s %-20s %-20s %s\n", "SEGMENT", "BYTES", "COUNT", "OLDEST", "NEWEST",
                       "STATE");
        for (size_t i = 0; i < scan->n; i++) {
                struct spool_scan_segment *segment = &scan->segments[i];

                spool_scan_read(scan, segment, NULL, NULL);
                if (segment->is_gone)
                        continue;
                if (as_json)
                        put_segment(json, segment);
                else
                        print_segment(segment);
                n++;
                n_damaged += may_lack_records(segment) ? 1 : 0;
                bytes += segment->summary.size;
                records += segment->summary.n_records;
        }
        if (as_json) {
                json_close_array(json);
                json_print(json);
        } else {
                printf("%zu segments, %" PRIu64 " records, %" PRIu64 " bytes; %zu other files\n", n, records,
                       bytes, scan->n_others);
        }
        return n_damaged == 0 ? 0
                              : command_fail(EX_DATAERR,
                                             "deliveries that were answered 200 may be missing in %zu of "
                                             "the segments: see DAMAGE in gatepost-spool(5)",
                                             n_damaged);
}

static int
run(const char *file)
{
        return spool_scan_run(file, directory, list);
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
