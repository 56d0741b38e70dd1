#include "kafka/probe.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/process.h"
#include "kafka/client.h"
#include "kafka/client_error.h"
#include "kafka/outage.h"
#include "kafka/topics_check.h"
#include "kafka/topics_watch.h"

#define TIMEOUT_MS 5000
#define SOCKET_TIMEOUT_MS "4000" /* shorter, so that another broker is tried when one hangs */
#define INTERVAL_S 5
#define WATCH_MS 30000 /* between comparisons of the topics with the requirements */
#define MAX_ASKED 2    /* brokers, until one answers */

struct probe {
        const struct config *config;
        rd_kafka_t *client;
        void (*changed)(void *arg);
        void *arg;
        _Atomic enum probe_state state;
        atomic_int verified;
        atomic_int_fast64_t asked_ms; /* monotonic: when the last answered query was sent; 0: none yet */
        int n_refusals;               /* looks that found a fatal problem with a topic */
        int n_missed;                 /* consecutive answers without `deliveries` */
        struct topics_watch *watch;
        int64_t watched_ms;         /* monotonic; 0: not yet */
        atomic_int n_misconfigured; /* topics */
        pthread_t thread;
        struct brokers brokers;
        char refusal[PROBE_REASON_SIZE]; /* the first fatal problem of the last look, if there was one */
        pthread_mutex_t mutex;           /* protects brokers, refusal and stopping */
        pthread_cond_t wake;
        int stopping;
};

/* Check topics, and note the first reason not to use them. Return whether there is one. */
static int
check_all(struct probe *probe, const struct topic_need *needs, const struct topic_state *states, size_t n,
          int is_logged)
{
        int is_routed = (probe->config->roles & CONFIG_ROUTER) != 0;
        struct findings findings = {0};
        const struct finding *first;

        for (size_t i = 0; i < n; i++)
                topics_check(probe->config, &needs[i], &states[i], is_routed, &findings, NULL);
        for (size_t i = 0; i < findings.n && is_logged; i++)
                topics_check_log(&findings.items[i]);
        first = findings_first(&findings, FINDING_ERROR);
        pthread_mutex_lock(&probe->mutex);
        probe->refusal[0] = '\0';
        if (first != NULL)
                (void)snprintf(probe->refusal, sizeof(probe->refusal), "topic %.249s: %s", first->subject,
                               first->text);
        pthread_mutex_unlock(&probe->mutex);
        findings_clear(&findings);
        return first != NULL;
}

/*
 * Check the topics. Returns the resulting state, or PROBE_STARTING with the reason when Kafka did not answer.
 * A new topic may not be known to every broker yet: only the second look in a row refuses.
 */
static enum probe_state
verify(struct probe *probe, struct error *error)
{
        size_t n;
        struct topic_need *needs = topics_needed(probe->config, &n);
        struct topic_state *states = mem_alloc(n * sizeof(*states));
        enum probe_state state = PROBE_STARTING;

        error->text[0] = '\0';
        if (!(probe->config->roles & CONFIG_ROUTER))
                n = 1; /* a receiver uses only the first topic, `deliveries` */
        if (topics_describe(probe->client, needs, n, states, TIMEOUT_MS, error) == 0) {
                if (!check_all(probe, needs, states, n, 0))
                        state = PROBE_REACHABLE;
                else if (probe->n_refusals++ > 0)
                        state = PROBE_REFUSED;
                if (state != PROBE_STARTING)
                        (void)check_all(probe, needs, states, n, 1);
        }
        free(states);
        free(needs);
        return state;
}

/* Note how long a broker took to answer. */
static void
note_round_trip(struct probe *probe, const char *broker, int64_t took_us)
{
        pthread_mutex_lock(&probe->mutex);
        for (size_t i = 0; i < probe->brokers.n; i++) {
                if (strcmp(probe->brokers.items[i].name, broker) == 0)
                        probe->brokers.items[i].rtt_us = took_us > 0 ? (uint64_t)took_us : 1;
        }
        pthread_mutex_unlock(&probe->mutex);
}

/*
 * Query one broker, which librdkafka chooses. Measure how long it takes, unless the query may have waited for
 * a connection first.
 */
static rd_kafka_resp_err_t
ask_one(struct probe *probe, rd_kafka_resp_err_t *topic_err)
{
        char broker[STATISTICS_NAME_SIZE];
        int64_t began_us = clock_monotonic_us();
        rd_kafka_resp_err_t err =
            client_ask_topic(probe->client, probe->config->deliveries_topic, TIMEOUT_MS, topic_err, broker);

        if (err == RD_KAFKA_RESP_ERR_NO_ERROR && atomic_load(&probe->state) == PROBE_REACHABLE)
                note_round_trip(probe, broker, clock_monotonic_us() - began_us);
        return err;
}

/*
 * Query the verified topic `deliveries`. Returns the resulting state. A broker that has just started may know
 * less than the others: only two answers in a row mean that the topic is gone.
 */
static enum probe_state
ask(struct probe *probe, struct error *error)
{
        rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR__TIMED_OUT, topic_err = RD_KAFKA_RESP_ERR_NO_ERROR;

        /* librdkafka queries one broker. If it hangs, others may answer. */
        for (int i = 0; i < MAX_ASKED && err == RD_KAFKA_RESP_ERR__TIMED_OUT; i++)
                err = ask_one(probe, &topic_err);
        if (err != RD_KAFKA_RESP_ERR_NO_ERROR) {
                (void)error_set(error, "%s", rd_kafka_err2str(err));
                return atomic_load(&probe->verified) ? PROBE_AWAY : PROBE_STARTING;
        }
        probe->n_missed = topic_err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ? probe->n_missed + 1 : 0;
        return probe->n_missed > 1 ? PROBE_GONE : PROBE_REACHABLE;
}

static enum probe_state
look(struct probe *probe)
{
        int64_t asked_ms = clock_monotonic_ms();
        struct error error;
        enum probe_state state;

        error.text[0] = '\0';
        if (atomic_load(&probe->verified) || probe->config->embedded)
                state = ask(probe, &error);
        else
                state = verify(probe, &error);
        (void)rd_kafka_poll(probe->client, 0);
        if (state == PROBE_REACHABLE) {
                atomic_store(&probe->asked_ms, asked_ms);
                outage_end();
                atomic_store(&probe->verified, 1);
        } else if (state != PROBE_REFUSED && error.text[0] != '\0') {
                outage_note(error.text);
        }
        return state;
}

/* Called while the client is polled, by the probe's thread. */
static int
on_statistics(rd_kafka_t *client, char *json, size_t len, void *opaque)
{
        struct probe *probe = opaque;
        struct statistics statistics;

        (void)client;
        if (statistics_read(&statistics, json, len) == 0) {
                pthread_mutex_lock(&probe->mutex);
                statistics_keep_rtt(&statistics.brokers, &probe->brokers);
                probe->brokers = statistics.brokers;
                pthread_mutex_unlock(&probe->mutex);
        }
        return 0; /* librdkafka frees the text */
}

/*
 * While one broker is up, an error of another one does not mean an outage; metrics show it. Nor does the
 * event that all are down: look() notes the outage, when the last failure of a connection is known.
 */
static void
on_error(rd_kafka_t *client, int code, const char *reason, void *opaque)
{
        const struct probe *probe = opaque;
        size_t i = 0;

        while (i < probe->brokers.n && !probe->brokers.items[i].is_up)
                i++;
        if (i == probe->brokers.n && code != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
                client_error_log(client, code, reason);
}

static void
set_callbacks(rd_kafka_conf_t *conf)
{
        rd_kafka_conf_set_error_cb(conf, on_error);
        rd_kafka_conf_set_stats_cb(conf, on_statistics);
}

/* Connect to all brokers, so that problems are known before other clients meet them. */
static rd_kafka_t *
open_client(const struct config *config, const char *bootstrap, struct probe *probe, struct error *error)
{
        static const struct client_property properties[] = {{"enable.sparse.connections", "false", 1},
                                                            {"socket.timeout.ms", SOCKET_TIMEOUT_MS, 1},
                                                            {"statistics.interval.ms", "2000", 0},
                                                            {NULL, NULL, 0}};

        return client_new(RD_KAFKA_PRODUCER, config, bootstrap, properties, set_callbacks, probe, error);
}

/*
 * Sleep until the next look, which comes sooner while Kafka has never answered. Returns whether to stop
 * instead.
 */
static int
pause_or_stop(struct probe *probe)
{
        struct timespec until;
        int stopping;

        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += atomic_load(&probe->verified) ? INTERVAL_S : 1;
        pthread_mutex_lock(&probe->mutex);
        if (!probe->stopping)
                (void)pthread_cond_clockwait(&probe->wake, &probe->mutex, CLOCK_MONOTONIC, &until);
        stopping = probe->stopping;
        pthread_mutex_unlock(&probe->mutex);
        return stopping;
}

/* Compare the topics with the requirements from time to time. That changes no state: the daemon runs on. */
static void
watch_topics(struct probe *probe)
{
        int64_t now_ms = clock_monotonic_ms();
        int n;

        if (probe->config->embedded || (probe->watched_ms != 0 && now_ms - probe->watched_ms < WATCH_MS))
                return;
        probe->watched_ms = now_ms;
        n = topics_watch_look(probe->watch, probe->client, TIMEOUT_MS);
        if (n >= 0)
                atomic_store(&probe->n_misconfigured, n);
}

static void *
run(void *arg)
{
        struct probe *probe = arg;

        do {
                enum probe_state state = look(probe);

                if (atomic_exchange(&probe->state, state) != state)
                        probe->changed(probe->arg);
                if (state == PROBE_REACHABLE)
                        watch_topics(probe);
        } while (!pause_or_stop(probe));
        return NULL;
}

struct probe *
probe_new(const struct config *config, const char *bootstrap, void (*changed)(void *arg), void *arg,
          struct error *error)
{
        struct probe *probe = mem_alloc(sizeof(*probe));

        probe->config = config;
        probe->changed = changed;
        probe->arg = arg;
        pthread_mutex_init(&probe->mutex, NULL);
        pthread_cond_init(&probe->wake, NULL);
        probe->watch = topics_watch_new(config);
        probe->client = open_client(config, bootstrap, probe, error);
        if (probe->client == NULL || pthread_create(&probe->thread, NULL, run, probe) != 0) {
                if (probe->client != NULL)
                        rd_kafka_destroy(probe->client);
                topics_watch_free(probe->watch);
                free(probe);
                return NULL;
        }
        return probe;
}

void
probe_free(struct probe *probe)
{
        if (probe == NULL)
                return;
        pthread_mutex_lock(&probe->mutex);
        probe->stopping = 1;
        pthread_cond_signal(&probe->wake);
        pthread_mutex_unlock(&probe->mutex);
        process_join(probe->thread, "probe");
        topics_watch_free(probe->watch);
        if (client_destroy(probe->client) == 0)
                free(probe);
}

enum probe_state
probe_state(const struct probe *probe)
{
        return atomic_load(&probe->state);
}

int64_t
probe_asked_ms(const struct probe *probe)
{
        return atomic_load(&probe->asked_ms);
}

/* Write why the topics are not verified: one is not as it must be, or Kafka does not answer. */
static void
describe_start(struct probe *probe, char reason[PROBE_REASON_SIZE])
{
        char cause[OUTAGE_CAUSE_SIZE];
        int64_t since_s;

        pthread_mutex_lock(&probe->mutex);
        (void)snprintf(reason, PROBE_REASON_SIZE, "%s", probe->refusal);
        pthread_mutex_unlock(&probe->mutex);
        if (reason[0] == '\0')
                (void)outage_describe(outage_read(cause, &since_s) ? "Kafka is not reachable"
                                                                   : "Kafka has not answered yet",
                                      reason, PROBE_REASON_SIZE);
}

int
probe_reason(struct probe *probe, char reason[PROBE_REASON_SIZE])
{
        switch (probe_state(probe)) {
        case PROBE_STARTING:
        case PROBE_REFUSED:
                describe_start(probe, reason);
                return 1;
        case PROBE_AWAY:
                (void)outage_describe("Kafka is not reachable", reason, PROBE_REASON_SIZE);
                return 1;
        case PROBE_GONE:
                (void)snprintf(reason, PROBE_REASON_SIZE,
                               "the topic of deliveries has been deleted; see gatepost-guide(7), DISASTERS");
                return 1;
        case PROBE_REACHABLE:
                break;
        }
        return 0;
}

int
probe_has_verified(const struct probe *probe)
{
        return atomic_load(&probe->verified);
}

int
probe_n_misconfigured(const struct probe *probe)
{
        return atomic_load(&probe->n_misconfigured);
}

int
probe_check_new_topics(struct probe *probe, const struct config *before, const struct config *next,
                       const atomic_int *cancelled, struct error *error)
{
        return probe->config->embedded ? 0 : topics_check_new(probe->client, before, next, cancelled, error);
}

void
probe_brokers(struct probe *probe, struct brokers *brokers)
{
        pthread_mutex_lock(&probe->mutex);
        *brokers = probe->brokers;
        pthread_mutex_unlock(&probe->mutex);
}
