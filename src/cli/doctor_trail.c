#include "cli/doctor_trail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cli/doctor_daemon.h"
#include "cli/doctor_trail_work.h"
#include "cli/kafka_access.h"
#include "cli/status.h"
#include "cli/terminal.h"
#include "kafka/message.h"

#define PAUSE_MS 50
#define FIND_TIMEOUT_MS 5000

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
        for (size_t i = 0; i < trail->n; i++)
                free(trail->items[i].reason);
        free(trail->items);
        free(trail);
}

/* Whether a delivery signed by this key comes to a partition. */
static int
is_reached(const struct doctor_trail *trail, const struct signature_key *key, int32_t partition)
{
        for (size_t i = 0; i < trail->n; i++) {
                if (trail->items[i].key == key && trail->items[i].aim == partition)
                        return 1;
        }
        return 0;
}

/* Return the partition of a delivery-id; -1: it does not matter, or is not known. */
static int32_t
aim_of(const struct doctor_trail *trail, const char *id)
{
        return trail->ranges == NULL
                   ? -1
                   : message_partition((struct span){id, strlen(id)}, (int32_t)trail->n_ranges);
}

int
doctor_trail_choose(const struct doctor_trail *trail, const struct signature_key *key,
                    char id[BYTES_UUID_SIZE])
{
        size_t n = 0;

        for (size_t p = 0; p < trail->n_ranges; p++)
                n += (size_t)is_reached(trail, key, (int32_t)p);
        if (n == trail->n_ranges || n >= DOCTOR_TRAIL_MAX)
                return 0;
        do
                (void)bytes_random_uuid(id);
        while (is_reached(trail, key, aim_of(trail, id)));
        return 1;
}

void
doctor_trail_add(struct doctor_trail *trail, const struct signature_key *key, const char *delivery_id,
                 const char *address, int64_t sent_ms, int64_t answered_ms)
{
        struct trail_sent *sent;

        trail->items = mem_resize(trail->items, trail->n + 1, sizeof(*trail->items));
        sent = &trail->items[trail->n++];
        *sent = (struct trail_sent){.key = key,
                                    .aim = aim_of(trail, delivery_id),
                                    .sent_ms = sent_ms,
                                    .answered_ms = answered_ms,
                                    .partition = -1,
                                    .committed_first = TRAIL_UNKNOWN};
        (void)snprintf(sent->delivery_id, sizeof(sent->delivery_id), "%s", delivery_id);
        (void)snprintf(sent->address, sizeof(sent->address), "%s", address == NULL ? "" : address);
        trail->answered_ms = clock_monotonic_ms();
}

/* Return the test delivery of a record, or NULL. */
static struct trail_sent *
find_sent(const struct doctor_trail *trail, const rd_kafka_message_t *message)
{
        for (size_t i = 0; i < trail->n; i++) {
                struct trail_sent *sent = &trail->items[i];

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
        struct trail_sent *sent = find_sent(trail, message);

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
        struct trail_sent *sent = find_sent(trail, message);
        struct span reason = message_header(message, RECORD_REASON),
                    detail = message_header(message, RECORD_DETAIL);

        (void)index;
        (void)error;
        if (sent != NULL && sent->reason == NULL)
                sent->reason = mem_printf("%.*s, %.*s", (int)reason.len, reason.len == 0 ? "" : reason.data,
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
                if (doctor_trail_missing(trail) == NULL)
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
                            clock_monotonic_ms() - began_ms >= TRAIL_DECIDE_TIMEOUT_MS)
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
                struct trail_sent *sent = &trail->items[i];

                sent->committed = trail->positions.committed[sent->partition];
                if (sent->committed_first == TRAIL_UNKNOWN)
                        sent->committed_first = sent->committed;
                result &= doctor_trail_is_decided(trail, sent);
        }
        return result;
}

/* Learn from the report of a router which test deliveries it has put into quarantine. */
static void
look_for_quarantined(struct doctor_trail *trail, const struct json_value *status)
{
        const struct json_value *recent = json_tree_get(status, "recentlyQuarantined");

        for (const struct json_value *each = recent == NULL ? NULL : recent->first; each != NULL;
             each = each->next) {
                const char *id = json_tree_text(each, "deliveryId"), *reason = json_tree_text(each, "reason"),
                           *detail = json_tree_text(each, "detail");

                for (size_t i = 0; id != NULL && i < trail->n; i++) {
                        if (strcmp(id, trail->items[i].delivery_id) == 0 && trail->items[i].reason == NULL)
                                trail->items[i].reason = mem_printf("%s, %s", reason == NULL ? "" : reason,
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
        return counted >= (double)trail->n || doctor_trail_quarantined(trail) != NULL;
}

/* Learn which of the deliveries, all decided, are in quarantine. Returns whether the topic says it. */
static int
look_into_quarantine(struct doctor_trail *trail)
{
        struct doctor *doctor = trail->doctor;
        struct json_value *status;

        if (doctor->config->embedded ||
            (trail->quarantine != NULL && read_newest(trail, doctor->config->quarantine_topic, on_quarantined,
                                                      &trail->quarantine, &trail->n_quarantine) == 0))
                return 1;
        status = doctor_daemon_status(doctor);
        look_for_quarantined(trail, status);
        json_tree_free(status);
        return 0;
}

static void
wait_for_router(struct doctor *doctor, struct doctor_trail *trail)
{
        int64_t until_ms = clock_monotonic_ms() + TRAIL_DECIDE_TIMEOUT_MS;
        int result;

        do {
                result = doctor->config->embedded ? are_counted(trail) : are_decided(trail);
                if (result == 0)
                        clock_sleep_ms(PAUSE_MS);
        } while (result == 0 && clock_monotonic_ms() < until_ms && !terminal_is_interrupted());
        trail->took_ms = clock_monotonic_ms() - trail->answered_ms;
        if (result == 0 && terminal_is_interrupted())
                doctor_skip(doctor, "interrupted");
        else if (result < 0)
                doctor_trail_report_lost(doctor, trail);
        else if (result == 0)
                doctor_trail_report_undecided(doctor, trail);
        else
                doctor_trail_report_decided(doctor, trail, look_into_quarantine(trail));
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
                doctor_trail_report_lost(doctor, trail);
        else if (!is_found)
                doctor_trail_report_not_found(doctor, trail);
        else
                wait_for_router(doctor, trail);
}
