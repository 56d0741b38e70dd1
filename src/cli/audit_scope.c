#include "cli/audit_scope.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "kafka/message.h"
#include "model/release.h"

/*
 * Which deliveries and published records to compare. Retention, --since and lagging routers leave records
 * whose counterpart the audit cannot see; comparing these would cause false alarms.
 */

/* Later than any time: never too early. */
#define SIGNED_UNKNOWN INT64_MAX

/*
 * Return when a delivery, or the delivery of a record of quarantine, was signed. Returns SIGNED_UNKNOWN when
 * there is no valid time, and for a release, which keeps the time of the record that was released.
 */
static int64_t
delivery_signed_ms(const struct record *delivery)
{
        int64_t signed_s = record_signed_s(delivery);
        struct release_id released;

        return signed_s < 0 || release_id_parse(delivery->released, &released) == 0 ? SIGNED_UNKNOWN
                                                                                    : signed_s * 1000;
}

/* Likewise for the delivery of an event. */
static int64_t
event_signed_ms(const rd_kafka_message_t *message)
{
        struct span id = message_header(message, "ce_id"), time = message_header(message, "ce_time");
        int64_t signed_ms;

        if (release_delivery_id(id).len != id.len || time.len == 0 ||
            clock_parse_ms(time.data, time.len, &signed_ms) != 0)
                return SIGNED_UNKNOWN;
        return signed_ms;
}

/* Return whether a delivery signed at a time may be too old to be compared. */
static int
is_signed_too_early(const struct audit_plan *plan, size_t partition, int64_t signed_ms)
{
        int64_t from_ms = plan->from_ms[partition];

        return from_ms != AUDIT_FROM_BEGINNING && signed_ms < from_ms - plan->slack_ms;
}

/* Return whether a delivery would be recent enough to be judged in a partition. */
static int
judges(const struct audit_plan *plan, const struct record *delivery, size_t partition)
{
        return delivery->timestamp_ms >= plan->from_ms[partition] &&
               !is_signed_too_early(plan, partition, delivery_signed_ms(delivery));
}

int
audit_scope_judges(const struct audit_plan *plan, const struct record *delivery)
{
        return judges(plan, delivery, (size_t)delivery->partition);
}

int
audit_scope_requires(const struct audit_plan *plan, const struct record *delivery, uint32_t topic,
                     struct span key)
{
        size_t p = (size_t)delivery->partition;
        size_t first = plan->first_range[topic], n = plan->first_range[topic + 1] - first;

        if (delivery->offset >= plan->committed[p] || !judges(plan, delivery, p))
                return 0;
        /* If partitions were added, audit_scope_use() goes by the partition of the key today. */
        if (!judges(plan, delivery, (size_t)message_partition(delivery->key, (int32_t)plan->n_deliveries)))
                return 0;
        if (key.len > 0)
                return delivery->timestamp_ms >=
                       plan->kept_ms[first + (size_t)message_partition(key, (int32_t)n)];
        /* Without a key, the result may be in any partition. */
        for (size_t i = first; i < first + n; i++) {
                if (delivery->timestamp_ms < plan->kept_ms[i])
                        return 0;
        }
        return 1;
}

/* Return the partition of `deliveries` that a record came from, by today's number, or n_deliveries. */
static size_t
origin(const struct audit_plan *plan, const rd_kafka_message_t *message)
{
        struct span partition = message_header(message, RECORD_PARTITION);
        struct span id = release_delivery_id(message_header(message, "ce_id"));
        char text[12] = "";
        struct error error;
        uint64_t number;

        if (partition.len > 0 && partition.len < sizeof(text)) {
                memcpy(text, partition.data, partition.len);
                if (number_parse(text, 0, plan->n_deliveries - 1, &number, &error) == 0)
                        return (size_t)number;
        }
        if (id.len == 0)
                id = (struct span){message->key, message->key_len};
        return id.len == 0 ? plan->n_deliveries : (size_t)message_partition(id, (int32_t)plan->n_deliveries);
}

enum audit_use
audit_scope_use(const struct audit_plan *plan, const rd_kafka_message_t *message, uint32_t topic,
                int64_t timestamp_ms)
{
        size_t p = origin(plan, message);
        struct record quarantined;
        int64_t signed_ms;

        if (p == plan->n_deliveries || plan->from_ms[p] == AUDIT_FROM_BEGINNING)
                return AUDIT_COMPARE;
        if (timestamp_ms < plan->from_ms[p] - AUDIT_CLOCK_SKEW_MS)
                return AUDIT_LEAVE_OUT;
        if (topic == plan->quarantine) {
                message_record(message, &quarantined);
                signed_ms = delivery_signed_ms(&quarantined);
        } else {
                signed_ms = event_signed_ms(message);
        }
        return is_signed_too_early(plan, p, signed_ms) ? AUDIT_COUNT_ONLY : AUDIT_COMPARE;
}

int64_t
audit_scope_begin(const struct audit_plan *plan, uint32_t topic)
{
        int64_t from = AUDIT_FROM_BEGINNING, now = clock_now_ms();
        size_t n_kept = 0;

        for (size_t p = 0; p < plan->n_deliveries; p++) {
                if (plan->from_ms[p] > from && plan->from_ms[p] <= now)
                        from = plan->from_ms[p];
        }
        for (size_t i = plan->first_range[topic]; i < plan->first_range[topic + 1]; i++) {
                if (plan->kept_ms[i] == AUDIT_NEVER)
                        continue;
                n_kept++;
                if (plan->kept_ms[i] > from)
                        from = plan->kept_ms[i];
        }
        return n_kept == 0 ? AUDIT_NEVER : from;
}
