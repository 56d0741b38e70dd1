#include "cli/audit_work.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kafka/message.h"
#include "model/judge.h"
#include "model/output.h"

const char *
audit_exception_name(enum audit_exception_reason reason)
{
        return reason == AUDIT_UNPUBLISHABLE ? judge_reason_name(QUARANTINE_UNPUBLISHABLE) : "unverified";
}

static int
digest_content(struct digest *digest, struct span key, struct span value,
               uint8_t bytes[DIGEST_FINGERPRINT_SIZE])
{
        return digest_begin(digest, "", key, value) != 0 ? -1 : digest_end(digest, bytes);
}

/* The number of a record's reason; AUDIT_N_EXCEPTIONS when it is none of these. */
static size_t
find_reason(const rd_kafka_message_t *message)
{
        struct span reason = message_header(message, RECORD_REASON);

        for (size_t r = 0; r < AUDIT_N_EXCEPTIONS; r++) {
                const char *name = audit_exception_name((enum audit_exception_reason)r);

                if (reason.len == strlen(name) && memcmp(reason.data, name, reason.len) == 0)
                        return r;
        }
        return AUDIT_N_EXCEPTIONS;
}

static enum range_answer
on_quarantined(const rd_kafka_message_t *message, size_t index, struct error *error, void *arg)
{
        struct audit *audit = arg;
        size_t reason = find_reason(message), n = audit->n_exceptions;
        struct span key = {message->key, message->key_len}, value = {message->payload, message->len};
        struct audit_exception *exception;

        (void)index;
        progress_step(&audit->progress);
        if (reason == AUDIT_N_EXCEPTIONS)
                return RANGE_GO_ON;
        if ((n & (n - 1)) == 0) /* full: the room is 0, or a power of two */
                audit->exceptions =
                    mem_resize(audit->exceptions, n == 0 ? 1 : 2 * n, sizeof(*audit->exceptions));
        exception = &audit->exceptions[n];
        exception->reason = (enum audit_exception_reason)reason;
        if (release_place_parse(message_header(message, RECORD_PARTITION),
                                message_header(message, RECORD_OFFSET), &exception->place) != 0)
                return RANGE_GO_ON;
        if (digest_content(audit->digest, key, value, exception->content) != 0 ||
            audit_fingerprint(audit->digest, message, exception->fingerprint) != 0) {
                (void)error_set(error, "out of memory");
                return RANGE_FAIL;
        }
        audit->n_exceptions++;
        return RANGE_GO_ON;
}

static int
compare(const void *a, const void *b)
{
        return release_id_compare(&((const struct audit_exception *)a)->place,
                                  &((const struct audit_exception *)b)->place);
}

int
audit_exceptions(struct audit *audit)
{
        const struct audit_plan *plan = audit->plan;
        size_t first = plan->first_range[plan->quarantine];
        size_t n = plan->first_range[plan->quarantine + 1] - first;
        enum range_result result;
        struct error error;

        audit_progress_begin(audit, "quarantine", plan->published + first, n);
        result = range_read(plan->config, plan->bootstrap, plan->published + first, n, on_quarantined, audit,
                            &error);
        progress_end(&audit->progress);
        if (result != RANGE_DONE)
                return audit_plan_failed(result, &error);
        if (audit->n_exceptions > 0)
                qsort(audit->exceptions, audit->n_exceptions, sizeof(*audit->exceptions), compare);
        return 0;
}

/* Whether the record of quarantine has the delivery's key and value. A stub has no value, and no key that is too long. */
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

int
audit_find_exception(const struct audit *audit, const struct record *record,
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
