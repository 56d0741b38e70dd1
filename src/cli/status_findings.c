#include "cli/status_findings.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/compiler.h"
#include "base/number.h"

/*
 * Each finding names the paragraph of the manual; it does not contain it. What is a single member of /status
 * is a row of a table. Refusals, quarantined records and partitions are lists, each with a function.
 */

#define HOUR_S 3600
#define DAY_S 86400
#define RUNBOOK(name) "gatepostd(8), RUNBOOK, " name

/* What makes a member of /status a finding. */
enum test {
        TEST_COUNT, /* a number greater than 0, which the text ends with */
        TEST_SINCE, /* a time that is set */
        TEST_FALSE,
        TEST_LOSS, /* a `count`, which the text ends with, and a `timeSeconds` of the last day */
};

static const struct row {
        const char *member;
        enum test test;
        enum finding_level level;
        const char *subject;
        const char *text;
        const char *remedy;
} rows[] = {
    {"spool.lostRecords", TEST_COUNT, FINDING_ERROR, "spool",
     "deliveries that were answered 200 cannot be read back", RUNBOOK("GatepostSpoolDamaged")},
    {"spool.damagedSegments", TEST_COUNT, FINDING_WARNING, "spool", "damaged segments",
     RUNBOOK("GatepostSpoolDamaged")},
    {"spool.refusedRecords", TEST_COUNT, FINDING_WARNING, "spool", "deliveries that Kafka refuses for good",
     RUNBOOK("GatepostSpoolRefused")},
    {"spool.inPlace", TEST_FALSE, FINDING_ERROR, "spool",
     "its directory was renamed, deleted or replaced; without it, outages of Kafka are answered 503",
     "put the directory back; if it holds no delivery, restart gatepostd instead"},
    {"spool.spoolingSinceSeconds", TEST_SINCE, FINDING_WARNING, "spool",
     "deliveries go to the disk, because Kafka does not take them", RUNBOOK("GatepostSpooling")},
    {"spool.records", TEST_COUNT, FINDING_NOTE, "spool", "deliveries that wait for Kafka", NULL},
    {"state.errors", TEST_COUNT, FINDING_WARNING, "state", "dedup tables that could not be written",
     RUNBOOK("GatepostStateErrors")},
    {"misconfiguredTopics", TEST_COUNT, FINDING_WARNING, "topics", "topics without the required settings",
     "gatepost topics list"},
    {"deletedBeforeRouting", TEST_LOSS, FINDING_ERROR, "losses",
     "deliveries that retention deleted before they were routed", RUNBOOK("GatepostDeliveriesDeleted")},
    {"logTruncations", TEST_LOSS, FINDING_ERROR, "losses",
     "times that Kafka lost deliveries that it had acknowledged", RUNBOOK("GatepostLogTruncated")},
    {"partitionsAdded", TEST_LOSS, FINDING_WARNING, "losses",
     "partitions were added, so a repeat may be published again", RUNBOOK("GatepostPartitionsAdded")},
};

/* How much an outcome of a refused request tells of genuine deliveries. */
enum blame {
        BLAME_MISMATCH, /* sender and receiver differ: an error while nothing else is accepted */
        BLAME_RECEIVER, /* the receiver or what is before it: a warning */
};

static const struct cause {
        const char *outcome;
        enum blame blame;
        const char *remedy;
} causes[] = {
    {"forged", BLAME_MISMATCH,
     "compare the secret_file with the secret that the service has; gatepostd(8), Changing a secret"},
    {"malformed", BLAME_MISMATCH, "set header_prefix to that of the service, and reload"},
    {"not_found", BLAME_MISMATCH, "give the service a URL that ends with the path of the source"},
    {"forbidden", BLAME_MISMATCH, "add the webhook-id to webhook_id of the source, and reload"},
    {"stale_genuine", BLAME_MISMATCH,
     "compare the clocks of both machines; " RUNBOOK("GatepostStaleGenuine")},
    {"stale", BLAME_MISMATCH, "compare the clocks of both machines; " RUNBOOK("GatepostStaleGenuine")},
    {"stale_unchecked", BLAME_MISMATCH,
     "compare the clocks of both machines; " RUNBOOK("GatepostStaleGenuine")},
    {"unavailable", BLAME_RECEIVER, RUNBOOK("GatepostUnavailableAnswers")},
    {"error", BLAME_RECEIVER, RUNBOOK("GatepostUnavailableAnswers")},
    {"too_large", BLAME_RECEIVER, "raise max_body, and reload"},
    {"no_proxy", BLAME_RECEIVER, "set trusted_proxy to the address of the load balancer, and reload"},
    {"proxy_header", BLAME_RECEIVER, "let the load balancer send version 2 of the PROXY protocol"},
    {"per_address", BLAME_RECEIVER, "set trusted_proxy to the address of the load balancer, and reload"},
    {"throttled", BLAME_RECEIVER, "set trusted_proxy to the address of the load balancer, and reload"},
};

static const char *
text_at(const struct json_value *value, const char *name)
{
        const char *text = json_tree_text(value, name);

        return text == NULL ? "" : text;
}

static const struct json_value *
first_of(const struct json_value *status, const char *name)
{
        const struct json_value *list = json_tree_get(status, name);

        return list == NULL ? NULL : list->first;
}

/* Return when the daemon wrote the status, in seconds since the epoch by its clock. */
static double
time_of(const struct json_value *status)
{
        return json_tree_number(status, "startTimeSeconds") + json_tree_number(status, "uptimeSeconds");
}

/* Return how many seconds before the status an event was. */
static double
age_of(const struct json_value *status, const struct json_value *event)
{
        return time_of(status) - json_tree_number(event, "timeSeconds");
}

static int
is_of_last_hour(const struct json_value *status, const struct json_value *event)
{
        return age_of(status, event) <= HOUR_S;
}

/* Return the number that makes a row a finding; 0: it is none. */
static double
row_number(const struct json_value *status, const struct row *row)
{
        const struct json_value *member = json_tree_at(status, row->member);

        switch (row->test) {
        case TEST_COUNT:
        case TEST_SINCE:
                return json_tree_value(member);
        case TEST_FALSE:
                return json_tree_is_false(status, row->member);
        case TEST_LOSS:
                return age_of(status, member) <= DAY_S ? json_tree_number(member, "count") : 0;
        }
        return 0;
}

static void
add_row(const struct json_value *status, const struct row *row, struct findings *findings)
{
        int has_number = row->test == TEST_COUNT || row->test == TEST_LOSS;
        double number = row_number(status, row);
        struct finding *finding;

        if (number <= 0)
                return;
        if (has_number)
                finding = findings_add(findings, row->level, row->subject, "%s: %.0f", row->text, number);
        else
                finding = findings_add(findings, row->level, row->subject, "%s", row->text);
        if (row->level == FINDING_ERROR)
                finding->status = EX_UNAVAILABLE;
        if (row->remedy != NULL)
                finding_set_remedy(finding, "%s", row->remedy);
}

/* Add why the spool did not store deliveries, unless it has stored some since. */
static void
add_spool_failure(const struct json_value *status, struct findings *findings)
{
        static const struct {
                const char *error;
                const char *text, *remedy;
        } failures[] = {
            {"disk", "the disk is full", "make room on the disk of the spool's directory"},
            {"full", "the spool has reached spool_max", "raise spool_max if the disk has room"},
            {"write", "a segment could not be written", RUNBOOK("GatepostSpoolErrors")},
            {"sync", "the disk did not confirm what was written", RUNBOOK("GatepostSpoolErrors")},
        };
        const struct json_value *last = json_tree_at(status, "spool.lastError");
        const char *error = text_at(last, "error");

        for (size_t i = 0; i < ARRAY_LEN(failures) && is_of_last_hour(status, last); i++) {
                struct finding *finding;

                if (strcmp(failures[i].error, error) != 0)
                        continue;
                finding = findings_add(findings, FINDING_ERROR, "spool",
                                       "%s, so deliveries that come while Kafka is away are answered 503",
                                       failures[i].text);
                finding->status = EX_UNAVAILABLE;
                finding_set_remedy(finding, "%s", failures[i].remedy);
        }
}

typedef int relation(const struct json_value *, const struct json_value *);

/* Return whether a value of the list before this one is related to it. */
static int
has_earlier(const struct json_value *list, const struct json_value *value, relation *is_related)
{
        for (const struct json_value *each = list; each != value; each = each->next) {
                if (is_related(each, value))
                        return 1;
        }
        return 0;
}

/* Return what explains a refusal, or NULL: it tells nothing of genuine deliveries. */
static const struct cause *
cause_of(const struct json_value *refusal)
{
        const char *outcome = text_at(refusal, "outcome");

        if (strcmp(outcome, "not_found") == 0 && *text_at(refusal, "source") == '\0')
                return NULL; /* the path resembles that of no source */
        for (size_t i = 0; i < ARRAY_LEN(causes); i++) {
                if (strcmp(causes[i].outcome, outcome) == 0)
                        return &causes[i];
        }
        return NULL;
}

/* Return whether two refusals have the source and the outcome in common. */
static int
is_alike(const struct json_value *one, const struct json_value *other)
{
        return strcmp(text_at(one, "source"), text_at(other, "source")) == 0 &&
               strcmp(text_at(one, "outcome"), text_at(other, "outcome")) == 0;
}

/* Return how many refusals of the last hour are like the first of the list. */
static double
count_alike(const struct json_value *status, const struct json_value *list)
{
        double n = 0;

        for (const struct json_value *each = list; each != NULL; each = each->next) {
                if (is_alike(each, list) && is_of_last_hour(status, each))
                        n += json_tree_number(each, "count");
        }
        return n;
}

/* Return whether a delivery of the same source was accepted since. */
static int
was_mended(const struct json_value *status, const struct json_value *refusal)
{
        const struct json_value *accepted =
            json_tree_get(json_tree_get(status, "lastAcceptedSeconds"), text_at(refusal, "source"));

        return json_tree_value(accepted) >= json_tree_number(refusal, "timeSeconds");
}

static void
add_refusal(const struct json_value *status, const struct json_value *refusal, const struct cause *cause,
            struct findings *findings)
{
        int is_failure = cause->blame == BLAME_MISMATCH && !was_mended(status, refusal);
        const char *source = text_at(refusal, "source");
        char subject[96] = "requests", age[NUMBER_TEXT_SIZE];
        struct finding *finding;

        if (*source != '\0')
                (void)snprintf(subject, sizeof(subject), "[source %.64s]", source);
        finding = findings_add(findings, is_failure ? FINDING_ERROR : FINDING_WARNING, subject,
                               "%.0f refused as %s, the last %s ago: %.150s", count_alike(status, refusal),
                               cause->outcome, number_format_span(age_of(status, refusal), age),
                               text_at(refusal, "detail"));
        finding_set_remedy(finding, "%s", cause->remedy);
}

/* Add one finding for each source and outcome, and one for all refusals that strangers cause as well. */
static void
add_refusals(const struct json_value *status, struct findings *findings)
{
        const struct json_value *list = first_of(status, "refusals");
        double n_others = 0;

        for (const struct json_value *each = list; each != NULL; each = each->next) {
                const struct cause *cause = cause_of(each);

                if (!is_of_last_hour(status, each))
                        continue;
                if (cause == NULL)
                        n_others += json_tree_number(each, "count");
                else if (!has_earlier(list, each, is_alike))
                        add_refusal(status, each, cause, findings);
        }
        if (n_others > 0)
                (void)findings_add(findings, FINDING_NOTE, "requests",
                                   "%.0f others refused, which probably were no deliveries", n_others);
}

static void
add_quarantined(const struct json_value *status, struct findings *findings)
{
        const struct json_value *newest = first_of(status, "recentlyQuarantined");
        char age[NUMBER_TEXT_SIZE];
        size_t n = 0;

        for (const struct json_value *each = newest; each != NULL; each = each->next)
                n += is_of_last_hour(status, each) != 0;
        if (n == 0)
                return;
        finding_set_remedy(findings_add(findings, FINDING_WARNING, "quarantine",
                                        "%zu quarantined within the hour, the last %s ago as %s: %.150s", n,
                                        number_format_span(age_of(status, newest), age),
                                        text_at(newest, "reason"), text_at(newest, "detail")),
                           "gatepost quarantine list; gatepost-consumers(7), QUARANTINE");
}

static int
is_routed(const struct json_value *partition)
{
        const char *state = text_at(partition, "state");

        return strcmp(state, "routing") == 0 || strcmp(state, "standby") == 0;
}

static const char *
reason_of(const struct json_value *partition)
{
        const char *reason = text_at(partition, "reason");

        return *reason == '\0' ? text_at(partition, "cause") : reason;
}

/* Return whether two partitions are not routed for the same reason. */
static int
is_same_trouble(const struct json_value *one, const struct json_value *other)
{
        return !is_routed(one) && !is_routed(other) &&
               strcmp(text_at(one, "state"), text_at(other, "state")) == 0 &&
               strcmp(reason_of(one), reason_of(other)) == 0;
}

/* Write the numbers of the partitions that share the trouble of the first of a list. */
static void
list_alike(const struct json_value *list, char *text, size_t size)
{
        size_t len = (size_t)snprintf(text, size, "partition");

        for (const struct json_value *each = list; each != NULL && len < size; each = each->next) {
                if (is_same_trouble(each, list))
                        len += (size_t)snprintf(text + len, size - len, "%s%.0f", each == list ? " " : ", ",
                                                json_tree_number(each, "partition"));
        }
}

static void
add_partition(const struct json_value *partition, struct findings *findings)
{
        const char *state = text_at(partition, "state"), *reason = reason_of(partition);
        int is_stopped = strcmp(state, "refused") == 0, is_restoring = strcmp(state, "restoring") == 0;
        char subject[96];
        struct finding *finding;

        list_alike(partition, subject, sizeof(subject));
        finding = findings_add(findings,
                               is_stopped     ? FINDING_ERROR
                               : is_restoring ? FINDING_NOTE
                                              : FINDING_WARNING,
                               subject, "%s%s%.180s", state, *reason == '\0' ? "" : ": ", reason);
        if (is_stopped)
                finding->status = EX_UNAVAILABLE;
        if (!is_restoring)
                finding_set_remedy(finding, "%s",
                                   strcmp(text_at(partition, "cause"), "output-topic") == 0
                                       ? "gatepost topics list; gatepost topics create, if one is missing"
                                       : RUNBOOK("GatepostPartitionNotRouted"));
}

/* Add one finding for all partitions that are not routed for the same reason. */
static void
add_partitions(const struct json_value *status, struct findings *findings)
{
        const struct json_value *list = first_of(status, "partitions");

        for (const struct json_value *each = list; each != NULL; each = each->next) {
                if (!is_routed(each) && !has_earlier(list, each, is_same_trouble))
                        add_partition(each, findings);
        }
}

void
status_findings(const struct json_value *status, struct findings *findings)
{
        add_spool_failure(status, findings);
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                add_row(status, &rows[i], findings);
        add_refusals(status, findings);
        add_quarantined(status, findings);
        add_partitions(status, findings);
}
