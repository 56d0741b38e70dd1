#include "cli/audit_work.h"

#include <stdlib.h>

#include "base/mem.h"
#include "cli/kafka_access.h"
#include "kafka/message.h"

#define BUCKET_BITS 20       /* of 32 bytes each: 32 MiB */
#define MAX_ENTRIES 1000000u /* of 64 bytes each: 64 MB */

struct audit *
audit_work_new(const struct audit_plan *plan, struct error *error)
{
        struct audit *audit = mem_alloc(sizeof(*audit));

        audit->plan = plan;
        audit->result = (struct audit_result){
            .config = plan->config,
            .names = plan->topics,
            .topics = mem_alloc(plan->n_topics * sizeof(*audit->result.topics)),
            .n_topics = plan->n_topics,
            .deliveries.n_deleted = plan->n_deleted,
            .has_since = plan->since_ms != AUDIT_FROM_BEGINNING,
            .slack_ms = plan->slack_ms,
        };
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
        free(audit->result.topics);
        free(audit);
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
