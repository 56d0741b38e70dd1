#include "cli/doctor_daemon.h"

#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "cli/status.h"
#include "model/delivery_check.h"

/* Whether the daemon refuses requests that may well be deliveries, or puts deliveries into quarantine. */

#define RECENT_S 3600

static int
is_recent(const struct json_value *event)
{
        return (double)clock_now_ms() / 1000 - status_number(event, "timeSeconds") <= RECENT_S;
}

/* Whether a refusal is recent, and may be that of a delivery which the sender cannot get through. */
static int
matters(const struct json_value *refusal)
{
        static const char *const outcomes[] = {"malformed", "forged", "stale_genuine", "not_found"};
        const char *outcome = json_tree_text(refusal, "outcome"), *detail = json_tree_text(refusal, "detail");

        if (outcome == NULL || !is_recent(refusal) ||
            (detail != NULL && strncmp(detail, DELIVERY_PROBE_MARK, strlen(DELIVERY_PROBE_MARK)) == 0))
                return 0;
        for (size_t i = 0; i < ARRAY_LEN(outcomes); i++) {
                if (strcmp(outcome, outcomes[i]) == 0)
                        return 1;
        }
        return 0;
}

void
doctor_refusals_check(struct doctor *doctor)
{
        const struct json_value *refusals = json_tree_get(doctor->status, "refusals"), *last = NULL;
        const char *detail;
        double n = 0;

        if (refusals == NULL)
                return; /* not a receiver, or an older daemon */
        doctor_begin(doctor, "refusals", "%s", "");
        for (const struct json_value *each = refusals->first; each != NULL; each = each->next) {
                if (!matters(each))
                        continue;
                last = last == NULL ? each : last; /* the newest is the first */
                n += status_number(each, "count");
        }
        if (last == NULL) {
                doctor_pass(doctor, "no delivery refused within an hour");
                return;
        }
        detail = json_tree_text(last, "detail");
        doctor_warn(doctor, "%.0f request%s refused, the last as %s: %s; see gatepost status", n,
                    n == 1 ? "" : "s", json_tree_text(last, "outcome"), detail == NULL ? "" : detail);
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
