#include <stdio.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/number.h"
#include "cli/status.h"

/* The lines of `gatepost status` on the directories of a receiver and a router. */

/* Print the time since a moment, which is since the epoch. */
static void
print_since(const struct json_value *spool, const char *name)
{
        number_print_span(stdout, (double)clock_now_ms() / 1000 - status_number(spool, name));
}

static void
print_bytes(double bytes)
{
        static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
        size_t unit = 0;

        for (; bytes >= 1024 && unit + 1 < ARRAY_LEN(units); unit++)
                bytes /= 1024;
        printf(unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
}

/* Print a number that is not 0, after a comma and a label. */
static void
print_nonzero(const struct json_value *object, const char *name, const char *label)
{
        if (status_number(object, name) != 0)
                printf(", %s %.0f", label, status_number(object, name));
}

/* Print what went wrong with the spool. */
static void
print_spool_faults(const struct json_value *spool)
{
        const struct json_value *errors = json_tree_get(spool, "errors");

        if (errors != NULL && status_sum(errors) > 0) {
                printf("  errors: %.0f", status_sum(errors));
                for (const struct json_value *each = errors->first; each != NULL; each = each->next)
                        if (each->name != NULL)
                                print_nonzero(errors, each->name, each->name);
                putchar('\n');
        }
        if (status_number(spool, "refusedRecords") != 0)
                printf("  refused by Kafka: %.0f\n", status_number(spool, "refusedRecords"));
        if (status_number(spool, "damagedSegments") != 0)
                printf("  damaged segments: %.0f, %.0f bytes unreadable\n",
                       status_number(spool, "damagedSegments"), status_number(spool, "lostBytes"));
        if (status_number(spool, "lostRecords") != 0)
                printf("  deliveries lost, which were answered 200: %.0f\n",
                       status_number(spool, "lostRecords"));
}

void
status_print_spool(const struct json_value *report)
{
        const struct json_value *spool = json_tree_get(report, "spool");

        if (spool == NULL)
                return;
        printf("spool: ");
        if (status_number(spool, "spoolingSinceSeconds") > 0) {
                printf("deliveries go to it for ");
                print_since(spool, "spoolingSinceSeconds");
                printf(", ");
        }
        if (status_number(spool, "segments") == 0)
                printf("empty");
        else
                print_bytes(status_number(spool, "bytes"));
        printf(" of ");
        print_bytes(status_number(spool, "limitBytes"));
        print_nonzero(spool, "records", "deliveries");
        print_nonzero(spool, "uncountedSegments", "segments to be counted");
        if (status_number(spool, "oldestSeconds") > 0) {
                printf(", the oldest for ");
                print_since(spool, "oldestSeconds");
        }
        putchar('\n');
        if (status_number(spool, "written") != 0 || status_number(spool, "drained") != 0)
                printf("  written %.0f, drained %.0f\n", status_number(spool, "written"),
                       status_number(spool, "drained"));
        print_spool_faults(spool);
}

void
status_print_state(const struct json_value *report)
{
        const struct json_value *state = json_tree_get(report, "state");

        if (state == NULL)
                return;
        printf("state: %.0f files, ", status_number(state, "files"));
        print_bytes(status_number(state, "bytes"));
        print_nonzero(state, "errors", "errors");
        putchar('\n');
}
