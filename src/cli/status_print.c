#include "cli/status.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/text.h"

#define NAME_WIDTH 24

/* Return the first value of a member that is an object or array, or NULL. */
static const struct json_value *
first_of(const struct json_value *object, const char *name)
{
        const struct json_value *member = json_tree_get(object, name);

        return member == NULL ? NULL : member->first;
}

static const char *
text_of(const struct json_value *object, const char *name)
{
        const char *text = json_tree_text(object, name);

        return text == NULL ? "" : text;
}

static void
print_text(const char *text)
{
        text_print(stdout, text, strlen(text));
}

/* Print a name, which may be missing, at the beginning of an indented line. */
static void
print_name(const char *name)
{
        printf("  ");
        if (name != NULL)
                text_print_column(name, strlen(name), NAME_WIDTH);
}

/* Print the outcomes that are not 0, separated by commas. Return their number. */
static int
print_outcomes(const struct json_value *source)
{
        int n = 0;

        for (const struct json_value *each = source->first; each != NULL; each = each->next) {
                if (each->name == NULL || status_value(each) == 0)
                        continue;
                printf("%s", n++ > 0 ? ", " : "");
                print_text(each->name);
                printf(" %.0f", status_value(each));
        }
        return n;
}

/* Print the outcomes of each source's requests. */
static void
print_requests(const struct json_value *report)
{
        const struct json_value *source = first_of(report, "requests");

        if (source != NULL)
                printf("requests\n");
        for (; source != NULL; source = source->next) {
                print_name(source->name != NULL && *source->name == '\0' ? "(no source)" : source->name);
                printf("%s\n", print_outcomes(source) > 0 ? "" : "none");
        }
}

/* Print a title and a line for each count that is not 0. */
static void
print_counts(const struct json_value *report, const char *name)
{
        const struct json_value *object = json_tree_get(report, name);

        if (object == NULL)
                return;
        printf("%s%s\n", name, status_sum(object) > 0 ? "" : ": none");
        for (const struct json_value *each = object->first; each != NULL; each = each->next) {
                if (each->name == NULL || status_value(each) == 0)
                        continue;
                print_name(each->name);
                printf("%.0f\n", status_value(each));
        }
}

/* Print the partitions that are not routed. */
static void
print_partitions(const struct json_value *report)
{
        for (const struct json_value *each = first_of(report, "partitions"); each != NULL;
             each = each->next) {
                const char *state = text_of(each, "state"), *cause = text_of(each, "cause");

                if (strcmp(state, "routing") == 0)
                        continue;
                printf("  partition %.0f ", status_number(each, "partition"));
                print_text(state);
                printf("%s", *cause == '\0' ? "" : ", ");
                print_text(cause);
                printf(", lag %.0f\n", status_number(each, "lagRecords"));
        }
}

/* Print the time since a moment, which is since the epoch. */
static void
print_age(double since_s)
{
        number_print_span(stdout, (double)clock_now_ms() / 1000 - since_s);
}

static void
print_router(const struct json_value *report)
{
        const struct json_value *transactions = json_tree_get(report, "transactions");

        if (json_tree_get(report, "lagRecords") == NULL)
                return;
        print_counts(report, "events");
        printf("duplicates: %.0f\n", status_number(report, "duplicates"));
        print_counts(report, "quarantined");
        printf("transactions: %.0f committed, %.0f aborted\n", status_number(transactions, "committed"),
               status_number(transactions, "aborted"));
        printf("lag: %.0f records", status_number(report, "lagRecords"));
        if (status_number(report, "oldestRecordSeconds") > 0) {
                printf(", the oldest for ");
                print_age(status_number(report, "oldestRecordSeconds"));
        }
        putchar('\n');
        print_partitions(report);
        printf("remembered ids: %.0f\n", status_number(report, "rememberedIds"));
}

/* Print the median and 99th percentile of times since the start, if there are any. */
static void
print_times(const struct json_value *report, const char *title, const char *name)
{
        const struct json_value *times = json_tree_get(report, name);

        if (status_number(times, "count") == 0)
                return;
        printf("%s: half within ", title);
        number_print_time(stdout, status_number(times, "p50"));
        printf(", 99 %% within ");
        number_print_time(stdout, status_number(times, "p99"));
        putchar('\n');
}

static void
print_secrets(const struct json_value *report)
{
        const struct json_value *secret = first_of(report, "secrets");

        if (secret != NULL)
                printf("secrets, by their age\n");
        for (; secret != NULL; secret = secret->next) {
                print_name(text_of(secret, "source"));
                print_age(status_number(secret, "modifiedSeconds"));
                printf("  ");
                print_text(text_of(secret, "file"));
                putchar('\n');
        }
}

static void
print_certificate(const struct json_value *report)
{
        double left = status_number(report, "certificateExpirySeconds") - (double)clock_now_ms() / 1000;

        if (json_tree_get(report, "certificateExpirySeconds") == NULL)
                return;
        printf("certificate: %s", left < 0 ? "expired" : "expires in ");
        if (left >= 0)
                number_print_span(stdout, left);
        putchar('\n');
}

/* Print the number of brokers and which are down. */
static void
print_brokers(const struct json_value *report)
{
        const struct json_value *first = first_of(report, "brokers");
        int n = 0, n_up = 0;

        for (const struct json_value *each = first; each != NULL; each = each->next) {
                n++;
                n_up += status_flag(each, "up");
        }
        if (n == 0)
                return;
        printf("brokers: %d known, %d reachable\n", n, n_up);
        for (const struct json_value *each = first; each != NULL; each = each->next) {
                if (status_flag(each, "up"))
                        continue;
                print_name(text_of(each, "broker"));
                printf("down\n");
        }
}

static void
print_roles(const struct json_value *report)
{
        for (const struct json_value *each = first_of(report, "roles"); each != NULL; each = each->next) {
                printf("  ");
                print_text(each->name == NULL ? "" : each->name);
                printf(": ");
                print_text(each->type == JSON_STRING ? each->text : "");
                putchar('\n');
        }
}

void
status_print(const struct status *status, const struct status_rates *rates)
{
        const struct json_value *report = status->report;

        printf("%s, up ", status_flag(report, "ready") ? "ready" : "not ready");
        number_print_span(stdout, status_uptime(status));
        putchar('\n');
        print_roles(report);
        printf("kafka: %s\n", status_flag(report, "kafkaReachable") ? "reachable" : "away");
        print_brokers(report);
        printf("a second, over ");
        number_print_span(stdout, rates->seconds);
        printf("%s: accepted %.1f, refused %.1f, events %.1f, duplicates %.1f, quarantined %.1f\n",
               rates->since_start ? " since the start" : "", rates->accepted, rates->refused, rates->events,
               rates->duplicates, rates->quarantined);
        print_requests(report);
        print_times(report, "from request to answer", "ackSeconds");
        print_router(report);
        print_times(report, "from reception to event", "deliverySeconds");
        print_times(report, "commits", "commitSeconds");
        print_secrets(report);
        print_certificate(report);
}

static void
put_rate(struct json_writer *json, const char *name, double value)
{
        char text[64];

        (void)snprintf(text, sizeof(text), "%.3f", value);
        json_literal(json, name, text);
}

void
status_print_json(const struct status *status, const struct status_rates *rates, int in_one_line)
{
        struct json_writer *json = json_new(!in_one_line);

        json_open_object(json, NULL);
        for (const struct json_value *each = status->report->first; each != NULL; each = each->next)
                json_tree_write(json, each);
        json_open_object(json, "rates");
        put_rate(json, "seconds", rates->seconds);
        json_flag(json, "sinceStart", rates->since_start);
        put_rate(json, "accepted", rates->accepted);
        put_rate(json, "refused", rates->refused);
        put_rate(json, "events", rates->events);
        put_rate(json, "duplicates", rates->duplicates);
        put_rate(json, "quarantined", rates->quarantined);
        json_close_object(json);
        json_close_object(json);
        json_print(json);
}
