#include "router/member.h"

#include "base/clock.h"
#include "base/crash.h"

#define FENCED_MAX 5
#define FENCED_WITHIN_MS 120000

static void
forget_assigned(struct member *member)
{
        if (member->assigned != NULL)
                rd_kafka_topic_partition_list_destroy(member->assigned);
        member->assigned = NULL;
        member->has_changed = 1;
}

static void
on_assigned(const rd_kafka_topic_partition_list_t *partitions, void *arg)
{
        struct member *member = arg;

        crash_point("on-assigned");
        forget_assigned(member);
        member->assigned = rd_kafka_topic_partition_list_copy(partitions);
}

static void
on_revoked(void *arg)
{
        crash_point("on-revoked");
        forget_assigned(arg);
}

static void
on_statistics(const struct statistics_totals *totals, void *arg)
{
        struct member *member = arg;

        metrics_note_client(member->metrics, CLIENT_ROUTER, &member->statistics, totals);
}

int
member_prepare(struct member *member, struct error *error)
{
        static const struct consumer_events events = {on_assigned, on_revoked, on_statistics};

        if (member->consumer == NULL)
                member->consumer = consumer_new(member->config, member->bootstrap, &events, member, error);
        return member->consumer == NULL ? -1 : 0;
}

void
member_leave(struct member *member)
{
        consumer_free(member->consumer);
        member->consumer = NULL;
        forget_assigned(member); /* a failed consumer does not report them as revoked */
}

int
member_note_fenced(struct member *member)
{
        int64_t now = clock_monotonic_ms();

        if (member->n_fenced == 0 || now - member->fenced_since_ms > FENCED_WITHIN_MS) {
                member->n_fenced = 0;
                member->fenced_since_ms = now;
        }
        return ++member->n_fenced >= FENCED_MAX;
}
