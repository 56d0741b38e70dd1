#include "cli/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

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

static void
print_text(const struct spool_scan *scan)
{
        char oldest[CLOCK_RFC3339_SIZE], newest[CLOCK_RFC3339_SIZE], size[SPOOL_SCAN_SIZE_SIZE];
        uint64_t bytes = 0, records = 0;
        size_t n_aside = 0;

        if (scan->n > 0)
                printf("%-16s %5s %6s %-20s %-20s %s\n", "SEGMENT", "SIZE", "COUNT", "OLDEST", "NEWEST",
                       "STATE");
        for (size_t i = 0; i < scan->n; i++) {
                const struct segment_summary *summary = &scan->segments[i].summary;

                printf("%016" PRIx64 " %5s %6" PRIu64 " %-20s %-20s %s\n", scan->segments[i].number,
                       spool_scan_format_size(summary->size, size), summary->n_records,
                       format_time(summary, summary->oldest_ms, oldest),
                       format_time(summary, summary->newest_ms, newest),
                       spool_scan_state(&scan->segments[i]));
                bytes += summary->size;
                records += summary->n_records;
                n_aside += (size_t)scan->segments[i].is_aside;
        }
        printf("%zu segment%s, %" PRIu64 " record%s, %s\n", scan->n - n_aside,
               scan->n - n_aside == 1 ? "" : "s", records, records == 1 ? "" : "s",
               spool_scan_format_size(bytes, size));
        if (n_aside > 0)
                printf("%zu damaged or torn segment%s put aside: see DAMAGE in gatepost-spool(5)\n", n_aside,
                       n_aside == 1 ? " was" : "s were");
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
    .help = "list the segments of a receiver's spool",
    .run_with_file = run,
    COMMAND_OPTIONS(options),
};
