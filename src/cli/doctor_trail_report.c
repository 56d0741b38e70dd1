#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>

#include "cli/doctor_daemon.h"
#include "cli/doctor_trail_work.h"

/* What became of the test deliveries, in words. */

#define LIST_SIZE 120
#define WHERE_SIZE (LIST_SIZE + 80)

int
doctor_trail_is_decided(const struct doctor_trail *trail, const struct trail_sent *sent)
{
        return sent->committed > sent->offset &&
               doctor_positions_fit(&trail->positions, (size_t)sent->partition);
}

const struct trail_sent *
doctor_trail_quarantined(const struct doctor_trail *trail)
{
        size_t i = 0;

        while (i < trail->n && trail->items[i].reason == NULL)
                i++;
        return i == trail->n ? NULL : &trail->items[i];
}

const struct trail_sent *
doctor_trail_missing(const struct doctor_trail *trail)
{
        size_t i = 0;

        while (i < trail->n && trail->items[i].partition >= 0)
                i++;
        return i == trail->n ? NULL : &trail->items[i];
}

/* Return the first delivery in a partition in which no router can continue, or NULL. */
static const struct trail_sent *
first_misfit(const struct doctor_trail *trail)
{
        size_t i = 0;

        if (trail->positions.n == 0)
                return NULL; /* of an embedded broker */
        while (i < trail->n && doctor_positions_fit(&trail->positions, (size_t)trail->items[i].partition))
                i++;
        return i == trail->n ? NULL : &trail->items[i];
}

/* Report why it cannot be followed. */
void
doctor_trail_report_lost(struct doctor *doctor, const struct doctor_trail *trail)
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
                const struct trail_sent *sent = &trail->items[i];
                int64_t n = sent->offset - (sent->committed < 0 ? 0 : sent->committed);

                if (sent->committed > sent->offset)
                        continue;
                if (sent->committed == sent->committed_first)
                        return 0;
                most = n > most ? n : most;
        }
        return most;
}

static int
is_undecided(const struct doctor_trail *trail, const struct trail_sent *sent)
{
        return !trail->doctor->config->embedded && !doctor_trail_is_decided(trail, sent);
}

static int
is_quarantined(const struct doctor_trail *trail, const struct trail_sent *sent)
{
        (void)trail;
        return sent->reason != NULL;
}

/*
 * Write in which partitions a condition holds, as " in 1 of 2 partitions (0)"; "" if it holds in all. Returns
 * the number of partitions that have test deliveries.
 */
static size_t
list_partitions(const struct doctor_trail *trail,
                int (*holds)(const struct doctor_trail *trail, const struct trail_sent *sent), char *text,
                size_t size)
{
        size_t n = 0, n_such = 0, len = 0;
        char list[LIST_SIZE] = "";

        for (size_t p = 0; p < trail->n_ranges; p++) {
                int is_reached = 0, is_such = 0;

                for (size_t i = 0; i < trail->n; i++) {
                        if (trail->items[i].partition != (int32_t)p)
                                continue;
                        is_reached = 1;
                        is_such |= holds(trail, &trail->items[i]);
                }
                n += (size_t)is_reached;
                n_such += (size_t)is_such;
                if (is_such && len < sizeof(list) - 20)
                        len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%zu", len == 0 ? "" : ", ",
                                                p);
        }
        text[0] = '\0';
        if (n_such < n)
                (void)snprintf(text, size, " in %zu of %zu partitions (%s)", n_such, n, list);
        return n;
}

void
doctor_trail_report_undecided(struct doctor *doctor, const struct doctor_trail *trail)
{
        int64_t n_before = doctor->config->embedded ? 0 : count_before(trail);
        const struct trail_sent *misfit = first_misfit(trail);
        char where[WHERE_SIZE];

        if (misfit != NULL) {
                doctor_positions_report(doctor, &trail->positions, (size_t)misfit->partition);
                return;
        }
        if (n_before > 0) {
                doctor_warn(
                    doctor,
                    "not decided within %d s: a router is catching up, and about %" PRId64
                    " deliveries wait before it; run it again when the lag is over, by gatepost status",
                    TRAIL_DECIDE_TIMEOUT_MS / 1000, n_before);
                return;
        }
        (void)list_partitions(trail, is_undecided, where, sizeof(where));
        doctor_fail(doctor, EX_UNAVAILABLE, "the router has not decided on it within %d s%s",
                    TRAIL_DECIDE_TIMEOUT_MS / 1000, where);
        doctor_remedy(doctor,
                      "see whether a router runs for %s, what it restores, and why it waits: gatepost status "
                      "on its machine",
                      doctor->config->deliveries_topic);
}

/*
 * The routers have decided: they should have recognised the deliveries. One with another configuration may
 * not.
 */
void
doctor_trail_report_decided(struct doctor *doctor, const struct doctor_trail *trail, int is_read)
{
        const struct trail_sent *quarantined = doctor_trail_quarantined(trail);
        char where[WHERE_SIZE];
        size_t n = list_partitions(trail, is_quarantined, where, sizeof(where));

        if (quarantined != NULL) {
                doctor_quarantine_report(doctor, where, quarantined->reason);
        } else if (!is_read && trail->why != RANGE_DONE && trail->why != RANGE_DENIED) {
                doctor_kafka_report(doctor, trail->why, &trail->error);
        } else if (!is_read) {
                doctor_warn(doctor,
                            "decided within %" PRId64
                            " ms of the answer; whether it was dropped is not verified, "
                            "as %s cannot be read",
                            trail->took_ms, doctor->config->quarantine_topic);
        } else {
                where[0] = '\0';
                if (trail->n_ranges > 1)
                        (void)snprintf(where, sizeof(where), ", in %zu of %zu partitions", n,
                                       trail->n_ranges);
                doctor_pass(doctor, "recognised and dropped within %" PRId64 " ms of the answer%s",
                            trail->took_ms, where);
        }
}

/* An accepted delivery is in Kafka, or in the spool of the receiver, which may be on another machine. */
void
doctor_trail_report_not_found(struct doctor *doctor, const struct doctor_trail *trail)
{
        const char *address = doctor_trail_missing(trail)->address;

        if (trail->n_spooled > 0) {
                doctor_spool_report(doctor, trail->n_spooled, TRAIL_DECIDE_TIMEOUT_MS / 1000);
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
        doctor_remedy(
            doctor, "see its spool by gatepost status on the receiver's machine, and compare [kafka] and "
                    "[topics] there with this file; gatepostd applies a change of them at a restart, before "
                    "which a router must have routed what is in the old topic: gatepost-guide(7), ANOTHER "
                    "CLUSTER OR PREFIX");
}
