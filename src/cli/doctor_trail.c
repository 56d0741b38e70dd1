#include "cli/doctor_trail.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/doctor_daemon.h"
#include "cli/doctor_kafka.h"
#include "cli/kafka_access.h"
#include "cli/sign.h"
#include "cli/status.h"
#include "cli/terminal.h"
#include "kafka/message.h"

#define DECIDE_TIMEOUT_MS 30000
#define FIND_TIMEOUT_MS 5000
#define PAUSE_MS 50
#define UNKNOWN INT64_MIN

struct sent {
        char delivery_id[SIGN_ID_SIZE];
        char address[DIAL_TEXT_SIZE]; /* empty: the only one */
        int64_t sent_ms, answered_ms;
        int32_t partition; /* -1: not found in `deliveries` */
        int64_t offset;
        int64_t committed_first, committed; /* in its partition, by the first and the last look; -1: none */
};

struct doctor_trail {
        struct doctor *doctor;
        struct sent *items;
        size_t n;
        struct offsets *offsets;
        struct range *ranges; /* of `deliveries`: first what was there before, then what came since */
        size_t n_ranges;
        struct range *quarantine; /* likewise; NULL: this account may not read it */
        size_t n_quarantine;
        struct range *open; /* what open transactions hide of `deliveries`, when the records were not found */
        int n_open;
        struct doctor_positions positions; /* when the records were found */
        double n_spooled;      /* deliveries in the receiver's spool, when the records were not found */
        char *reason;          /* why the router has quarantined a test delivery; NULL: it has not */
        struct error error;    /* why it cannot be followed; empty: it can */
        enum range_result why; /* Kafka is the reason; RANGE_DONE: it is not */
        double n_tests_before; /* of the daemon, where the broker is inside */
        int64_t answered_ms;   /* the last one */
};

struct doctor_trail *
doctor_trail_begin(struct doctor *doctor)
{
        struct doctor_trail *trail = mem_alloc(sizeof(*trail));
        const struct config *config = doctor->config;
        struct error ignored;

        trail->doctor = doctor;
        trail->n_tests_before = status_number(doctor->status, "testDeliveries");
        if (!(config->roles & CONFIG_ROUTER)) {
                (void)error_set(&trail->error,
                                "no router is configured here; gatepost doctor --to URL on the router's "
                                "machine follows it to the end");
        } else if (config->embedded && doctor->status == NULL) {
                (void)error_set(&trail->error,
                                "[admin] listen %s, and the broker is inside gatepostd, which alone can be "
                                "asked",
                                config->admin == NULL ? "is off" : "has port 0");
        } else if (!config->embedded) {
                trail->offsets = offsets_new(config, NULL, &trail->error);
                if (trail->offsets != NULL &&
                    offsets_stable_ranges(trail->offsets, config->deliveries_topic, &trail->ranges,
                                          &trail->n_ranges, KAFKA_ACCESS_TIMEOUT_MS, &trail->error) != 0)
                        trail->why = doctor_kafka_why(trail->offsets);
                else if (trail->offsets != NULL &&
                         offsets_stable_ranges(trail->offsets, config->quarantine_topic, &trail->quarantine,
                                               &trail->n_quarantine, KAFKA_ACCESS_TIMEOUT_MS, &ignored) != 0)
                        trail->quarantine = NULL; /* report_decided() says so */
        }
        return trail;
}

void
doctor_trail_free(struct doctor_trail *trail)
{
        offsets_free(trail->offsets);
        free(trail->ranges);
        free(trail->quarantine);
        free(trail->open);
        doctor_positions_clear(&trail->positions);
        free(trail->reason);
        free(trail->items);
        free(trail);
}

void
doctor_trail_add(struct doctor_trail *trail, const char *delivery_id, const char *address, int64_t sent_ms,
                 int64_t answered_ms)
{
        struct sent *sent;

        trail->items = mem_resize(trail->items, trail->n + 1, sizeof(*trail->items));
        sent = &trail->items[trail->n++];
        *sent = (struct sent){.sent_ms = sent_ms,
                              .answered_ms = answered_ms,
                              .partition = -1,
                              .committed_first = UNKNOWN};
        (void)snprintf(sent->delivery_id, sizeof(sent->delivery_id), "%s", delivery_id);
        (void)snprintf(sent->address, sizeof(sent->address), "%s", address == NULL ? "" : address);
        trail->answered_ms = clock_monotonic_ms();
}

/* Return the test delivery of a record, or NULL. */
static struct sent *
find_sent(const struct doctor_trail *trail, const rd_kafka_message_t *message)
{
        for (size_t i = 0; i < trail->n; i++) {
                struct sent *sent = &trail->items[i];

                if (message->key_len == strlen(sent->delivery_id) &&
                    memcmp(message->key, sent->delivery_id, message->key_len) == 0)
                        return sent;
        }
        return NULL;
}

static enum range_answer
on_record(const rd_kafka_message_t *message, size_t index, struct error *error, void *arg)
{
        struct doctor_trail *trail = arg;
        struct sent *sent = find_sent(trail, message);

        (void)index;
        (void)error;
        if (sent != NULL) {
                sent->partition = message->partition;
                sent->offset = message->offset;
                doctor_clock_learn(trail->doctor, message, sent->sent_ms, sent->answered_ms);
        }
        return RANGE_GO_ON;
}

static enum range_answer
on_quarantined(const rd_kafka_message_t *message, size_t index, struct error *error, void *arg)
{
        struct doctor_trail *trail = arg;
        struct span reason = message_header(message, RECORD_REASON),
                    detail = message_header(message, RECORD_DETAIL);

        (void)index;
        (void)error;
        if (trail->reason == NULL && find_sent(trail, message) != NULL)
                trail->reason = mem_printf("%.*s, %.*s", (int)reason.len, reason.len == 0 ? "" : reason.data,
                                           (int)detail.len, detail.len == 0 ? "" : detail.data);
        return RANGE_GO_ON;
}

/* Read the records of a topic that were appended since these ranges. Returns 0, or -1 with the reason. */
static int
read_newest(struct doctor_trail *trail, const char *topic, range_record *on, struct range **ranges,
            size_t *n_ranges)
{
        struct range *now;
        size_t n;

        if (offsets_stable_ranges(trail->offsets, topic, &now, &n, KAFKA_ACCESS_TIMEOUT_MS, &trail->error) !=
            0) {
                trail->why = doctor_kafka_why(trail->offsets);
                return -1;
        }
        for (size_t i = 0; i < n; i++)
                now[i].from = i < *n_ranges ? (*ranges)[i].to : now[i].from;
        free(*ranges);
        *ranges = now;
        *n_ranges = n;
        trail->why = range_read(trail->doctor->config, NULL, now, n, on, trail, &trail->error);
        return trail->why == RANGE_DONE ? 0 : -1;
}

/* Return the first delivery whose record was not found, or NULL. */
static const struct sent *
first_missing(const struct doctor_trail *trail)
{
        size_t i = 0;

        while (i < trail->n && trail->items[i].partition >= 0)
                i++;
        return i == trail->n ? NULL : &trail->items[i];
}

/*
 * Find the records of the deliveries, which an open transaction of `quarantine release` may hide for a
 * time, and which the receiver may append from its spool later. Returns 1, or 0 if they are not there; -1
 * with the reason.
 */
static int
find_records(struct doctor_trail *trail)
{
        int64_t began_ms = clock_monotonic_ms(), until_ms = began_ms + FIND_TIMEOUT_MS;

        for (;;) {
                if (read_newest(trail, trail->doctor->config->deliveries_topic, on_record, &trail->ranges,
                                &trail->n_ranges) != 0)
                        return -1;
                if (first_missing(trail) == NULL)
                        return 1;
                if (terminal_is_interrupted())
                        return error_set(&trail->error, "interrupted");
                if (clock_monotonic_ms() >= until_ms) {
                        trail->n_spooled = doctor_spool_count(trail->doctor);
                        trail->n_open =
                            doctor_transactions_look(trail->offsets, trail->doctor->config->deliveries_topic,
                                                     trail->n_ranges, &trail->open, &trail->error);
                        if (trail->n_open < 0) {
                                trail->why = doctor_kafka_why(trail->offsets);
                                return -1;
                        }
                        if ((trail->n_spooled == 0 && trail->n_open == 0) ||
                            clock_monotonic_ms() - began_ms >= DECIDE_TIMEOUT_MS)
                                return 0;
                        until_ms = clock_monotonic_ms() + FIND_TIMEOUT_MS; /* also after the last one */
                }
                clock_sleep_ms(PAUSE_MS);
        }
}

/* Whether the group has committed beyond all deliveries. Returns 1 or 0; -1 with the reason. */
static int
are_decided(struct doctor_trail *trail)
{
        int result = 1;

        if (doctor_positions_look(&trail->positions, trail->offsets, trail->doctor->config->deliveries_topic,
                                  trail->n_ranges, &trail->error) != 0) {
                trail->why = doctor_kafka_why(trail->offsets);
                return -1;
        }
        for (size_t i = 0; i < trail->n; i++) {
                struct sent *sent = &trail->items[i];

                sent->committed = trail->positions.committed[sent->partition];
                if (sent->committed_first == UNKNOWN)
                        sent->committed_first = sent->committed;
                result &= sent->committed > sent->offset &&
                          doctor_positions_fit(&trail->positions, (size_t)sent->partition);
        }
        return result;
}

/* Return the first delivery in a partition in which no router can continue, or NULL. */
static const struct sent *
first_misfit(const struct doctor_trail *trail)
{
        size_t i = 0;

        if (trail->positions.n == 0)
                return NULL; /* of an embedded broker */
        while (i < trail->n && doctor_positions_fit(&trail->positions, (size_t)trail->items[i].partition))
                i++;
        return i == trail->n ? NULL : &trail->items[i];
}

/* Learn from the report of a router whether it has put a test delivery into quarantine. */
static void
look_for_quarantined(struct doctor_trail *trail, const struct json_value *status)
{
        const struct json_value *recent = json_tree_get(status, "recentlyQuarantined");

        for (const struct json_value *each = recent == NULL ? NULL : recent->first;
             each != NULL && trail->reason == NULL; each = each->next) {
                const char *id = json_tree_text(each, "deliveryId"), *reason = json_tree_text(each, "reason"),
                           *detail = json_tree_text(each, "detail");

                for (size_t i = 0; id != NULL && i < trail->n; i++) {
                        if (strcmp(id, trail->items[i].delivery_id) == 0 && trail->reason == NULL)
                                trail->reason = mem_printf("%s, %s", reason == NULL ? "" : reason,
                                                           detail == NULL ? "" : detail);
                }
        }
}

/* Where the broker is inside the daemon: whether the router has counted or quarantined all of them. */
static int
are_counted(struct doctor_trail *trail)
{
        struct json_value *status = doctor_daemon_status(trail->doctor);
        double counted = status_number(status, "testDeliveries") - trail->n_tests_before;

        look_for_quarantined(trail, status);
        json_tree_free(status);
        return counted >= (double)trail->n || trail->reason != NULL;
}

/* Report why it cannot be followed. */
static void
report_lost(struct doctor *doctor, const struct doctor_trail *trail)
{
        if (trail->why == RANGE_DONE)
                doctor_skip(doctor, "not verified: %s", trail->error.text);
        else
                doctor_kafka_report(doctor, trail->why, &trail->error);
}

/* Return how many deliveries are before an undecided one; 0 if the router decides none of them. */
static int64_t
count_before(const struct doctor_trail *trail)
{
        int64_t most = 0;

        for (size_t i = 0; i < trail->n; i++) {
                const struct sent *sent = &trail->items[i];
                int64_t n = sent->offset - (sent->committed < 0 ? 0 : sent->committed);

                if (sent->committed > sent->offset)
                        continue;
                if (sent->committed == sent->committed_first)
                        return 0;
                most = n > most ? n : most;
        }
        return most;
}

static void
report_undecided(struct doctor *doctor, const struct doctor_trail *trail, const char *topic)
{
        int64_t n_before = doctor->config->embedded ? 0 : count_before(trail);
        const struct sent *misfit = first_misfit(trail);

        if (misfit != NULL) {
                doctor_positions_report(doctor, &trail->positions, (size_t)misfit->partition);
                return;
        }
        if (n_before > 0) {
                doctor_warn(
                    doctor,
                    "not decided within %d s: a router is catching up, and about %" PRId64
                    " deliveries wait before it; run it again when the lag is over, by gatepost status",
                    DECIDE_TIMEOUT_MS / 1000, n_before);
                return;
        }
        doctor_fail(doctor, EX_UNAVAILABLE, "the router has not decided on it within %d s",
                    DECIDE_TIMEOUT_MS / 1000);
        doctor_remedy(doctor,
                      "see whether a router runs for %s, what it restores, and why it waits: gatepost status "
                      "on its machine",
                      topic);
}

/*
 * The router has decided: it should have recognised the deliveries. A router with another configuration may
 * not.
 */
static void
report_decided(struct doctor *doctor, struct doctor_trail *trail)
{
        const char *topic = doctor->config->quarantine_topic;
        int64_t took_ms = clock_monotonic_ms() - trail->answered_ms;

        int is_read =
            doctor->config->embedded ||
            (trail->quarantine != NULL &&
             read_newest(trail, topic, on_quarantined, &trail->quarantine, &trail->n_quarantine) == 0);

        if (!is_read) {
                struct json_value *status = doctor_daemon_status(doctor);

                look_for_quarantined(trail, status);
                json_tree_free(status);
        }
        if (trail->reason != NULL) {
                doctor_quarantine_report(doctor, trail->reason);
        } else if (!is_read && trail->why != RANGE_DONE && trail->why != RANGE_DENIED) {
                doctor_kafka_report(doctor, trail->why, &trail->error);
        } else if (!is_read) {
                doctor_warn(doctor,
                            "decided within %" PRId64
                            " ms of the answer; whether it was dropped is not verified, "
                            "as %s cannot be read",
                            took_ms, topic);
        } else {
                doctor_pass(doctor, "recognised and dropped within %" PRId64 " ms of the answer", took_ms);
        }
}

static void
wait_for_router(struct doctor *doctor, struct doctor_trail *trail)
{
        int64_t until_ms = clock_monotonic_ms() + DECIDE_TIMEOUT_MS;
        int result;

        do {
                result = doctor->config->embedded ? are_counted(trail) : are_decided(trail);
                if (result == 0)
                        clock_sleep_ms(PAUSE_MS);
        } while (result == 0 && clock_monotonic_ms() < until_ms && !terminal_is_interrupted());
        if (result == 0 && terminal_is_interrupted())
                doctor_skip(doctor, "interrupted");
        else if (result < 0)
                report_lost(doctor, trail);
        else if (result == 0)
                report_undecided(doctor, trail, doctor->config->deliveries_topic);
        else
                report_decided(doctor, trail);
}

/* An accepted delivery is in Kafka, or in the spool of the receiver, which may be on another machine. */
static void
report_not_found(struct doctor *doctor, const struct doctor_trail *trail)
{
        const char *address = first_missing(trail)->address;

        if (trail->n_spooled > 0) {
                doctor_spool_report(doctor, trail->n_spooled, DECIDE_TIMEOUT_MS / 1000);
                return;
        }
        if (trail->n_open > 0) {
                doctor_transactions_report(doctor, trail->open, trail->n_ranges);
                return;
        }
        doctor_fail(
            doctor, EX_CONFIG,
            "the test delivery%s%s was accepted, but not found: it is not in %s of these brokers; does the "
            "receiver write to other brokers, or with another prefix, or does it wait in its spool?",
            *address == '\0' ? "" : " to ", address, doctor->config->deliveries_topic);
        doctor_remedy(doctor,
                      "compare [kafka] and [topics] of the receiver and this file; restart gatepostd "
                      "after a change; and see its spool by gatepost status on the receiver's machine");
}

void
doctor_trail_follow(struct doctor *doctor, struct doctor_trail *trail)
{
        int is_found;

        if (trail->n == 0)
                return;
        doctor_begin(doctor, "router", "%s", doctor->config->deliveries_topic);
        if (trail->error.text[0] != '\0')
                is_found = -1;
        else
                is_found = doctor->config->embedded ? 1 : find_records(trail);
        if (is_found < 0)
                report_lost(doctor, trail);
        else if (!is_found)
                report_not_found(doctor, trail);
        else
                wait_for_router(doctor, trail);
}
