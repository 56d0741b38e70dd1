#include "cli/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/show_record.h"
#include "cli/spool_scan.h"

static struct {
        const char *directory;
        const char *delivery_id; /* NULL: all */
        const char *segment;     /* NULL: all */
} args;

/* Return the delivery-id of a record; without data if it has none. */
static struct span
find_id(const struct segment_record *record)
{
        struct record_header field;
        size_t at = 0;

        while (segment_next_field(record->fields, &at, &field) > 0) {
                if (field.name[0] == '\0')
                        return field.value;
        }
        return (struct span){NULL, 0};
}

static void
print_headers(const struct segment_record *record)
{
        struct record_header field;
        size_t at = 0;
        int found;

        while ((found = segment_next_field(record->fields, &at, &field)) > 0) {
                if (field.name[0] == '\0')
                        continue;
                printf("    ");
                text_print(stdout, field.name, strlen(field.name));
                printf(": ");
                text_print(stdout, field.value.data, field.value.len);
                putchar('\n');
        }
        if (found < 0)
                printf("    (the other fields are malformed)\n");
}

static void
print_record(const struct spool_scan_segment *segment, const struct segment_record *record, int is_first)
{
        char received[CLOCK_RFC3339_SIZE];
        struct span id = find_id(record);

        printf("%ssegment      %s, byte %" PRIu64 "\n", is_first ? "" : "\n", segment->name, record->offset);
        printf("received     %s\n", clock_format_ms(record->received_ms, received));
        printf("delivery-id  ");
        text_print(stdout, id.data == NULL ? "-" : id.data, id.data == NULL ? 1 : id.len);
        printf("\nheaders\n");
        print_headers(record);
        printf("body, %zu bytes\n", record->body.len);
        show_record_body(record->body.data, record->body.len);
}

static void
show(const struct spool_scan_segment *segment, const struct segment_record *record, void *arg)
{
        struct span id = find_id(record);
        size_t *n = arg;

        if (args.delivery_id != NULL &&
            (id.len != strlen(args.delivery_id) || memcmp(id.data, args.delivery_id, id.len) != 0))
                return;
        print_record(segment, record, *n == 0);
        ++*n;
}

static int
show_all(struct spool_scan *scan)
{
        size_t n = 0, n_meant = 0;
        int status = 0;

        for (size_t i = 0; i < scan->n && !ferror(stdout); i++) {
                if (args.segment != NULL && strcmp(args.segment, scan->segments[i].name) != 0)
                        continue;
                n_meant++;
                spool_scan_read(scan, &scan->segments[i], show, &n);
                if (scan->segments[i].has_failed)
                        status = command_fail(EX_DATAERR, "cannot read %s: %s", scan->segments[i].name,
                                              scan->segments[i].failure.text);
        }
        if (args.segment != NULL && n_meant == 0)
                return command_fail(EX_NOINPUT, "there is no segment %s; gatepost spool list shows them",
                                    args.segment);
        if (args.delivery_id != NULL && n == 0)
                return command_fail(status != 0 ? status : EX_NOINPUT, "there is no readable delivery %s",
                                    args.delivery_id);
        return status;
}

static int
run(const char *file)
{
        return spool_scan_run(file, args.directory, show_all);
}

static const struct command_option options[] = {
    SPOOL_SCAN_DIRECTORY(args.directory),
    {"delivery-id", "ID", "show only the records of this delivery", .text = &args.delivery_id},
    {"segment", "NAME", "show only the records of this segment", .text = &args.segment},
};

const struct command spool_show_command = {
    .name = "spool show",
    .help = "show the deliveries in a spool",
    .becomes_daemon = 1,
    .run_with_file = run,
    COMMAND_OPTIONS(options),
};
