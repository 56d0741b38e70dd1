#include "cli/doctor_daemon.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "cli/own_url.h"
#include "cli/status.h"
#include "model/delivery_check.h"

/* Whether the daemon refuses requests that may well be deliveries, or has found that some are lost. */

/*
 * A run of this command makes up to three connections to a listener and, with --to, one more. A proxy on this
 * machine that is closed as well makes one for each delivery: five runs within the lifetime of an entry are
 * not a trouble.
 */
#define OWN_CLOSED_MAX (5.0 * 4)

int
doctor_is_recent(const struct json_value *event)
{
        return (double)clock_now_ms() / 1000 - status_number(event, "timeSeconds") <= DOCTOR_RECENT_S;
}

static const char *
outcome_of(const struct json_value *refusal)
{
        const char *outcome = json_tree_text(refusal, "outcome");

        return outcome == NULL ? "" : outcome;
}

/* Whether a connection was closed before a request. */
static int
is_closing(const struct json_value *refusal)
{
        const struct json_value *status = json_tree_get(refusal, "status");

        return status != NULL && status->type == JSON_NULL;
}

/* Whether connections of this machine to a listener come from this address. */
static int
is_own_address(const struct doctor *doctor, const char *text)
{
        struct address client, reached;
        struct own_address own;

        if (strcmp(text, "-") == 0 || strcmp(text, "127.0.0.1") == 0)
                return 1; /* a Unix-domain socket; any address of the loopback interface */
        if (address_parse(text, strlen(text), &client) != 0)
                return 0;
        for (size_t i = 0; i < doctor->config->n_listen; i++) {
                if (own_url_address(&doctor->config->listen[i], &own) != 0)
                        continue;
                address_from_socket((const struct sockaddr *)&own.storage, &reached);
                if (memcmp(&client, &reached, sizeof(client)) == 0)
                        return 1;
        }
        return 0;
}

/*
 * Whether closed connections may have been made by this command. Its machine may be no trusted proxy, it has
 * no certificate of a client, and with --to it may refuse the receiver's by an alert.
 */
static int
has_own_closings(const struct doctor *doctor, const struct json_value *refusal)
{
        const char *detail = json_tree_text(refusal, "detail"), *client = json_tree_text(refusal, "client");
        const char *uncertified =
            ERR_reason_error_string(ERR_PACK(ERR_LIB_SSL, 0, SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE));

        if (!is_closing(refusal) || client == NULL || !is_own_address(doctor, client))
                return 0;
        return strcmp(outcome_of(refusal), "no_proxy") == 0 ||
               (detail != NULL && uncertified != NULL && strstr(detail, uncertified) != NULL) ||
               (detail != NULL && strstr(detail, " alert ") != NULL);
}

/* Whether all refusals of an entry may be of this command. */
static int
may_be_own(const struct doctor *doctor, const struct json_value *refusal)
{
        const char *detail = json_tree_text(refusal, "detail");

        if (has_own_closings(doctor, refusal))
                return status_number(refusal, "count") <= OWN_CLOSED_MAX * (double)doctor->config->n_listen;
        return detail != NULL && strncmp(detail, DELIVERY_PROBE_MARK, strlen(DELIVERY_PROBE_MARK)) == 0;
}

/* How little an outcome tells of genuine deliveries: strangers, too, cause the last ones. */
static size_t
rank(const struct json_value *refusal)
{
        static const char *const outcomes[] = {"stale_genuine",
                                               "forbidden",
                                               "forged",
                                               "malformed",
                                               "too_large",
                                               "error",
                                               "no_proxy",
                                               "per_address",
                                               "stale_unchecked",
                                               "stale",
                                               "throttled",
                                               "unavailable",
                                               "full",
                                               "made_room",
                                               "proxy_header",
                                               "bad_request",
                                               "not_found",
                                               "method_not_allowed",
                                               "handshake_failed"};
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
        char refused[64] = "", closed[64] = "";
        double n = 0, n_closed = 0, n_alike = 0;
        int has_own = 0;

        if (refusals == NULL)
                return; /* not a receiver, or an older daemon */
        doctor_begin(doctor, "refusals", "%s", "");
        for (const struct json_value *each = refusals->first; each != NULL; each = each->next) {
                if (!doctor_is_recent(each) || may_be_own(doctor, each))
                        continue;
                has_own |= has_own_closings(doctor, each);
                *(is_closing(each) ? &n_closed : &n) += status_number(each, "count");
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
        if (n_closed > 0)
                (void)snprintf(closed, sizeof(closed), "%s%.0f connection%s closed before a request",
                               n > 0 ? " and " : "", n_closed, n_closed == 1 ? "" : "s");
        if (n > 0)
                (void)snprintf(refused, sizeof(refused), "%.0f request%s refused", n, n == 1 ? "" : "s");
        doctor_warn(doctor, "%s%s, %.0f as %s, the last: %s; %ssee gatepost status", refused, closed, n_alike,
                    outcome_of(shown), detail == NULL ? "" : detail,
                    has_own ? "those of gatepost doctor are among them; " : "");
}

/* Return a loss of this name if it happened lately, or NULL. */
static const struct json_value *
recent_loss(const struct doctor *doctor, const char *name)
{
        const struct json_value *loss = json_tree_get(doctor->status, name);

        return status_number(loss, "count") > 0 && doctor_is_recent(loss) ? loss : NULL;
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
