#include "cli/doctor_daemon.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/number.h"
#include "cli/own_url.h"
#include "cli/status.h"
#include "model/delivery_check.h"

/* Whether the daemon refuses requests that may well be deliveries, or has found that some are lost. */

/*
 * A run of this command makes up to three connections to a listener that are closed before a request, and
 * with --to one for each secret. What an entry has within an hour may be of so many runs; if it has more,
 * somebody else is closed as well, such as a proxy on this machine, which makes one for each delivery.
 */
#define OWN_PER_RUN 3
#define OWN_RUNS 5

double
doctor_seconds_since(const struct json_value *object, const char *name)
{
        return (double)clock_now_ms() / 1000 - status_number(object, name);
}

int
doctor_is_recent(const struct json_value *event)
{
        return doctor_seconds_since(event, "timeSeconds") <= DOCTOR_RECENT_S;
}

/* Write an age, a second at least. Return text. */
static const char *
format_age(double age_s, char text[NUMBER_TEXT_SIZE])
{
        (void)number_format_duration(age_s < 1 ? 1000 : (uint64_t)age_s * 1000, text);
        return text;
}

const char *
doctor_period(const struct doctor *doctor, char text[DOCTOR_PERIOD_SIZE])
{
        double start_s = status_number(doctor->status, "startTimeSeconds"),
               uptime_s = doctor_seconds_since(doctor->status, "startTimeSeconds");
        char age[NUMBER_TEXT_SIZE];

        if (start_s == 0 || uptime_s >= DOCTOR_RECENT_S)
                return "within an hour";
        (void)snprintf(text, DOCTOR_PERIOD_SIZE, "since the start of gatepostd %s ago",
                       format_age(uptime_s, age));
        return text;
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
 * Return how many connections of an entry a run of this command may have made; 0: none. Its machine may be no
 * trusted proxy, and it has no certificate of a client. With --to, it may refuse the receiver's by an alert,
 * but not on a Unix-domain socket, to which no URL leads.
 */
static size_t
own_per_run(const struct doctor *doctor, const struct json_value *refusal)
{
        const char *detail = json_tree_text(refusal, "detail"), *client = json_tree_text(refusal, "client");
        const char *uncertified =
            ERR_reason_error_string(ERR_PACK(ERR_LIB_SSL, 0, SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE));
        size_t n_secrets = 0;

        if (!is_closing(refusal) || client == NULL || !is_own_address(doctor, client))
                return 0;
        for (size_t i = 0; i < doctor->config->n_sources && strcmp(client, "-") != 0; i++)
                n_secrets += doctor->config->sources[i].n_keys;
        if (strcmp(outcome_of(refusal), "no_proxy") == 0 ||
            (detail != NULL && uncertified != NULL && strstr(detail, uncertified) != NULL))
                return OWN_PER_RUN * doctor->config->n_listen + n_secrets;
        return detail != NULL && strstr(detail, " alert ") != NULL ? n_secrets : 0;
}

/* Whether the request of an entry is of this command, which marks it. */
static int
is_marked(const struct json_value *refusal)
{
        const char *detail = json_tree_text(refusal, "detail");

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
        const char *detail = json_tree_text(refusal, "detail");
        size_t i = 0;

        if (detail != NULL && strstr(detail, "; that of the source ") != NULL)
                return 2; /* almost the path of a source: more likely the service than a scanner */
        while (i < ARRAY_LEN(outcomes) && strcmp(outcome_of(refusal), outcomes[i]) != 0)
                i++;
        return i;
}

/* What the entries have of the last hour, to be reported together. */
struct summary {
        const struct json_value *newest;
        const struct json_value *shown; /* the one whose detail is shown; NULL: there are none */
        double n_requests, n_closed;
        double n_alike; /* with the outcome of the one that is shown */
        double n_own;   /* that a run of this command may have made */
};

/* Return how often an event has happened within an hour; since the start, if the daemon is older. */
static double
count_of(const struct json_value *each)
{
        return status_number(each, json_tree_get(each, "hourCount") == NULL ? "count" : "hourCount");
}

static void
add(struct summary *summary, const struct json_value *each, size_t n_own)
{
        double count = count_of(each);

        *(is_closing(each) ? &summary->n_closed : &summary->n_requests) += count;
        if (summary->n_own < (double)n_own)
                summary->n_own = (double)n_own;
        if (summary->newest == NULL)
                summary->newest = each;
        if (summary->shown == NULL || rank(each) < rank(summary->shown)) { /* the newest is the first */
                summary->shown = each;
                summary->n_alike = 0;
        }
        if (strcmp(outcome_of(each), outcome_of(summary->shown)) == 0 && rank(each) == rank(summary->shown))
                summary->n_alike += count;
}

/*
 * Report entries: as a note if all may be of this command, since others look the same. What tells most of
 * genuine deliveries may be mended since: its age, and what came last, show it.
 */
static void
report(struct doctor *doctor, const struct summary *summary, int may_be_own)
{
        const char *detail = json_tree_text(summary->shown, "detail"),
                   *last = json_tree_text(summary->newest, "detail");
        char refused[64] = "", closed[64] = "", own[120] = "", newest[400] = "", text[1500],
             age[NUMBER_TEXT_SIZE];

        if (summary->n_closed > 0)
                (void)snprintf(closed, sizeof(closed), "%s%.0f connection%s closed before a request",
                               summary->n_requests > 0 ? " and " : "", summary->n_closed,
                               summary->n_closed == 1 ? "" : "s");
        if (summary->n_requests > 0)
                (void)snprintf(refused, sizeof(refused), "%.0f request%s refused", summary->n_requests,
                               summary->n_requests == 1 ? "" : "s");
        if (summary->n_own > 0)
                (void)snprintf(own, sizeof(own), "each run of gatepost doctor makes up to %.0f such%s; ",
                               summary->n_own, may_be_own ? ", and any more are of another client" : "");
        if (summary->newest != summary->shown)
                (void)snprintf(newest, sizeof(newest), "the newest, as %s: %.256s; ",
                               outcome_of(summary->newest), last == NULL ? "" : last);
        (void)snprintf(text, sizeof(text), "%s%s, %.0f as %s%s %s ago: %s; %s%ssee @GATEPOST@ status",
                       refused, closed, summary->n_alike, outcome_of(summary->shown),
                       summary->n_alike > 1 ? ", the last" : "",
                       format_age(doctor_seconds_since(summary->shown, "timeSeconds"), age),
                       detail == NULL ? "" : detail, newest, own);
        if (may_be_own)
                doctor_note(doctor, "%s", text);
        else
                doctor_warn(doctor, "%s", text);
}

/* Report sources whose secrets a reload has replaced lately: the service may still sign with one of them. */
static void
check_secrets(struct doctor *doctor)
{
        const struct json_value *each = doctor_age_first(doctor, "sources");
        int receives = (doctor->config->roles & CONFIG_RECEIVER) != 0;
        char age[NUMBER_TEXT_SIZE];

        for (; each != NULL; each = each->next) {
                double age_s = doctor_seconds_since(each, "secretsReplacedSeconds");
                const char *name = json_tree_text(each, "name");

                if (name == NULL || age_s > DOCTOR_RECENT_S)
                        continue;
                doctor_begin(doctor, "secrets", "[source %s]", name);
                doctor_warn(
                    doctor,
                    "a reload %s ago replaced all secrets: deliveries that the service signs with a "
                    "previous one are %s; if it does, add that one again as another secret_file, and then: "
                    "systemctl reload @UNIT@%s; if it is lost, see gatepostd(8), Changing a secret",
                    format_age(age_s, age), receives ? "refused" : "quarantined",
                    receives ? "; they are accepted when they are sent again" : ", and release them");
        }
}

void
doctor_refusals_check(struct doctor *doctor)
{
        const struct json_value *refusals = json_tree_get(doctor->status, "refusals");
        struct summary others = {0}, ours = {0};
        char period[DOCTOR_PERIOD_SIZE];

        check_secrets(doctor);
        if (refusals == NULL)
                return; /* not a receiver, or an older daemon */
        for (const struct json_value *each = refusals->first; each != NULL; each = each->next) {
                size_t n_own = own_per_run(doctor, each);
                int is_ours = n_own > 0 && count_of(each) <= (double)(OWN_RUNS * n_own);

                if (doctor_is_recent(each) && !is_marked(each))
                        add(is_ours ? &ours : &others, each, n_own);
        }
        doctor_begin(doctor, "refusals", "%s", "");
        if (others.shown == NULL && ours.shown == NULL)
                doctor_pass(doctor, "no delivery refused %s", doctor_period(doctor, period));
        if (others.shown != NULL)
                report(doctor, &others, 0);
        if (others.shown != NULL && ours.shown != NULL)
                doctor_begin(doctor, "refusals", "%s", "");
        if (ours.shown != NULL)
                report(doctor, &ours, 1);
}

/* Return a loss of this name if it happened lately, within the period in seconds, or NULL. */
static const struct json_value *
recent_loss(const struct doctor *doctor, const char *name, double period_s)
{
        const struct json_value *loss = json_tree_get(doctor->status, name);

        return status_number(loss, "count") > 0 && doctor_seconds_since(loss, "timeSeconds") <= period_s
                   ? loss
                   : NULL;
}

static void
report_added(struct doctor *doctor, const struct json_value *added, uint64_t window_ms)
{
        const char *topic = doctor->config->deliveries_topic;
        char until[CLOCK_RFC3339_SIZE];

        doctor_begin(doctor, "topic", "%s", topic);
        doctor_warn(
            doctor,
            "%.0f partition%s added while this router ran, so that delivery-ids have changed their "
            "partitions: until %s, a repeat of an earlier delivery may be published again, and consumers "
            "must recognise it by ce_id; gatepostd(8) says how to add some without that",
            status_number(added, "count"), status_number(added, "count") == 1 ? " was" : "s were",
            clock_format_s((int64_t)status_number(added, "timeSeconds") + (int64_t)(window_ms / 1000),
                           until));
}

/* Report pointers that have found nothing they may take in any event: they are probably wrong. */
static void
check_lookups(struct doctor *doctor)
{
        const struct json_value *lookups = json_tree_get(doctor->status, "lookups"), *each;

        for (each = lookups == NULL ? NULL : lookups->first; each != NULL; each = each->next) {
                const char *source = json_tree_text(each, "source"), *option = json_tree_text(each, "option");
                double missing = status_number(each, "missing");
                int is_key = option != NULL && strcmp(option, "key") == 0;

                if (source == NULL || option == NULL || missing == 0 || status_number(each, "found") > 0)
                        continue;
                doctor_begin(doctor, "events", "[source %s]", source);
                doctor_warn(doctor,
                            "`%s` has found no %s in the bodies of %.0f event%s since the configuration was "
                            "loaded, so that %s; see whether the JSON pointer leads to one: @GATEPOST@ tail "
                            "shows bodies",
                            option, is_key ? "string or number" : "string", missing, missing == 1 ? "" : "s",
                            is_key ? "their key is the delivery-id" : "they have no ce_subject");
        }
}

void
doctor_losses_check(struct doctor *doctor)
{
        uint64_t window_ms = doctor->config->dedup_window_ms;
        const struct json_value *deleted = recent_loss(doctor, "deletedBeforeRouting", DOCTOR_RECENT_S),
                                *truncations = recent_loss(doctor, "logTruncations", DOCTOR_RECENT_S),
                                *added = recent_loss(doctor, "partitionsAdded", (double)window_ms / 1000);
        char period[DOCTOR_PERIOD_SIZE];

        if (json_tree_get(doctor->status, "deletedBeforeRouting") == NULL)
                return; /* not a router, or an older daemon */
        check_lookups(doctor);
        if (added != NULL)
                report_added(doctor, added, window_ms);
        doctor_begin(doctor, "losses", "%s", "");
        if (deleted == NULL && truncations == NULL)
                doctor_pass(doctor, "this router has found no delivery lost %s",
                            doctor_period(doctor, period));
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
                    "this router: the log of %s was cut off; @GATEPOST@ audit shows what is affected",
                    status_number(truncations, "count"), status_number(truncations, "count") == 1 ? "" : "s",
                    doctor->config->deliveries_topic);
}
