#include "cli/doctor_daemon.h"

#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "cli/status.h"
#include "model/delivery_check.h"

/*
 * Whether the daemon refuses requests that may well be deliveries, puts deliveries into quarantine, or has
 * found that some are lost.
 */

#define RECENT_S 3600

static int
is_recent(const struct json_value *event)
{
        return (double)clock_now_ms() / 1000 - status_number(event, "timeSeconds") <= RECENT_S;
}

/* Whether a refusal is recent, and not one of a request of this command. */
static int
matters(const struct json_value *refusal)
{
        const char *detail = json_tree_text(refusal, "detail");

        return is_recent(refusal) &&
               (detail == NULL || strncmp(detail, DELIVERY_PROBE_MARK, strlen(DELIVERY_PROBE_MARK)) != 0);
}

static const char *
outcome_of(const struct json_value *refusal)
{
        const char *outcome = json_tree_text(refusal, "outcome");

        return outcome == NULL ? "" : outcome;
}

/* How little an outcome tells of genuine deliveries: strangers, too, cause the last ones. */
static size_t
rank(const struct json_value *refusal)
{
        static const char *const outcomes[] = {"stale_genuine",     "forbidden",   "forged",
                                               "malformed",         "too_large",   "error",
                                               "stale_unchecked",   "stale",       "throttled",
                                               "unavailable",       "bad_request", "not_found",
                                               "method_not_allowed"};
        size_t i = 0;

        while (i < ARRAY_LEN(outcomes) && strcmp(outcome_of(refusal), outcomes[i]) != 0)
                i++;
        return i;
}

void
doctor_refusals_check(struct doctor *doctor)
{
        const struct json_value *refusals = json_tree_get(doctor->status, "refusals"), *shown = NULL;
        const char *detail;
        double n = 0, n_alike = 0;

        if (refusals == NULL)
                return; /* not a receiver, or an older daemon */
        doctor_begin(doctor, "refusals", "%s", "");
        for (const struct json_value *each = refusals->first; each != NULL; each = each->next) {
                if (!matters(each))
                        continue;
                n += status_number(each, "count");
                if (shown == NULL || rank(each) < rank(shown)) { /* the newest is the first */
                        shown = each;
                        n_alike = 0;
                }
                if (strcmp(outcome_of(each), outcome_of(shown)) == 0)
                        n_alike += status_number(each, "count");
        }
        if (shown == NULL) {
                doctor_pass(doctor, "no delivery refused within an hour");
                return;
        }
        detail = json_tree_text(shown, "detail");
        doctor_warn(doctor, "%.0f request%s refused, %.0f as %s, the last: %s; see gatepost status", n,
                    n == 1 ? "" : "s", n_alike, outcome_of(shown), detail == NULL ? "" : detail);
}

void
doctor_quarantine_check(struct doctor *doctor)
{
        const struct json_value *recent = json_tree_get(doctor->status, "recentlyQuarantined"), *last;
        const char *reason, *detail;
        double n = status_sum(json_tree_get(doctor->status, "quarantined"));

        if (recent == NULL)
                return; /* not a router, or an older daemon */
        doctor_begin(doctor, "quarantine", "%s", "");
        last = recent->first; /* the newest */
        if (last == NULL || !is_recent(last)) {
                doctor_pass(doctor, "no delivery quarantined by this router within an hour");
                return;
        }
        reason = json_tree_text(last, "reason");
        detail = json_tree_text(last, "detail");
        doctor_warn(
            doctor,
            "%.0f deliver%s quarantined by this router since its start, the last as %s: %s; consumers "
            "do not get them: gatepost quarantine list",
            n, n == 1 ? "y" : "ies", reason == NULL ? "" : reason, detail == NULL ? "" : detail);
}

/* Return a loss of this name if it happened lately, or NULL. */
static const struct json_value *
recent_loss(const struct doctor *doctor, const char *name)
{
        const struct json_value *loss = json_tree_get(doctor->status, name);

        return status_number(loss, "count") > 0 && is_recent(loss) ? loss : NULL;
}

void
doctor_losses_check(struct doctor *doctor)
{
        const struct json_value *deleted = recent_loss(doctor, "deletedBeforeRouting");
        const struct json_value *truncations = recent_loss(doctor, "logTruncations");

        if (json_tree_get(doctor->status, "deletedBeforeRouting") == NULL)
                return; /* not a router, or an older daemon */
        doctor_begin(doctor, "losses", "%s", "");
        if (deleted == NULL && truncations == NULL) {
                doctor_pass(doctor, "this router has found no delivery lost within an hour");
                return;
        }
        if (deleted != NULL)
                doctor_warn(
                    doctor,
                    "up to %.0f deliveries were deleted before they were routed, by this router since "
                    "its start: they are lost here; ask the service to send them again, and let "
                    "retention.ms of %s be longer than routers may be down",
                    status_number(deleted, "count"), doctor->config->deliveries_topic);
        if (deleted != NULL && truncations != NULL)
                doctor_begin(doctor, "losses", "%s", "");
        if (truncations != NULL)
                doctor_warn(
                    doctor,
                    "Kafka has lost deliveries that it had acknowledged, %.0f time%s since the start of "
                    "this router: the log of %s was cut off; gatepost audit shows what is affected",
                    status_number(truncations, "count"), status_number(truncations, "count") == 1 ? "" : "s",
                    doctor->config->deliveries_topic);
}

/* What to do about a reason to quarantine a test delivery. */
static const struct {
        const char *reason;
        const char *remedy;
} remedies[] = {
    {"unverified",
     "the router has verify = on, and other secrets, header_prefix or tolerance than the receiver: "
     "give both the same, then reload the router"},
    {"missing-kind", "give the router the `kind` of this file, then reload it"},
    {"unknown-kind",
     "restart the router if it is older than version 0.2.0; else give it the `kind` of this file, then: "
     "reload it"},
    {"unknown-source", "give the router the sources of the receiver, by the same names, then reload it"},
};

void
doctor_quarantine_report(struct doctor *doctor, const char *reason)
{
        size_t r = 0;

        while (r < ARRAY_LEN(remedies) &&
               strncmp(reason, remedies[r].reason, strlen(remedies[r].reason)) != 0)
                r++;
        doctor_fail(doctor, EX_CONFIG,
                    "the router has quarantined it, and may do so with genuine deliveries: %s", reason);
        doctor_remedy(
            doctor, "%s",
            r < ARRAY_LEN(remedies)
                ? remedies[r].remedy
                : "compare the sources of the router and of this file; gatepost-consumers(7) explains "
                  "the reason");
}
