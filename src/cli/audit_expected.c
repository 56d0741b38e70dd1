#include "cli/audit_expected.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/mem.h"
#include "cli/command.h"
#include "cli/kafka_access.h"
#include "cli/test_delivery.h"
#include "dedup/dedup.h"
#include "kafka/message.h"
#include "model/judge.h"
#include "model/output.h"

/* The state that the router decides by. */
struct audit_decider {
        struct audit *audit;
        struct judge *judge;
        const struct event_rules **rules;
        struct dedup *dedup; /* of the partition that is read */
        int fell_back;       /* timestamps fell back further than the dedup window */
};

static int
digest_content(struct digest *digest, struct span key, struct span value,
               uint8_t bytes[DIGEST_FINGERPRINT_SIZE])
{
        return digest_begin(digest, "", key, value) != 0 ? -1 : digest_end(digest, bytes);
}

/* Return why a record of quarantine may be an exception: because it was released, if for no other reason. */
static enum audit_exception_reason
find_reason(const rd_kafka_message_t *message)
{
        static const char *const names[] = {
            [AUDIT_UNPUBLISHABLE] = "unpublishable", [AUDIT_UNVERIFIED] = "unverified"};
        struct span reason = message_header(message, RECORD_REASON);
        enum audit_exception_reason r = 0;

        for (; r < AUDIT_RELEASED; r++) {
                if (reason.len == strlen(names[r]) && memcmp(reason.data, names[r], reason.len) == 0)
                        break;
        }
        return r;
}

/* Note the record that a marker names as released. */
static void
add_released(struct audit *audit, const rd_kafka_message_t *message)
{
        struct release_id id;

        if (release_id_parse(message_header(message, RECORD_RELEASED), &id) != 0)
                return;
        audit->released = mem_resize(audit->released, audit->n_released + 1, sizeof(*audit->released));
        audit->released[audit->n_released++] = id;
}

static enum range_answer
on_quarantined(const rd_kafka_message_t *message, size_t index, struct error *error, void *arg)
{
        struct audit *audit = arg;
        size_t n = audit->n_exceptions;
        struct span key = {message->key, message->key_len}, value = {message->payload, message->len};
        struct audit_exception *exception;

        (void)index;
        if (message_is_marker(message)) {
                add_released(audit, message);
                return RANGE_GO_ON;
        }
        /* The array has room for 0 or a power of two. */
        if ((n & (n - 1)) == 0)
                audit->exceptions =
                    mem_resize(audit->exceptions, n == 0 ? 1 : 2 * n, sizeof(*audit->exceptions));
        exception = &audit->exceptions[n];
        exception->reason = find_reason(message);
        exception->id = (struct release_id){message->partition, message->offset};
        if (release_place_parse(message_header(message, RECORD_PARTITION),
                                message_header(message, RECORD_OFFSET), &exception->place) != 0)
                return RANGE_GO_ON;
        if (digest_content(audit->digest, key, value, exception->content) != 0 ||
            audit_work_fingerprint(audit->digest, message, exception->fingerprint) != 0) {
                (void)error_set(error, "out of memory");
                return RANGE_FAIL;
        }
        audit->n_exceptions++;
        return RANGE_GO_ON;
}

static int
compare_ids(const void *a, const void *b)
{
        return release_id_compare(a, b);
}

/* Keep the records that were released, or that are exceptions for another reason. */
static void
drop_others(struct audit *audit)
{
        size_t n = 0;

        if (audit->n_released > 0)
                qsort(audit->released, audit->n_released, sizeof(*audit->released), compare_ids);
        for (size_t i = 0; i < audit->n_exceptions; i++) {
                const struct audit_exception *exception = &audit->exceptions[i];

                if (exception->reason != AUDIT_RELEASED ||
                    (audit->n_released > 0 && bsearch(&exception->id, audit->released, audit->n_released,
                                                      sizeof(exception->id), compare_ids) != NULL))
                        audit->exceptions[n++] = *exception;
        }
        audit->n_exceptions = n;
}

static int
compare_places(const void *a, const void *b)
{
        return release_id_compare(&((const struct audit_exception *)a)->place,
                                  &((const struct audit_exception *)b)->place);
}

int
audit_expected_read_exceptions(struct audit *audit)
{
        const struct audit_plan *plan = audit->plan;
        size_t first = plan->first_range[plan->quarantine];
        size_t n = plan->first_range[plan->quarantine + 1] - first;
        enum range_result result;
        struct error error;

        kafka_access_announce("quarantine", plan->published + first, n);
        result = range_read(plan->config, plan->bootstrap, plan->published + first, n, on_quarantined, audit,
                            &error);
        if (result != RANGE_DONE)
                return kafka_access_status(result, &error);
        drop_others(audit);
        if (audit->n_exceptions > 0)
                qsort(audit->exceptions, audit->n_exceptions, sizeof(*audit->exceptions), compare_places);
        return 0;
}

/* Compare key and value with the delivery. A stub has no value, and no overlong key. Returns 0 or -1. */
static int
check_content(const struct audit *audit, const struct record *record, const struct audit_exception *exception,
              int *is_same)
{
        struct span key = record->key, value = record->body, none = {NULL, 0};
        uint8_t content[DIGEST_FINGERPRINT_SIZE];

        if (exception->reason == AUDIT_UNPUBLISHABLE) {
                value = none;
                key = key.len > OUTPUT_STUB_TEXT_MAX ? none : key;
        }
        if (digest_content(audit->digest, key, value, content) != 0)
                return -1;
        *is_same = memcmp(content, exception->content, sizeof(content)) == 0;
        return 0;
}

/* Find the exception of a delivery, or NULL. Returns 0, or -1 when OpenSSL fails. */
static int
find_exception(const struct audit *audit, const struct record *record,
               const struct audit_exception **exception)
{
        struct release_id place = {record->partition, record->offset};
        size_t low = 0, high = audit->n_exceptions;
        int is_same = 0;

        *exception = NULL;
        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (release_id_compare(&audit->exceptions[middle].place, &place) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        for (; low < audit->n_exceptions && !is_same; low++) {
                if (release_id_compare(&audit->exceptions[low].place, &place) != 0)
                        return 0;
                if (check_content(audit, record, &audit->exceptions[low], &is_same) != 0)
                        return -1;
                if (is_same)
                        *exception = &audit->exceptions[low];
        }
        return 0;
}

/* Compute the fingerprint of the record that a delivery must become. Returns 0 or -1. */
static int
fingerprint(struct digest *digest, const struct output *published, const rd_kafka_message_t *message,
            uint8_t bytes[DIGEST_FINGERPRINT_SIZE])
{
        if (digest_begin(digest, published->topic, published->key, published->value) != 0)
                return -1;
        if (published->keeps_headers && message_digest_headers(message, digest) != 0)
                return -1;
        for (size_t i = 0; i < published->n_headers; i++) {
                if (digest_header(digest, published->headers[i].name, published->headers[i].value) != 0)
                        return -1;
        }
        return digest_end(digest, bytes);
}

/* Count a delivery, in the first pass. */
static void
count_delivery(struct audit *audit, const struct record *record, int is_judged)
{
        const struct audit_plan *plan = audit->plan;
        struct audit_deliveries *counts = &audit->result.deliveries;
        int64_t committed = plan->committed[record->partition], ms = record->timestamp_ms;

        if (ms < plan->since_ms)
                return;
        if (record->offset >= committed) {
                if (counts->n_waiting++ == 0 || ms < counts->first_waiting_ms)
                        counts->first_waiting_ms = ms;
                counts->has_no_router |= committed < 0;
        } else if (is_judged) {
                if (counts->n_checked++ == 0 || ms < counts->first_checked_ms)
                        counts->first_checked_ms = ms;
                if (ms > counts->last_checked_ms)
                        counts->last_checked_ms = ms;
        } else {
                if (counts->n_unchecked++ == 0 || ms > counts->last_unchecked_ms)
                        counts->last_unchecked_ms = ms;
        }
}

static int
add_expected(struct audit *audit, const struct record *record, const struct verdict *verdict,
             const rd_kafka_message_t *message)
{
        const struct audit_plan *plan = audit->plan;
        uint8_t bytes[DIGEST_FINGERPRINT_SIZE];
        struct tally_place place = {.partition = record->partition, .offset = record->offset};
        const struct audit_exception *exception;
        struct output published;
        int is_required, is_first = audit->n_passes == 0;
        int is_published = output_describe(record, verdict, plan->config->quarantine_topic, &published);

        if (verdict->action == VERDICT_DROP)
                exception = NULL;
        else if (find_exception(audit, record, &exception) != 0)
                return -1;
        if (!is_published && exception == NULL) {
                if (is_first)
                        count_delivery(audit, record, audit_plan_judges(plan, record));
                return 0;
        }
        place.topic = verdict->action == VERDICT_PUBLISH && exception == NULL
                          ? plan->of_rule[verdict->topic->index]
                          : plan->quarantine;
        is_required =
            audit_plan_requires(plan, record, place.topic, exception == NULL ? published.key : record->key);
        if (is_first) {
                count_delivery(audit, record, is_required);
                audit->result.topics[place.topic].n_required += (uint64_t)is_required;
                audit->result.deliveries.n_excepted += exception != NULL;
        }
        if (exception == NULL && fingerprint(audit->digest, &published, message, bytes) != 0)
                return -1;
        return tally_add(audit->tally, exception == NULL ? bytes : exception->fingerprint,
                         is_required ? TALLY_REQUIRED : TALLY_ALLOWED, &place);
}

/*
 * Decide as the router, but drop a test delivery of `gatepost doctor`, whatever the rules of its source were
 * when it was routed. A delivery that becomes an event is never taken for one, so no lost event is hidden.
 * Return 0, or -1 if memory or OpenSSL fails.
 */
static int
decide(struct audit_decider *processor, const struct record *record, struct verdict *verdict)
{
        if (judge_decide(processor->judge, processor->dedup, record, verdict) != 0)
                return -1;
        if (verdict->action != VERDICT_PUBLISH && test_delivery_recognises(record->body))
                verdict->action = VERDICT_DROP;
        return 0;
}

static enum range_answer
on_delivery(const rd_kafka_message_t *message, size_t index, struct error *error, void *arg)
{
        struct audit_decider *processor = arg;
        struct dedup *dedup = processor->dedup;
        struct verdict verdict;
        struct record record;

        (void)index;
        message_record(message, &record);
        if (!dedup_covers(dedup, record.timestamp_ms)) {
                (void)error_set(error,
                                "the timestamps of %s, partition %d, fall back at offset %" PRId64
                                ": a broker's clock was wrong, so earlier deliveries cannot be judged",
                                rd_kafka_topic_name(message->rkt), message->partition, message->offset);
                processor->fell_back = 1;
                return RANGE_FAIL;
        }
        if (decide(processor, &record, &verdict) != 0 ||
            add_expected(processor->audit, &record, &verdict, message) != 0) {
                (void)error_set_openssl(error, "the record cannot be evaluated");
                return RANGE_FAIL;
        }
        dedup_expire(dedup, record.timestamp_ms);
        return RANGE_GO_ON;
}

static int
open_decider(struct audit_decider *processor, struct audit *audit)
{
        const struct config *config = audit->plan->config;

        processor->audit = audit;
        processor->rules = mem_alloc(config->n_sources * sizeof(*processor->rules));
        for (size_t i = 0; i < config->n_sources; i++)
                processor->rules[i] = &config->sources[i].rules;
        processor->judge = judge_new(processor->rules, config->n_sources, config->topics, NULL);
        return processor->judge == NULL ? -1 : 0;
}

static void
close_decider(struct audit_decider *processor)
{
        judge_free(processor->judge);
        free(processor->rules);
}

/* Read a partition of `deliveries`. Returns as range_read(). */
static enum range_result
read_partition(struct audit_decider *processor, struct range *partition, struct error *error)
{
        const struct audit_plan *plan = processor->audit->plan;
        enum range_result result;

        processor->dedup = dedup_new(plan->config->dedup_window_ms, DEDUP_COMPLETE);
        if (processor->dedup == NULL) {
                (void)error_set(error, "out of memory");
                return RANGE_FAILED;
        }
        result = range_read(plan->config, plan->bootstrap, partition, 1, on_delivery, processor, error);
        dedup_free(processor->dedup);
        return result;
}

/* One partition after the other: a dedup table takes more memory than all else. */
int
audit_expected_read(struct audit *audit)
{
        const struct audit_plan *plan = audit->plan;
        enum range_result result = RANGE_DONE;
        struct audit_decider processor = {0};
        struct error error;

        kafka_access_announce("deliveries", plan->deliveries, plan->n_deliveries);
        if (open_decider(&processor, audit) != 0) {
                (void)error_set_openssl(&error, "records cannot be evaluated");
                result = RANGE_FAILED;
        }
        for (size_t p = 0; p < plan->n_deliveries && result == RANGE_DONE; p++)
                result = read_partition(&processor, &plan->deliveries[p], &error);
        close_decider(&processor);
        if (processor.fell_back)
                return command_fail(EX_DATAERR, "%s", error.text);
        return kafka_access_status(result, &error);
}
