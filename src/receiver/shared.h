#ifndef RECEIVER_SHARED_H
#define RECEIVER_SHARED_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/log_flood.h"
#include "config/config.h"
#include "config/current.h"
#include "http/clients.h"
#include "http/memory_budget.h"
#include "http/tls.h"
#include "kafka/probe.h"
#include "metrics/metrics.h"
#include "model/replay.h"
#include "spool/spool.h"

/* Counters of a source, by its name; they survive reloads, and outlive the lanes. */
struct source_account {
        _Atomic(struct source_account *) next;
        char *name; /* "" for requests to no source */
        struct metrics_source *metrics;
        struct log_flood refused[OUTCOME_N];
};

/*
 * What the lanes of a receiver share: the configuration, which is const, counters, and the replay guard with
 * its mutex.
 */
struct receiver_shared {
        struct current *current;
        const struct config *config; /* the first: decides the options that need a restart */
        const char *bootstrap;       /* NULL: as configured */
        struct metrics *metrics;
        struct probe *probe;
        struct tls *tls; /* NULL: no TLS */

        atomic_int may_append;                  /* the topic was verified */
        atomic_int_fast64_t reachable_since_ms; /* monotonic; 0: Kafka does not answer */
        /* Monotonic: until then a lane accepts connections only once it can append; 0: it accepts at once. */
        int64_t hold_until_ms;
        atomic_uint_fast64_t max_connections; /* of all lanes */
        struct clients *clients;              /* connections and refusals of each address */
        /* For bodies, until their deliveries are answered and Kafka has reported on them. */
        struct memory_budget *budget;
        /* Monotonic time of the last failed append, 0 when one has succeeded since. */
        atomic_int_fast64_t failed_ms;
        atomic_int_fast64_t
            appended_ms;     /* monotonic, coarse: the last delivery that went to Kafka; 0: none */
        struct spool *spool; /* NULL: none */

        pthread_mutex_t replay_mutex;
        struct replay *replay;

        struct source_account *accounts; /* a list; the first is for requests to no source */
        struct log_flood append_failed;
        struct log_flood spooling_began, spooling_ended;
        atomic_int has_noted_proxy;         /* see receiver_shared_note_proxy() */
        atomic_int_fast64_t stale_until_us; /* monotonic; see receiver_shared_take_stale_budget() */
};

/* current, metrics and probe outlive it. */
struct receiver_shared *receiver_shared_new(struct current *current, const char *bootstrap,
                                            struct metrics *metrics, struct probe *probe);
void receiver_shared_free(struct receiver_shared *shared);

/*
 * Apply the sources and limits of a configuration, before the lanes see it. From the thread that created
 * shared.
 */
void receiver_shared_renew(struct receiver_shared *shared, const struct config *config);

/* Return the account of a source; NULL: of requests to no source. */
struct source_account *receiver_shared_account(struct receiver_shared *shared,
                                               const struct config_source *source);

/* Kafka has acknowledged a delivery. */
void receiver_shared_note_append(struct receiver_shared *shared);

/* Kafka has answered to a delivery of the spool, or the spool has none that it would take. */
void receiver_shared_note_drained(struct receiver_shared *shared);

/* A delivery is in the spool that Kafka did not take. */
void receiver_shared_note_spooled(struct receiver_shared *shared);

/* Whether the last append has failed, within the last 10 s. */
int receiver_shared_has_failed(const struct receiver_shared *shared);

/* Whether deliveries have to go to the spool, if there is one: Kafka is away, or the last append failed. */
int receiver_shared_is_away(const struct receiver_shared *shared);

/* A refusal, to be counted and logged. */
struct receiver_refused {
        struct source_account *account;
        enum metrics_outcome outcome;
        int status;
        struct address client;
        const char *near_source; /* the one whose path resembles that of a request to no source, or NULL */
        int is_of_doctor;        /* sent by `gatepost doctor`: not among the last refusals */
        int is_proxy;            /* client is the trusted proxy, since the real client is unknown */
        const char *request_id;
        const char *detail;              /* for the operator: why; not escaped */
        const struct delivery *delivery; /* if it is stale but genuine; else NULL */
};

/* Count a refusal, against the client as well if it is the client's fault, and log it, rate-limited. */
void receiver_shared_refused(struct receiver_shared *shared, const struct receiver_refused *refused);

/*
 * Note a connection that ended, among the last refusals, if it was closed before a request: that may have
 * been a delivery. reason is why its TLS handshake failed; NULL if it did not, or if the client sent nothing.
 */
void receiver_shared_closed(const struct receiver_shared *shared, enum http_end end, const char *reason,
                            const struct address *client);

/* A genuine delivery has come through a proxy that is no trusted_proxy: note it, and log the first one. */
void receiver_shared_note_proxy(struct receiver_shared *shared, const struct address *proxy);

/**
 * receiver_shared_take_stale_budget(shared, bytes, now_us):
 * Whether to spend time on hashing a body for a delivery that is refused as stale anyway: up to 8 MiB a
 * second in this process, with 1 KiB added per delivery. Counts the bytes if so.
 */
int receiver_shared_take_stale_budget(struct receiver_shared *shared, uint64_t bytes, int64_t now_us);

/* replay_begin() and replay_end() for any thread. Without a replay guard the verdict is REPLAY_NONE. */
enum replay_verdict receiver_shared_begin_append(struct receiver_shared *shared,
                                                 const struct config_source *source,
                                                 const struct delivery *delivery,
                                                 char original[DELIVERY_ID_MAX + 1]);
void receiver_shared_end_append(struct receiver_shared *shared, const char *source_name,
                                const uint8_t signature[SIGNATURE_SIZE], const char *delivery_id,
                                int may_be_stored);

#endif
