#include "receiver/shared.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "kafka/outage.h"

/* A quarter of a million accepted deliveries: at most 29 MB, and five minutes at 800 a second. */
#define REPLAY_ENTRIES (1u << 18)

#define STALE_BYTES_PER_S (8u << 20)
#define STALE_BYTES_EACH 1024 /* cost of a check apart from the hashing */
#define S_US 1000000

/*
 * A failed append counts for this long, unless one succeeds; for the choice of the spool, while that appends
 * nothing, from when Kafka was reachable again.
 */
#define FAILURE_COUNTS_MS 10000

/*
 * Descriptors for one lane's connections to brokers, the router's, the log and the event loops: about 100
 * with 12 brokers.
 */
#define BASE_DESCRIPTORS 128

/*
 * Descriptors for each further lane: an event loop, and a Kafka client with three per broker: about 45 with
 * 12 brokers.
 */
#define LANE_DESCRIPTORS 48
/* Files of the dedup tables of a router in this process: 20 to 40 for each partition. */
#define STATE_DESCRIPTORS 512

static struct source_account *
new_account(struct receiver_shared *shared, const char *name)
{
        struct source_account *account = mem_alloc(sizeof(*account));

        account->name = mem_strdup(name);
        account->metrics = metrics_source(shared->metrics, name);
        return account;
}

/*
 * Return how many connections may be open, at least 1: max_connections, or as many as the limit of
 * descriptors leaves (RLIMIT_NOFILE, which is raised first), less those that Kafka clients and the rest need.
 * Log it when fewer are possible than configured.
 */
static uint64_t
connection_limit(const struct config *config, uint64_t n_lanes)
{
        uint64_t others = BASE_DESCRIPTORS + (n_lanes - 1) * (LANE_DESCRIPTORS + config->n_listen);
        uint64_t wanted;
        struct rlimit limit;

        if (config->state != NULL && config->roles & CONFIG_ROUTER)
                others += STATE_DESCRIPTORS;
        wanted = config->max_connections + others;
        if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
                return config->max_connections;
        if (limit.rlim_cur < wanted) {
                limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
                (void)setrlimit(RLIMIT_NOFILE, &limit);
        }
        if (limit.rlim_cur >= wanted)
                return config->max_connections;
        if (others > limit.rlim_cur / 2)
                others = limit.rlim_cur / 2;
        log_warning("fewer connections than max_connections: the limit of descriptors is too low "
                    "max_connections=%" PRIu64 " descriptors=%" PRIu64 " connections=%" PRIu64
                    " remedy=\"LimitNOFILE= in the unit, or ulimit -n, of %" PRIu64 "\"",
                    config->max_connections, (uint64_t)limit.rlim_cur, (uint64_t)limit.rlim_cur - others,
                    wanted);
        return limit.rlim_cur - others;
}

struct receiver_shared *
receiver_shared_new(struct current *current, const char *bootstrap, struct metrics *metrics,
                    struct probe *probe)
{
        struct receiver_shared *shared = mem_alloc(sizeof(*shared));

        shared->current = current;
        shared->config = current_first(current);
        shared->bootstrap = bootstrap;
        shared->metrics = metrics;
        shared->probe = probe;
        shared->budget = memory_budget_new(shared->config->max_in_flight);
        metrics_watch_budget(metrics, shared->budget);
        shared->clients = clients_new(0, 0);
        pthread_mutex_init(&shared->replay_mutex, NULL);
        shared->replay = replay_new(REPLAY_ENTRIES);
        shared->accounts = new_account(shared, "");
        receiver_shared_renew(shared, shared->config);
        return shared;
}

void
receiver_shared_free(struct receiver_shared *shared)
{
        struct source_account *account, *next;

        if (shared == NULL)
                return;
        metrics_watch_budget(shared->metrics, NULL);
        for (account = shared->accounts; account != NULL; account = next) {
                next = atomic_load(&account->next);
                free(account->name);
                for (size_t o = 0; o < OUTCOME_N; o++)
                        log_flood_end(&account->refused[o]);
                free(account);
        }
        log_flood_end(&shared->append_failed);
        log_flood_end(&shared->spooling_began);
        log_flood_end(&shared->spooling_ended);
        memory_budget_free(shared->budget);
        replay_free(shared->replay);
        clients_free(shared->clients);
        tls_free(shared->tls);
        free(shared);
}

/* Return the account of that name, or the last one in the list. */
static struct source_account *
find_account(struct receiver_shared *shared, const char *name)
{
        struct source_account *account = shared->accounts, *next;

        while (strcmp(account->name, name) != 0 && (next = atomic_load(&account->next)) != NULL)
                account = next;
        return account;
}

void
receiver_shared_renew(struct receiver_shared *shared, const struct config *config)
{
        atomic_store(&shared->max_connections, connection_limit(config, shared->config->threads));
        if (shared->budget != NULL)
                memory_budget_resize(shared->budget, config->max_in_flight);
        if (shared->clients != NULL)
                clients_set_limits(shared->clients, config->max_connections_per_address,
                                   config->max_refusals_per_address);
        for (size_t i = 0; i < config->n_sources; i++) {
                const char *name = config->sources[i].name;
                struct source_account *account = find_account(shared, name);

                if (strcmp(account->name, name) != 0)
                        atomic_store(&account->next, new_account(shared, name));
        }
}

struct source_account *
receiver_shared_account(struct receiver_shared *shared, const struct config_source *source)
{
        return find_account(shared, source == NULL ? "" : source->name);
}

/*
 * Deliveries go to Kafka again. While one partition has no leader, this and receiver_shared_note_spooled()
 * alternate.
 */
static void
end_spooling(struct receiver_shared *shared)
{
        int64_t since_ms = atomic_exchange(&spool_stats(shared->spool)->since_ms, 0);

        spool_writer_forget_size(spool_writer(shared->spool));
        if (since_ms != 0)
                log_flood(&shared->spooling_ended, LOG_LEVEL_NOTICE,
                          "deliveries go to Kafka again spooling_s=%" PRId64,
                          (clock_now_ms() - since_ms) / 1000);
}

void
receiver_shared_note_append(struct receiver_shared *shared)
{
        if (atomic_load_explicit(&shared->failed_ms, memory_order_relaxed) != 0)
                atomic_store(&shared->failed_ms, 0);
        if (shared->spool == NULL)
                return;
        atomic_store_explicit(&shared->appended_ms, clock_coarse_ms(), memory_order_relaxed);
        if (atomic_load_explicit(&spool_stats(shared->spool)->since_ms, memory_order_relaxed) != 0)
                end_spooling(shared);
}

void
receiver_shared_note_drained(struct receiver_shared *shared)
{
        if (atomic_load(&shared->failed_ms) != 0)
                atomic_store(&shared->failed_ms, 0);
        if (atomic_load(&spool_stats(shared->spool)->since_ms) != 0)
                end_spooling(shared);
}

void
receiver_shared_note_spooled(struct receiver_shared *shared)
{
        int_fast64_t none = 0;
        char cause[RECENT_DETAIL_SIZE], quoted[LOG_QUOTED_SIZE];

        if (atomic_compare_exchange_strong(&spool_stats(shared->spool)->since_ms, &none, clock_now_ms()))
                log_flood(&shared->spooling_began, LOG_LEVEL_WARNING, "deliveries go to the spool reason=%s",
                          log_quote(outage_describe("Kafka does not acknowledge them", cause, sizeof(cause)),
                                    quoted));
}

int
receiver_shared_has_failed(const struct receiver_shared *shared)
{
        int64_t failed_ms = atomic_load(&shared->failed_ms);

        return failed_ms != 0 && clock_monotonic_ms() - failed_ms < FAILURE_COUNTS_MS;
}

int
receiver_shared_is_away(const struct receiver_shared *shared)
{
        const struct spool_stats *stats = spool_stats(shared->spool);
        int64_t failed_ms, reachable_since_ms = atomic_load(&shared->reachable_since_ms);

        if (!atomic_load(&shared->may_append) || reachable_since_ms == 0)
                return 1;
        failed_ms = atomic_load_explicit(&shared->failed_ms, memory_order_relaxed);
        if (failed_ms == 0 || (atomic_load(&stats->records) == 0 && atomic_load(&stats->queued) == 0))
                return 0;
        /* The drain finds out when Kafka works again, if it can read anything to append; else a delivery. */
        if (reachable_since_ms > failed_ms)
                failed_ms = reachable_since_ms;
        return spool_is_trying(shared->spool) || clock_monotonic_ms() - failed_ms < FAILURE_COUNTS_MS;
}

/*
 * Whether a refusal counts against max_refusals_per_address. A probe does not: a later one would be answered
 * 429 at the same cost, and the test delivery, or a genuine one from the same address, comes after it.
 */
static int
counts_against_client(enum metrics_outcome outcome)
{
        return outcome != OUTCOME_UNAVAILABLE && outcome != OUTCOME_ERROR && outcome != OUTCOME_THROTTLED &&
               outcome != OUTCOME_PROBE;
}

/* Log a stale but genuine delivery. Its age is negative when its timestamp is in the future. */
static void
log_stale_genuine(struct source_account *account, const struct receiver_refused *refused)
{
        char client[ADDRESS_TEXT_SIZE], detail[LOG_QUOTED_SIZE];
        int64_t age_s = clock_now_ms() / 1000 - refused->delivery->timestamp;

        log_flood(&account->refused[OUTCOME_STALE_GENUINE], LOG_LEVEL_WARNING,
                  "refused source=%s outcome=%s status=%d client=%s request_id=%s delivery_id=%s"
                  " age_s=%" PRId64 " detail=%s",
                  account->name, metrics_outcome_name(refused->outcome), refused->status,
                  address_format(&refused->client, client), refused->request_id,
                  refused->delivery->delivery_id, age_s, log_quote(refused->detail, detail));
}

static void
log_refused(struct source_account *account, const struct receiver_refused *refused)
{
        enum log_level level = refused->outcome == OUTCOME_ERROR   ? LOG_LEVEL_ERROR
                               : refused->outcome == OUTCOME_PROBE ? LOG_LEVEL_DEBUG
                                                                   : LOG_LEVEL_NOTICE;
        char client[ADDRESS_TEXT_SIZE], detail[LOG_QUOTED_SIZE];

        if (!log_is_on(level))
                return;
        log_flood(&account->refused[refused->outcome], level,
                  "refused source=%s outcome=%s status=%d client=%s request_id=%s detail=%s",
                  *account->name == '\0' ? "-" : account->name, metrics_outcome_name(refused->outcome),
                  refused->status, address_format(&refused->client, client), refused->request_id,
                  log_quote(refused->detail, detail));
}

/* As snprintf() with %s, which takes ten times as long, for each refusal. */
static void
copy_text(char *copy, size_t size, const char *text)
{
        size_t len = strnlen(text, size - 1);

        memcpy(copy, text, len);
        copy[len] = '\0';
}

static void
note_recent(const struct receiver_shared *shared, const struct receiver_refused *refused)
{
        struct recent_event event = {
            .outcome = metrics_outcome_name(refused->outcome),
            .status = refused->status,
            .client = refused->client,
        };

        copy_text(event.source, sizeof(event.source),
                  refused->near_source == NULL ? refused->account->name : refused->near_source);
        copy_text(event.detail, sizeof(event.detail), refused->detail);
        copy_text(event.request_id, sizeof(event.request_id), refused->request_id);
        recent_note(metrics_recent_refusals(shared->metrics), &event);
}

/* Write why the receiver has closed a connection without a request. Returns whether it has. */
static int
describe_closed(enum http_end end, const char *reason, const struct address *client,
                char detail[RECENT_DETAIL_SIZE])
{
        static const char *const formats[HTTP_N_ENDS] = {
            [HTTP_END_PROXY_HEADER] =
                "%2$s from %1$s; proxy_protocol = required takes version 2 only, which is "
                "send-proxy-v2 in HAProxy",
            [HTTP_END_HANDSHAKE_FAILED] = "the TLS handshake with %s failed: %s",
            [HTTP_END_MADE_ROOM] = "closed for another connection: max_connections were open, or no file "
                                   "descriptor was left",
            [HTTP_END_FULL] = "max_connections were open, and none of the others could be closed",
            [HTTP_END_PER_ADDRESS] = "%s had max_connections_per_address open already",
            [HTTP_END_NO_PROXY] =
                "%s is not in trusted_proxy, the only addresses that proxy_protocol = required accepts",
        };
        char text[ADDRESS_TEXT_SIZE];

        if (formats[end] == NULL || (end == HTTP_END_HANDSHAKE_FAILED && reason == NULL))
                return 0;
        (void)snprintf(detail, RECENT_DETAIL_SIZE, formats[end], address_format(client, text), reason);
        return 1;
}

void
receiver_shared_closed(const struct receiver_shared *shared, enum http_end end, const char *reason,
                       const struct address *client)
{
        static struct log_flood floods[HTTP_N_ENDS];
        struct recent_event event = {.outcome = http_end_name(end), .client = *client};
        char quoted[LOG_QUOTED_SIZE];

        if (!describe_closed(end, reason, client, event.detail))
                return;
        recent_note(metrics_recent_refusals(shared->metrics), &event);
        if (end == HTTP_END_PROXY_HEADER || end == HTTP_END_NO_PROXY)
                log_flood(&floods[end], LOG_LEVEL_NOTICE, "connections without a PROXY header reason=%s",
                          log_quote(event.detail, quoted));
}

void
receiver_shared_refused(struct receiver_shared *shared, const struct receiver_refused *refused)
{
        struct source_account *account = refused->account;
        enum metrics_outcome outcome = refused->outcome;

        metrics_count_request(account->metrics, outcome);
        if (shared->clients != NULL && counts_against_client(outcome) && !refused->is_proxy)
                clients_count_refusal(shared->clients, &refused->client, clock_coarse_ms());
        if (!refused->is_of_doctor)
                note_recent(shared, refused);
        if (refused->delivery != NULL)
                log_stale_genuine(account, refused);
        else
                log_refused(account, refused);
}

void
receiver_shared_note_proxy(struct receiver_shared *shared, const struct address *proxy)
{
        char text[ADDRESS_TEXT_SIZE];

        if (atomic_exchange(&shared->has_noted_proxy, 1) == 0)
                log_warning(
                    "deliveries come through a proxy that is no trusted_proxy; X-Forwarded-For is ignored "
                    "proxy=%s remedy=\"set trusted_proxy to it, or to the network of your proxies\"",
                    address_is_none(proxy) ? "unix" : address_format(proxy, text));
}

int
receiver_shared_take_stale_budget(struct receiver_shared *shared, uint64_t bytes, int64_t now_us)
{
        int64_t cost_us = (int64_t)((bytes + STALE_BYTES_EACH) * S_US / STALE_BYTES_PER_S);
        int_fast64_t until_us = atomic_load(&shared->stale_until_us);

        do {
                if (until_us > now_us + S_US)
                        return 0;
        } while (!atomic_compare_exchange_weak(&shared->stale_until_us, &until_us,
                                               (until_us > now_us ? until_us : now_us) + cost_us));
        return 1;
}

enum replay_verdict
receiver_shared_begin_append(struct receiver_shared *shared, const struct config_source *source,
                             const struct delivery *delivery, char original[DELIVERY_ID_MAX + 1])
{
        enum replay_verdict verdict;

        if (!source->replay_guard || shared->replay == NULL)
                return REPLAY_NONE;
        pthread_mutex_lock(&shared->replay_mutex);
        verdict =
            replay_begin(shared->replay, source->name, delivery->signature, delivery->delivery_id, original);
        pthread_mutex_unlock(&shared->replay_mutex);
        return verdict;
}

void
receiver_shared_end_append(struct receiver_shared *shared, const char *source_name,
                           const uint8_t signature[SIGNATURE_SIZE], const char *delivery_id,
                           int may_be_stored)
{
        if (shared->replay == NULL)
                return;
        pthread_mutex_lock(&shared->replay_mutex);
        replay_end(shared->replay, source_name, signature, delivery_id, may_be_stored);
        pthread_mutex_unlock(&shared->replay_mutex);
}
