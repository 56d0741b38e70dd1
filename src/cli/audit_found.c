#include "cli/audit_found.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/kafka_access.h"
#include "cli/test_delivery.h"
#include "kafka/message.h"
#include "model/release.h"

struct audit_reading {
        struct audit *audit;
        int64_t *newest_ms; /* newest timestamp of each range so far */
        int64_t now_ms;
};

/*
 * Return the earliest time at which a record can have been published: not before the records that precede it.
 * Otherwise a forged record could claim to be too old to be checked. Future timestamps are ignored.
 */
static int64_t
published_at(const struct audit_reading *reading, const rd_kafka_message_t *message, size_t index)
{
        rd_kafka_timestamp_type_t type;
        int64_t timestamp_ms = rd_kafka_message_timestamp(message, &type);

        if (timestamp_ms > reading->newest_ms[index] && timestamp_ms <= reading->now_ms)
                reading->newest_ms[index] = timestamp_ms;
        return timestamp_ms > reading->newest_ms[index] ? timestamp_ms : reading->newest_ms[index];
}

static enum range_answer
on_published(const rd_kafka_message_t *message, size_t index, struct error *error, void *arg)
{
        const struct audit_reading *reading = arg;
        struct audit *audit = reading->audit;
        struct tally_place place = {audit->plan->topic_of[index], message->partition, message->offset};
        uint8_t bytes[DIGEST_FINGERPRINT_SIZE];
        enum audit_use use;

        if (place.topic == audit->plan->quarantine && message_is_marker(message))
                return RANGE_GO_ON;
        use = audit_plan_use(audit->plan, message, place.topic, published_at(reading, message, index));
        /* A router without the source or the secret of a test delivery quarantined it. */
        if (place.topic == audit->plan->quarantine &&
            test_delivery_recognises((struct span){message->payload, message->len}))
                return RANGE_GO_ON;
        if (audit->n_passes == 0 && use == AUDIT_COUNT_ONLY)
                audit->result.topics[place.topic].n_older++;
        if (use != AUDIT_COMPARE)
                return RANGE_GO_ON;
        if (audit_work_fingerprint(audit->digest, message, bytes) != 0 ||
            tally_add(audit->tally, bytes, TALLY_FOUND, &place) != 0) {
                (void)error_set_openssl(error, "cannot compare the record");
                return RANGE_FAIL;
        }
        return RANGE_GO_ON;
}

int
audit_found_read(struct audit *audit)
{
        const struct audit_plan *plan = audit->plan;
        struct audit_reading reading = {.audit = audit, .now_ms = clock_now_ms()};
        enum range_result result;
        struct error error;

        reading.newest_ms = mem_alloc(plan->n_published * sizeof(*reading.newest_ms));
        kafka_access_announce("published records", plan->published, plan->n_published);
        result = range_read(plan->config, plan->bootstrap, plan->published, plan->n_published, on_published,
                            &reading, &error);
        free(reading.newest_ms);
        return kafka_access_status(result, &error);
}

/* Take the delivery-id of a record of any topic. */
static enum range_answer
on_example(const rd_kafka_message_t *message, size_t index, struct error *error, void *arg)
{
        struct audit_example *example = arg;
        struct span id = release_delivery_id(message_header(message, "ce_id"));

        (void)index;
        (void)error;
        if (id.len == 0)
                id = (struct span){message->key, message->key_len};
        if (id.len >= sizeof(example->delivery_id))
                id.len = sizeof(example->delivery_id) - 1;
        /* It may be a foreign record: keep control characters from the terminal. */
        for (size_t i = 0; i < id.len; i++)
                example->delivery_id[i] = (char)(id.data[i] > 0x20 && id.data[i] < 0x7f ? id.data[i] : '?');
        return RANGE_ENOUGH;
}

void
audit_found_identify_examples(struct audit *audit)
{
        for (size_t i = 0; i < audit->result.n_examples; i++) {
                struct audit_example *example = &audit->result.examples[i];
                const struct tally_place *place = &example->finding.place;
                struct range range = {.topic = audit_result_topic(&audit->result, &example->finding),
                                      .partition = place->partition,
                                      .from = place->offset,
                                      .to = place->offset + 1};
                struct error error;

                if (range_read(audit->plan->config, audit->plan->bootstrap, &range, 1, on_example, example,
                               &error) != RANGE_DONE)
                        return;
        }
}
