#include "cli/doctor_daemon.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/mem.h"
#include "cli/doctor_kafka.h"
#include "cli/kafka_access.h"
#include "cli/status.h"
#include "kafka/message.h"

/*
 * Whether deliveries were quarantined lately, by whichever router: the topic shows all, and a router counts
 * its own ones. An account may see the ends of the topic, which a router needs, and not read it.
 */

#define ADVICE \
        "consumers do not get them until they are released: @GATEPOST@ quarantine list, which also shows " \
        "which were; read the reason in gatepost-consumers(7), QUARANTINE, before that, since by some the " \
        "event may be there already, and would be published twice"

#define READ_MAX 500 /* offsets of a partition, so that a full quarantine takes no minutes */

/* The records of quarantine of the last DOCTOR_RECENT_S. */
struct lately {
        const struct config *config;
        int64_t n_offsets; /* records and ends of transactions */
        int is_cut;        /* some of them are not read */
        double n;          /* records that were read */
        int64_t newest_ms;
        char *newest; /* source and reason; NULL: none was read */
};

/* Whether the file has a topic for a kind that had none for the router, by the detail. */
static int
has_topic_for(const struct config *config, struct span detail)
{
        static const char start[] = "no topic for the kind ";
        size_t len = strlen(start);

        return detail.len > len && memcmp(detail.data, start, len) == 0 &&
               topic_table_find(config->topics, detail.data + len, detail.len - len) != NULL;
}

static void
note_newest(struct lately *lately, struct span source, struct span reason, struct span detail)
{
        free(lately->newest);
        lately->newest =
            mem_printf("of [source %.*s] as %.*s: %.*s%s", (int)source.len,
                       source.len == 0 ? "" : source.data, (int)reason.len,
                       reason.len == 0 ? "" : reason.data, (int)detail.len,
                       detail.len == 0 ? "" : detail.data,
                       has_topic_for(lately->config, detail)
                           ? " (this file has one: see that each router does, before they are released)"
                           : "");
}

static enum range_answer
on_quarantined(const rd_kafka_message_t *message, size_t index, struct error *error, void *arg)
{
        struct lately *lately = arg;
        int64_t time_ms = message_timestamp_ms(message);

        (void)index;
        (void)error;
        lately->n++;
        if (lately->newest == NULL || time_ms >= lately->newest_ms) {
                lately->newest_ms = time_ms;
                note_newest(lately, message_header(message, RECORD_SOURCE),
                            message_header(message, RECORD_REASON), message_header(message, RECORD_DETAIL));
        }
        return RANGE_GO_ON;
}

/* Move a range to its last records. Returns whether others are left out. */
static int
cut(struct range *range)
{
        if (range->to - range->from <= READ_MAX)
                return 0;
        range->from = range->to - READ_MAX;
        return 1;
}

/* Find what the topic got lately. Returns 0, or -1 when Kafka does not say it. */
static int
look(const struct doctor *doctor, struct offsets *offsets, struct lately *lately)
{
        const struct config *config = doctor->config;
        int64_t since_ms = clock_now_ms() - DOCTOR_RECENT_S * INT64_C(1000);
        struct range *ranges = NULL;
        struct error ignored;
        size_t n = 0;
        int result = offsets_stable_ranges(offsets, config->quarantine_topic, &ranges, &n,
                                           KAFKA_ACCESS_TIMEOUT_MS, &ignored);

        for (size_t i = 0; i < n && result == 0; i++) {
                result = offsets_begin_at(offsets, &ranges[i], since_ms, KAFKA_ACCESS_TIMEOUT_MS, &ignored);
                lately->n_offsets += ranges[i].to - ranges[i].from;
                lately->is_cut |= cut(&ranges[i]);
        }
        if (result == 0 && lately->n_offsets > 0 &&
            range_read(config, NULL, ranges, n, on_quarantined, lately, &ignored) == RANGE_DONE &&
            !lately->is_cut)
                lately->n_offsets = (int64_t)lately->n;
        free(ranges);
        return result;
}

static struct span
span_of(const char *text)
{
        return (struct span){text, text == NULL ? 0 : strlen(text)};
}

/* Learn the newest one of the router of this machine, from its report. */
static void
learn_from_router(const struct doctor *doctor, struct lately *lately)
{
        const struct json_value *all = json_tree_get(doctor->status, "recentlyQuarantined");
        const struct json_value *last = all == NULL ? NULL : all->first; /* the newest */
        const char *source = json_tree_text(last, "source"), *reason = json_tree_text(last, "reason"),
                   *detail = json_tree_text(last, "detail");

        if (last != NULL && doctor_is_recent(last))
                note_newest(lately, span_of(source), span_of(reason), span_of(detail));
}

/* Kafka does not say what the topic has. */
static void
report_own(struct doctor *doctor, const struct lately *lately, int is_asked)
{
        double n = status_sum(json_tree_get(doctor->status, "quarantined"));
        char period[DOCTOR_PERIOD_SIZE];

        if (lately->newest == NULL || n == 0)
                doctor_pass(doctor, "no delivery quarantined by this router %s%s",
                            doctor_period(doctor, period),
                            is_asked ? "; what others do is not known, as Kafka does not show the topic"
                                     : "");
        else
                doctor_warn(doctor,
                            "%.0f deliver%s quarantined by this router since its start, the last %s; " ADVICE,
                            n, n == 1 ? "y" : "ies", lately->newest);
}

void
doctor_quarantine_check(struct doctor *doctor)
{
        int is_asked = !doctor->config->embedded && doctor->reaches_kafka, is_known = 0;
        struct lately lately = {.config = doctor->config};
        struct offsets *offsets = NULL;
        struct error ignored;

        if (json_tree_get(doctor->status, "recentlyQuarantined") == NULL)
                return; /* not a router, or an older daemon */
        doctor_begin(doctor, "quarantine", "%s", "");
        if (is_asked)
                offsets = offsets_new(doctor->config, NULL, &ignored);
        if (offsets != NULL)
                is_known = look(doctor, offsets, &lately) == 0;
        offsets_free(offsets);
        if (lately.newest == NULL)
                learn_from_router(doctor, &lately);
        if (is_known && lately.n_offsets == 0 && lately.newest == NULL)
                doctor_pass(doctor, "no delivery quarantined within an hour");
        else if (!is_known || lately.n_offsets == 0) /* the topic may have lost what the router knows */
                report_own(doctor, &lately, is_asked);
        else
                doctor_warn(doctor,
                            "%s%" PRId64 " deliver%s quarantined within an hour, by any router%s%s; " ADVICE,
                            lately.n_offsets == (int64_t)lately.n ? "" : "up to ", lately.n_offsets,
                            lately.n_offsets == 1 ? "y" : "ies",
                            lately.newest == NULL ? ""
                            : lately.n > 0        ? ", the last "
                                                  : ", the last of this router ",
                            lately.newest == NULL ? "" : lately.newest);
        free(lately.newest);
}

/* What to do about a reason to quarantine a test delivery. */
static const struct {
        const char *reason;
        const char *remedy;
} remedies[] = {
    {"unverified",
     "the router has verify = on, and other secrets, header_prefix or tolerance than the receiver: "
     "give both the same, then reload the router; or, if the reason is the time, the clock of a machine is "
     "wrong"},
    {"missing-kind", "give the router the `kind` of this file, then reload it"},
    {"unknown-kind",
     "upgrade the router if it is older than version 0.2.0; else give it the `kind` of this file, then: "
     "reload it"},
    {"unknown-source",
     "the name is the receiver's: if all receivers call the source so, give it this name on the router, "
     "reload it, and release what is in quarantine; if receivers differ, correct the one that differs, since "
     "under two names a repeat is published twice; gatepost-consumers(7) says how to publish what it has "
     "sent"},
};

void
doctor_quarantine_report(struct doctor *doctor, const char *where, const char *reason)
{
        size_t r = 0;

        while (r < ARRAY_LEN(remedies) &&
               strncmp(reason, remedies[r].reason, strlen(remedies[r].reason)) != 0)
                r++;
        doctor_fail(doctor, EX_CONFIG,
                    "the router%s has quarantined it, and may do so with genuine deliveries: %s", where,
                    reason);
        doctor_remedy(
            doctor, "%s%s",
            *where == '\0' ? "" : "find the router of that partition, by gatepost status on each machine: ",
            r < ARRAY_LEN(remedies)
                ? remedies[r].remedy
                : "compare the sources of the router and of this file; gatepost-consumers(7) explains "
                  "the reason");
}
