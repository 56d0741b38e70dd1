#include "cli/audit_work.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/kafka_access.h"
#include "kafka/message.h"

#define BUCKET_BITS 20       /* of 32 bytes each: 32 MiB */
#define MAX_ENTRIES 1000000u /* of 64 bytes each: 64 MB */

/* Deliveries that wait for longer wait for a router that does not run. */
#define MAX_WAIT_MS INT64_C(300000)

struct audit *
audit_work_new(const struct audit_plan *plan, struct error *error)
{
        struct audit *audit = mem_alloc(sizeof(*audit));

        audit->plan = plan;
        audit->topics = mem_alloc(plan->n_topics * sizeof(*audit->topics));
        audit->partitions = mem_alloc(plan->n_deliveries * sizeof(*audit->partitions));
        audit->tally = tally_new(BUCKET_BITS, MAX_ENTRIES);
        audit->digest = digest_new(NULL);
        if (audit->tally != NULL && audit->digest != NULL)
                return audit;
        (void)error_set_openssl(error, "cannot compare records");
        audit_work_free(audit);
        return NULL;
}

void
audit_work_free(struct audit *audit)
{
        digest_free(audit->digest);
        tally_free(audit->tally);
        free(audit->exceptions);
        free(audit->released);
        free(audit->partitions);
        free(audit->topics);
        free(audit);
}

int
audit_work_waits(const struct audit *audit, size_t partition)
{
        const struct audit_partition *one = &audit->partitions[partition];

        return one->n_waiting > 0 && (audit->plan->committed[partition] < 0 ||
                                      clock_now_ms() - one->first_waiting_ms > MAX_WAIT_MS);
}

uint64_t
audit_work_gaps(const struct audit *audit)
{
        return kafka_access_count_offsets(audit->plan->deliveries, audit->plan->n_deliveries) -
               audit->deliveries.n_read;
}

const char *
audit_work_exception_name(enum audit_exception_reason reason)
{
        static const char *const names[] = {[AUDIT_UNPUBLISHABLE] = "unpublishable",
                                            [AUDIT_UNVERIFIED] = "unverified",
                                            [AUDIT_RELEASED] = "released"};

        return names[reason];
}

int
audit_work_fingerprint(struct digest *digest, const rd_kafka_message_t *message,
                       uint8_t bytes[DIGEST_FINGERPRINT_SIZE])
{
        if (digest_begin(digest, rd_kafka_topic_name(message->rkt),
                         (struct span){message->key, message->key_len},
                         (struct span){message->payload, message->len}) != 0 ||
            message_digest_headers(message, digest) != 0)
                return -1;
        return digest_end(digest, bytes);
}

const char *
audit_work_topic(const struct audit *audit, const struct tally_finding *finding)
{
        return finding->fault == TALLY_LOST ? audit->plan->config->deliveries_topic
                                            : audit->plan->topics[finding->place.topic];
}
