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

/* What goes with a source by its name, whatever else its configuration becomes; it is never released before the lanes. */
struct source_account {
        _Atomic(struct source_account *) next;
        char *name; /* "" for requests to no source */
        struct metrics_requests *requests;
        struct log_flood refused[OUTCOME_N];
};

/*
 * What the lanes of a receiver share: the configuration, which nobody writes, counters, and the memory of signatures
 * behind its mutex.
 */
struct receiver_shared {
        struct current *current;
        const struct config *config; /* the first: what takes a restart is in it */
        const char *bootstrap;       /* NULL: the configured one */
        struct metrics *metrics;
        const struct probe *probe;
        struct tls *tls; /* NULL: without */

        atomic_int may_append;                  /* the topic has been found right */
        atomic_int_fast64_t reachable_since_ms; /* monotonic; 0: Kafka does not answer */
        int64_t hold_until_ms; /* monotonic: until then a lane accepts only once it can append; 0: at once */
        atomic_uint_fast64_t max_connections; /* of all lanes */
        struct clients *clients;              /* what each address has open, and was refused */
        struct memory_budget
            *budget; /* for bodies, until their deliveries are answered and Kafka has reported on them */
        atomic_int_fast64_t
            failed_ms; /* monotonic time of the last failed append, 0 when one has succeeded since */

        pthread_mutex_t replay_mutex;
        struct replay *replay;

        struct source_account *accounts; /* a list; the first is for none */
        struct log_flood append_failed;
        atomic_int_fast64_t stale_until_us; /* monotonic: see receiver_shared_may_check_stale() */
};

/* current, metrics and probe outlive it. */
struct receiver_shared *receiver_shared_new(struct current *current, const char *bootstrap,
                                            struct metrics *metrics, const struct probe *probe);
void receiver_shared_free(struct receiver_shared *shared);

/* Be ready for the sources and limits of a configuration, before the lanes see it. From the thread that made shared. */
void receiver_shared_renew(struct receiver_shared *shared, const struct config *config);

/* The account of a source; NULL: of none. */
struct source_account *receiver_shared_account(struct receiver_shared *shared,
                                               const struct config_source *source);

/* A refusal: what is counted and logged of it. */
struct receiver_refused {
        struct source_account *account;
        enum metrics_outcome outcome;
        int status;
        struct address client;
        int is_proxy; /* it is only the trusted proxy before the client */
        const char *request_id;
        const struct delivery *delivery; /* of a stale but genuine one; else NULL */
};

/* Count an answer, also against the client when it is the client's fault, and log it unless it is one of many. */
void receiver_shared_refused(struct receiver_shared *shared, const struct receiver_refused *refused);

/**
 * receiver_shared_may_check_stale(shared, bytes, now_us):
 * Whether there is time to hash so many bytes for a delivery that is refused as stale anyway: 8 MiB a second in this
 * process, where 1 KiB is added for each. They are counted.
 */
int receiver_shared_may_check_stale(struct receiver_shared *shared, uint64_t bytes, int64_t now_us);

/* replay_begin() and replay_end(), for any thread. Without a guard the verdict is REPLAY_NONE. */
enum replay_verdict receiver_shared_begin_append(struct receiver_shared *shared,
                                                 const struct config_source *source,
                                                 const struct delivery *delivery,
                                                 char original[DELIVERY_ID_MAX + 1]);
void receiver_shared_end_append(struct receiver_shared *shared, const char *source_name,
                                const uint8_t signature[SIGNATURE_SIZE], const char *delivery_id,
                                int may_be_stored);

#endif
