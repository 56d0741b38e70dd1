#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/status.h"

/*
 * The lines of `gatepost status` on what waits for the router. A router knows the lag of the partitions that
 * it has, and only from their position on: 0 in the report may mean that it has looked nowhere yet.
 */

static const struct json_value *
first_partition(const struct json_value *report)
{
        const struct json_value *partitions = json_tree_get(report, "partitions");

        return partitions == NULL ? NULL : partitions->first;
}

static int
has_state(const struct json_value *partition, const char *state)
{
        const char *text = json_tree_text(partition, "state");

        return text != NULL && strcmp(text, state) == 0;
}

/* Whether the lag of a partition of this router is not known yet. That of an unassigned one is. */
static int
lacks_position(const struct json_value *partition)
{
        const struct json_value *offset = json_tree_get(partition, "committedOffset");

        return offset != NULL && offset->type == JSON_NULL && !has_state(partition, "unassigned");
}

static void
print_text(const char *text)
{
        text_print(stdout, text, strlen(text));
}

/* Print the partitions that are not routed. */
static void
print_partitions(const struct json_value *report)
{
        for (const struct json_value *each = first_partition(report); each != NULL; each = each->next) {
                const char *state = json_tree_text(each, "state"), *cause = json_tree_text(each, "cause");
                int has_cause = cause != NULL && *cause != '\0';

                if (has_state(each, "routing") ||
                    (has_state(each, "standby") && !has_cause && status_number(each, "restoreRecords") == 0))
                        continue;
                printf("  partition %.0f ", status_number(each, "partition"));
                print_text(state == NULL ? "" : state);
                printf("%s", has_cause ? ", " : "");
                print_text(has_cause ? cause : "");
                if (!has_state(each, "standby") && lacks_position(each))
                        printf(", lag not known");
                else
                        printf(", lag %.0f", status_number(each, "lagRecords"));
                if (status_number(each, "restoreRecords") > 0)
                        printf(", %.0f to read", status_number(each, "restoreRecords"));
                putchar('\n');
        }
}

/* Print the records that wait in the partitions whose position is known. */
static void
print_waiting(const struct json_value *report, size_t n_partitions)
{
        double oldest_s = status_number(report, "oldestRecordSeconds");

        printf("%.0f records", status_number(report, "lagRecords"));
        if (json_tree_get(report, "partitions") != NULL)
                printf(" in %zu partition%s", n_partitions, n_partitions == 1 ? "" : "s");
        if (oldest_s > 0) {
                printf(", the oldest for ");
                number_print_span(stdout, (double)clock_now_ms() / 1000 - oldest_s);
        }
}

void
status_print_lag(const struct json_value *report)
{
        size_t n = 0, n_unknown = 0;

        for (const struct json_value *each = first_partition(report); each != NULL; each = each->next) {
                if (has_state(each, "standby"))
                        continue;
                n++;
                n_unknown += lacks_position(each) != 0;
        }
        printf("lag: ");
        if (json_tree_get(report, "partitions") != NULL && n == 0) {
                printf("not known, because this router has no partitions");
        } else if (n_unknown > 0) {
                printf("not known in %zu of %zu partitions, whose position is not known yet", n_unknown, n);
                if (n_unknown < n)
                        printf("; in the others, ");
        }
        if (n > n_unknown || json_tree_get(report, "partitions") == NULL)
                print_waiting(report, n - n_unknown);
        putchar('\n');
        print_partitions(report);
}
