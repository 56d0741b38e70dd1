#include "cli/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/text.h"

#define NAME_WIDTH 24
#define SHOWN_EVENTS 5 /* refusals and quarantined records, of those that the report has */

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

static void
print_indented(const char *text)
{
        printf("    ");
        print_text(text);
        putchar('\n');
}

/* Print a name, which may be missing, at the beginning of an indented line. */
static void
print_name(const char *name)
{
        printf("  ");
        if (name != NULL)
                text_print_column(name, strlen(name), NAME_WIDTH);
}

/* Print the outcomes that are not 0, separated by commas, after the source's name. */
static void
print_outcomes(const struct json_value *source)
{
        char *text;
        size_t len;
        FILE *out = open_memstream(&text, &len);
        int n = 0;

        if (out == NULL)
                return;
        for (const struct json_value *each = source->first; each != NULL; each = each->next) {
                if (each->name != NULL && status_value(each) != 0)
                        fprintf(out, "%s%s %.0f", n++ > 0 ? ", " : "", each->name, status_value(each));
        }
        if (fclose(out) != 0)
                return;
        print_text(n > 0 ? text : "none");
        putchar('\n');
        free(text);
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
                print_outcomes(source);
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

/* Print the time since a moment, which is since the epoch. */
static void
print_age(double since_s)
{
        number_print_span(stdout, (double)clock_now_ms() / 1000 - since_s);
}

/* Print how long ago it was, by this machine's clock. */
static void
print_ago(const struct json_value *object, const char *name)
{
        number_print_span(stdout, (double)clock_now_ms() / 1000 - status_number(object, name));
}

/*
 * Print the records that were put into quarantine last, each with the detail of its reason. The report has
 * their places in `deliveries`, which would be taken for the IDs that `quarantine release` takes.
 */
static void
print_last_quarantined(const struct json_value *report)
{
        const struct json_value *each = first_of(report, "recentlyQuarantined");

        if (each != NULL)
                printf("last quarantined\n");
        for (int i = 0; each != NULL && i < SHOWN_EVENTS; each = each->next, i++) {
                const char *source = text_of(each, "source");
                char *text;

                print_name(*source == '\0' ? "(no source)" : source);
                print_text(text_of(each, "reason"));
                putchar(' ');
                print_ago(each, "timeSeconds");
                printf(" ago\n");
                text = mem_printf("delivery-id %s: %s", text_of(each, "deliveryId"), text_of(each, "detail"));
                print_indented(text);
                free(text);
        }
}

/* Print how often something was lost, if it was. */
static void
print_loss(const struct json_value *report, const char *name, const char *title)
{
        const struct json_value *loss = json_tree_get(report, name);

        if (status_number(loss, "count") == 0)
                return;
        printf("%s: %.0f, last ", title, status_number(loss, "count"));
        print_ago(loss, "timeSeconds");
        printf(" ago\n");
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
        print_last_quarantined(report);
        print_loss(report, "deletedBeforeRouting", "deleted before routing");
        print_loss(report, "logTruncations", "logs cut off by Kafka");
        print_loss(report, "partitionsAdded", "partitions added");
        printf("transactions: %.0f committed, %.0f aborted\n", status_number(transactions, "committed"),
               status_number(transactions, "aborted"));
        status_print_lag(report);
        printf("remembered ids: %.0f\n", status_number(report, "rememberedIds"));
        status_print_state(report);
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

/* Print each role's reason not to be ready, without the cause that print_kafka() prints. */
static void
print_roles(const struct json_value *report)
{
        const char *problem = text_of(report, "kafkaProblem");

        for (const struct json_value *each = first_of(report, "roles"); each != NULL; each = each->next) {
                const char *name = each->name == NULL ? "" : each->name;
                const char *reason = each->type == JSON_STRING ? each->text : "";
                const char *cause = *problem == '\0' ? NULL : strstr(reason, problem);
                char *shown = cause == NULL || cause < reason + 2
                                  ? mem_strdup(reason)
                                  : mem_strndup(reason, (size_t)(cause - reason) - strlen(": "));

                printf("  ");
                print_text(name);
                printf(": ");
                print_text(shown);
                putchar('\n');
                free(shown);
        }
}

static void
print_kafka(const struct json_value *report)
{
        const char *problem = text_of(report, "kafkaProblem");

        printf("kafka: %s", status_flag(report, "kafkaReachable") ? "reachable" : "away");
        if (*problem != '\0') {
                printf(", for ");
                print_ago(report, "kafkaUnreachableSinceSeconds");
        }
        putchar('\n');
        if (*problem != '\0')
                print_indented(problem);
        if (status_number(report, "misconfiguredTopics") > 0)
                print_indented("topics do not have the required settings; see gatepost topics list");
}

static void
print_refused_reload(const struct json_value *report)
{
        const struct json_value *refused =
            json_tree_get(json_tree_get(report, "configuration"), "refusedReload");

        if (*text_of(refused, "reason") == '\0')
                return;
        printf("the last reload was refused, ");
        print_ago(refused, "timeSeconds");
        printf(" ago\n");
        print_indented(text_of(refused, "reason"));
}

static void
print_awaiting_restart(const struct json_value *report)
{
        const struct json_value *each = first_of(json_tree_get(report, "configuration"), "awaitingRestart");

        if (each != NULL)
                printf("changed options that only a restart applies\n");
        for (; each != NULL; each = each->next) {
                if (each->text != NULL)
                        print_indented(each->text);
        }
}

/* Print the last refusals, each with its cause. */
static void
print_refusals(const struct json_value *report)
{
        const struct json_value *each = first_of(report, "refusals");

        if (each != NULL)
                printf("last refusals\n");
        for (int i = 0; each != NULL && i < SHOWN_EVENTS; each = each->next, i++) {
                const char *source = text_of(each, "source");

                print_name(*source == '\0' ? "(no source)" : source);
                print_text(text_of(each, "outcome"));
                if (status_number(each, "count") > 1)
                        printf(" %.0f times, last", status_number(each, "count"));
                putchar(' ');
                print_ago(each, "timeSeconds");
                printf(" ago, ");
                print_text(text_of(each, "client"));
                putchar('\n');
                print_indented(text_of(each, "detail"));
        }
}

/* Print the rates that are not 0. */
static void
print_rates(const struct status_rates *rates)
{
        const struct {
                const char *name;
                double value;
        } each[] = {{"accepted", rates->accepted},
                    {"refused", rates->refused},
                    {"events", rates->events},
                    {"duplicates", rates->duplicates},
                    {"quarantined", rates->quarantined}};
        int n = 0;

        printf("a second, over ");
        number_print_span(stdout, rates->seconds);
        printf("%s:", rates->since_start ? " since the start" : "");
        for (size_t i = 0; i < ARRAY_LEN(each); i++) {
                if (each[i].value >= 0.05)
                        printf("%s %s %.1f", n++ > 0 ? "," : "", each[i].name, each[i].value);
        }
        printf("%s\n", n == 0 ? " nothing" : "");
}

void
status_print(const struct status *status, const struct status_rates *rates)
{
        const struct json_value *report = status->report;

        printf("%s, up ", status_flag(report, "ready") ? "ready" : "not ready");
        number_print_span(stdout, status_uptime(status));
        putchar('\n');
        print_roles(report);
        print_kafka(report);
        print_refused_reload(report);
        print_awaiting_restart(report);
        print_brokers(report);
        print_rates(rates);
        print_requests(report);
        print_refusals(report);
        print_times(report, "from request to answer", "ackSeconds");
        status_print_spool(report);
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
