#include "cli/quarantine_append.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/command.h"
#include "cli/kafka_access.h"
#include "cli/terminal.h"
#include "kafka/message.h"
#include "kafka/producer.h"
#include "model/judge.h"
#include "model/release.h"
#include "model/reverification.h"

#define POLL_MS 200

/* After that, the first record waits for the connections that are missing. */
#define CONNECT_TIMEOUT_MS 2000

/* Bytes of bodies appended but not acknowledged. */
#define MAX_UNACKNOWLEDGED (4 << 20)

struct append_work {
        struct quarantine_append *append;
        struct producer *producer; /* NULL in a dry run */
        int wake[2];
        size_t unacknowledged; /* bytes of bodies */
        int is_denied;         /* the account may not write to the topic */
        struct terminal_progress progress;
        /* The releases whose bodies are being read, sorted by the places of these. */
        struct quarantine_release **sought;
        size_t n_sought;
        /* The router's decision, to predict what it will do. */
        const struct event_rules **rules;
        struct judge *judge;
        struct dedup *dedup;
};

/* The headers that a release has in addition to those it keeps of its record. */
struct release_headers {
        char released[RELEASE_ID_SIZE];
        char signature[RELEASE_SIGNATURE_SIZE]; /* empty: its source is not configured */
};

static void
settle(struct append_work *work, struct quarantine_release *release, enum release_outcome outcome,
       const char *reason)
{
        const struct quarantine_append *append = work->append;

        release->outcome = outcome;
        if (reason != NULL)
                release->reason = mem_strdup(reason);
        terminal_progress_step(&work->progress);
        if (append->report != NULL)
                append->report(release, append->quarantine->config);
}

static void
on_report(void *record_arg, const struct producer_outcome *outcome, void *arg)
{
        const char *reason = outcome->failure;
        struct quarantine_release *release = record_arg;
        struct append_work *work = arg;

        work->unacknowledged -= release->len;
        if (reason == NULL)
                settle(work, release, RELEASE_ACKNOWLEDGED, NULL);
        else
                settle(work, release, RELEASE_FAILED, reason);
        if (reason != NULL &&
            strcmp(reason, rd_kafka_err2str(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED)) == 0)
                work->is_denied = 1;
}

/* Wait for acks for a moment, and process them. */
static void
wait_for_acks(struct append_work *work)
{
        struct pollfd wake = {.fd = work->wake[0], .events = POLLIN};
        char bytes[64];

        if (poll(&wake, 1, POLL_MS) > 0) {
                while (read(work->wake[0], bytes, sizeof(bytes)) > 0)
                        ;
        }
        producer_serve(work->producer);
        (void)fflush(stdout);
}

/* Fill record with the release as the router will read it. */
static void
describe(const rd_kafka_message_t *message, const struct release_headers *headers, struct record *record)
{
        message_record(message, record);
        record->timestamp_ms = clock_now_ms();
        record->released = (struct span){headers->released, strlen(headers->released)};
        record->release_signature = (struct span){headers->signature, strlen(headers->signature)};
        record->replay_of = (struct span){NULL, 0};
}

/* Make the headers of a release. Returns 0, or -1 when memory or OpenSSL fails. */
static int
sign(const struct config *config, const rd_kafka_message_t *message, const struct release_id *id,
     struct release_headers *headers)
{
        const struct config_source *source;
        struct record record;

        (void)release_id_format(id, headers->released);
        headers->signature[0] = '\0';
        describe(message, headers, &record);
        source = config_find_source(config, record.source.data, record.source.len);
        if (source == NULL || record.key.len > JUDGE_TEXT_MAX)
                return 0;
        return reverification_sign_release(source->keys[0], &record, clock_now_ms() / 1000,
                                           headers->signature);
}

/* Predict what the router will do with a release. Returns 0, or -1 when memory or OpenSSL fails. */
static int
predict(const struct append_work *work, const rd_kafka_message_t *message,
        const struct release_headers *headers, struct quarantine_release *release)
{
        struct verdict verdict;
        struct record record;

        describe(message, headers, &record);
        /* Each release has an identity of its own, so none is a duplicate. */
        if (judge_decide(work->judge, work->dedup, &record, &verdict) != 0)
                return -1;
        if (verdict.action == VERDICT_PUBLISH) {
                release->topic = verdict.topic->topic;
        } else if (verdict.action == VERDICT_QUARANTINE) {
                release->quarantine_reason = judge_reason_name(verdict.reason);
                release->quarantine_detail = mem_strdup(verdict.detail);
        }
        return 0;
}

static rd_kafka_headers_t *
make_headers(const rd_kafka_message_t *message, const struct release_headers *added)
{
        rd_kafka_headers_t *original, *result = rd_kafka_headers_new(16);
        const char *name;
        const void *value;
        size_t len;

        if (rd_kafka_message_headers(message, &original) == RD_KAFKA_RESP_ERR_NO_ERROR) {
                for (size_t i = 0; rd_kafka_header_get_all(original, i, &name, &value, &len) == 0; i++) {
                        if (release_keeps_header(name))
                                (void)rd_kafka_header_add(result, name, -1, value,
                                                          value == NULL ? -1 : (ssize_t)len);
                }
        }
        (void)rd_kafka_header_add(result, RECORD_RELEASED, -1, added->released, -1);
        if (added->signature[0] != '\0')
                (void)rd_kafka_header_add(result, RECORD_RELEASE_SIGNATURE, -1, added->signature, -1);
        return result;
}

/* Append a release; first wait while too many bytes are unacknowledged. */
static void
append_release(struct append_work *work, const rd_kafka_message_t *message,
               const struct release_headers *headers, struct quarantine_release *release)
{
        struct producer_record record = {
            .key = {message->key, message->key_len},
            .body = message->len == 0 ? NULL : mem_alloc(message->len),
            .body_len = message->len,
            .arg = release,
        };
        struct error error;

        if (record.body != NULL)
                memcpy(record.body, message->payload, message->len);
        while (work->unacknowledged >= MAX_UNACKNOWLEDGED)
                wait_for_acks(work);
        while (record.headers = make_headers(message, headers),
               producer_append(work->producer, &record, &error) != 0) {
                struct error broken;

                if (producer_outstanding(work->producer) == 0 ||
                    producer_is_broken(work->producer, &broken)) {
                        free(record.body);
                        settle(work, release, RELEASE_FAILED, error.text);
                        return;
                }
                wait_for_acks(work);
        }
        release->len = message->len;
        work->unacknowledged += message->len;
        producer_serve(work->producer);
}

static int
compare_places(const void *a, const void *b)
{
        const struct quarantine_release *one = *(struct quarantine_release *const *)a,
                                        *other = *(struct quarantine_release *const *)b;

        return release_id_compare(quarantine_body_place(one->record), quarantine_body_place(other->record));
}

/* Return the index of the first release whose body is at a place or after it. */
static size_t
find_first(const struct append_work *work, const struct release_id *place)
{
        size_t low = 0, high = work->n_sought;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (release_id_compare(quarantine_body_place(work->sought[middle]->record), place) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* Release a record, whose body and headers are those of a message. Returns 0, or -1 with the reason. */
static int
release_record(struct append_work *work, const rd_kafka_message_t *message,
               struct quarantine_release *release, struct error *error)
{
        const struct config *config = work->append->quarantine->config;
        struct release_headers headers;
        char reason[256];

        if (message->len > config->max_body) {
                (void)snprintf(reason, sizeof(reason),
                               "its body has %zu bytes, but max_body in [receiver] of this configuration is "
                               "%zu: raise it, or use the receiver's configuration",
                               message->len, config->max_body);
                settle(work, release, RELEASE_REFUSED, reason);
                return 0;
        }
        if (sign(config, message, &release->record->id, &headers) != 0 ||
            predict(work, message, &headers, release) != 0)
                return error_set_openssl(error, "the record cannot be evaluated");
        if (work->producer == NULL)
                settle(work, release, RELEASE_POSSIBLE, NULL);
        else
                append_release(work, message, &headers, release);
        return 0;
}

static enum range_answer
on_record(const rd_kafka_message_t *message, size_t index, struct error *error, void *arg)
{
        struct append_work *work = arg;
        struct release_id place = {message->partition, message->offset};

        (void)index;
        for (size_t i = find_first(work, &place);
             i < work->n_sought &&
             release_id_compare(quarantine_body_place(work->sought[i]->record), &place) == 0;
             i++) {
                if (release_record(work, message, work->sought[i], error) != 0)
                        return RANGE_FAIL;
        }
        return RANGE_GO_ON;
}

/* Return for each partition the range from the first sought body to the last. */
static struct range *
make_ranges(const struct append_work *work, size_t *n)
{
        const struct quarantine *quarantine = work->append->quarantine;
        const char *topic = quarantine_body_topic(quarantine, work->sought[0]->record);
        struct range *ranges;

        *n = (size_t)quarantine_body_place(work->sought[work->n_sought - 1]->record)->partition + 1;
        ranges = mem_alloc(*n * sizeof(*ranges));
        for (size_t p = 0; p < *n; p++)
                ranges[p] = (struct range){.topic = topic, .partition = (int32_t)p};
        for (size_t i = 0; i < work->n_sought; i++) {
                const struct release_id *place = quarantine_body_place(work->sought[i]->record);
                struct range *range = &ranges[place->partition];

                if (range->to == 0)
                        range->from = place->offset;
                range->to = place->offset + 1;
        }
        return ranges;
}

/* Append the pending records whose bodies are in quarantine, or those that are stubs. */
static enum range_result
append_kind(struct append_work *work, int are_stubs, struct error *error)
{
        struct quarantine_append *append = work->append;
        const struct quarantine *quarantine = append->quarantine;
        enum range_result result = RANGE_DONE;
        struct range *ranges;
        size_t n;

        work->sought = mem_alloc(append->n * sizeof(*work->sought));
        work->n_sought = 0;
        for (size_t i = 0; i < append->n; i++) {
                if (append->releases[i].outcome == RELEASE_PENDING &&
                    !append->releases[i].record->is_stub == !are_stubs)
                        work->sought[work->n_sought++] = &append->releases[i];
        }
        if (work->n_sought > 0) {
                qsort(work->sought, work->n_sought, sizeof(*work->sought), compare_places);
                ranges = make_ranges(work, &n);
                result = range_read(quarantine->config, quarantine->query->bootstrap, ranges, n, on_record,
                                    work, error);
                free(ranges);
        }
        free(work->sought);
        return result;
}

static int
append_pending(struct append_work *work)
{
        struct quarantine_append *append = work->append;
        enum range_result result;
        struct error error;

        /* Reports on a terminal show the progress already. */
        if (append->report == NULL || !isatty(STDOUT_FILENO))
                terminal_progress_begin(&work->progress, "releasing", append->n);
        result = append_kind(work, 0, &error);
        if (result == RANGE_DONE)
                result = append_kind(work, 1, &error);
        while (work->producer != NULL && producer_outstanding(work->producer) > 0)
                wait_for_acks(work);
        if (work->producer != NULL && producer_is_denied(work->producer))
                work->is_denied = 1;
        terminal_progress_end(&work->progress);
        for (size_t i = 0; i < append->n; i++) {
                struct quarantine_release *release = &append->releases[i];

                if (release->outcome == RELEASE_PENDING)
                        settle(work, release, RELEASE_FAILED,
                               result != RANGE_DONE       ? error.text
                               : release->record->is_stub ? "its delivery was deleted"
                                                          : "the record was deleted from quarantine");
        }
        if (work->is_denied) {
                kafka_access_advise();
                return EX_NOPERM;
        }
        return kafka_access_status(result, &error);
}

static int
open_judge(struct append_work *work, const struct config *config)
{
        work->rules = mem_alloc((config->n_sources + 1) * sizeof(const struct event_rules *));
        for (size_t i = 0; i < config->n_sources; i++)
                work->rules[i] = &config->sources[i].rules;
        work->judge = judge_new(work->rules, config->n_sources, config->topics, NULL);
        work->dedup = dedup_new(config->dedup_window_ms, DEDUP_COMPLETE);
        return work->judge == NULL || work->dedup == NULL ? -1 : 0;
}

/* Returns 0, or an exit status after printing the reason. */
static int
open_work(struct append_work *work)
{
        const struct quarantine *quarantine = work->append->quarantine;
        struct error error;

        if (open_judge(work, quarantine->config) != 0)
                return command_fail(EX_OSERR, "%s",
                                    (error_set_openssl(&error, "records cannot be evaluated"), error.text));
        if (work->append->is_dry_run)
                return 0;
        if (pipe2(work->wake, O_NONBLOCK | O_CLOEXEC) != 0)
                return command_fail(EX_OSERR, "pipe: %s", strerror(errno));
        work->producer = producer_new(quarantine->config, quarantine->query->bootstrap,
                                      (struct producer_manner){PRODUCER_PROMPT, 1}, work->wake[1], on_report,
                                      work, &error);
        if (work->producer == NULL)
                return command_fail(EX_CONFIG, "%s", error.text);
        producer_connect(work->producer, CONNECT_TIMEOUT_MS);
        return 0;
}

int
quarantine_append_all(struct quarantine_append *append)
{
        struct append_work work = {.append = append, .wake = {-1, -1}};
        int status = open_work(&work);

        if (status == 0)
                status = append_pending(&work);
        producer_free(work.producer);
        judge_free(work.judge);
        dedup_free(work.dedup);
        free(work.rules);
        for (size_t i = 0; i < ARRAY_LEN(work.wake); i++) {
                if (work.wake[i] >= 0)
                        (void)close(work.wake[i]);
        }
        return status;
}
