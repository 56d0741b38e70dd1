#include "cli/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/show_record.h"
#include "cli/spool_scan.h"

static struct {
        const char *directory;
        const char *delivery_id; /* NULL: all */
        const char *segment;     /* NULL: all */
        int only_headers;
        int as_json;
        int as_raw;
} args;

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
print_text(const struct spool_scan_segment *segment, const struct segment_record *record, int is_first)
{
        char received[CLOCK_RFC3339_SIZE];
        struct span key = spool_scan_key(record);

        printf("%ssegment      %s, byte %" PRIu64 "\n", is_first ? "" : "\n", segment->name, record->offset);
        printf("received     %s\n", clock_format_ms(record->received_ms, received));
        printf("delivery-id  ");
        text_print(stdout, key.data == NULL ? "-" : key.data, key.data == NULL ? 1 : key.len);
        printf("\nheaders\n");
        print_headers(record);
        printf("body, %zu bytes\n", record->body.len);
        if (!args.only_headers)
                show_record_body(record->body.data, record->body.len);
}

static void
print_json(const struct spool_scan_segment *segment, const struct segment_record *record)
{
        struct json_writer *json = json_new(0);
        char received[CLOCK_RFC3339_SIZE];
        struct span key = spool_scan_key(record);
        struct record_header field;
        size_t at = 0;

        json_open_object(json, NULL);
        json_member(json, "segment", segment->name);
        json_number(json, "offset", (int64_t)record->offset);
        json_member(json, "received", clock_format_ms(record->received_ms, received));
        json_bytes(json, "deliveryId", key.data == NULL ? "" : key.data, key.len);
        json_open_object(json, "headers");
        while (segment_next_field(record->fields, &at, &field) > 0) {
                if (field.name[0] != '\0')
                        json_bytes(json, field.name, field.value.data, field.value.len);
        }
        json_close_object(json);
        json_number(json, "size", (int64_t)record->body.len);
        if (!args.only_headers)
                json_bytes(json, "value", record->body.data, record->body.len);
        json_close_object(json);
        json_print(json);
}

static void
show(const struct spool_scan_segment *segment, const struct segment_record *record, void *arg)
{
        struct span key = spool_scan_key(record);
        size_t *n = arg;

        if (args.delivery_id != NULL &&
            (key.len != strlen(args.delivery_id) || memcmp(key.data, args.delivery_id, key.len) != 0))
                return;
        if (args.as_raw && *n > 0)
                return; /* another attempt of the same delivery */
        if (args.as_raw)
                (void)fwrite(record->body.data, 1, record->body.len, stdout);
        else if (args.as_json)
                print_json(segment, record);
        else
                print_text(segment, record, *n == 0);
        ++*n;
}

/* Return whether the user means a segment, with or without the end of its name. */
static int
is_meant(const struct spool_scan_segment *segment)
{
        return args.segment == NULL || strcmp(args.segment, segment->name) == 0 ||
               (strlen(args.segment) == strcspn(segment->name, ".") &&
                strncmp(args.segment, segment->name, strlen(args.segment)) == 0);
}

static int
show_all(struct spool_scan *scan)
{
        size_t n = 0, n_meant = 0;
        int status = 0;

        for (size_t i = 0; i < scan->n && !ferror(stdout); i++) {
                if (!is_meant(&scan->segments[i]))
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
check(struct error *error)
{
        if (args.as_raw && args.delivery_id == NULL)
                return error_set(error, "--raw needs --delivery-id ID");
        if (args.as_raw && (args.as_json || args.only_headers))
                return error_set(error, "takes either --raw or --json or --headers-only");
        return 0;
}

static int
run(const char *file)
{
        struct spool_scan scan;
        char *path;
        int status = spool_scan_find(file, args.directory, &path);

        if (status != 0)
                return status;
        status = spool_scan_open(&scan, path);
        if (status == 0)
                status = show_all(&scan);
        spool_scan_close(&scan);
        free(path);
        return status;
}

static const struct command_option options[] = {
    SPOOL_SCAN_DIRECTORY(args.directory),
    {"delivery-id", "ID", "show only the records of this delivery", .text = &args.delivery_id},
    {"segment", "NAME", "show only the records of this segment", .text = &args.segment},
    {"headers-only", NULL, "omit the bodies", .flag = &args.only_headers},
    {"json", NULL, "print JSON, one record on each line", .flag = &args.as_json},
    {"raw", NULL, "print only the raw body", .flag = &args.as_raw},
};

const struct command spool_show_command = {
    .name = "spool show",
    .help = "show the deliveries in a spool",
    .check = check,
    .becomes_daemon = 1,
    .run_with_file = run,
    COMMAND_OPTIONS(options),
};
