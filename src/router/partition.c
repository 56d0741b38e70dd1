#include "router/partition.h"

#include <stdlib.h>

struct partition *
partition_find(const struct partition_list *list, int32_t id)
{
        for (size_t i = 0; i < list->n; i++) {
                if (list->items[i].id == id)
                        return &list->items[i];
        }
        return NULL;
}

struct partition *
partition_add(struct partition_list *list, int32_t id)
{
        struct partition *items = reallocarray(list->items, list->n + 1, sizeof(struct partition));
        struct partition *partition;

        if (items == NULL)
                return NULL;
        list->items = items;
        partition = &list->items[list->n++];
        *partition =
            (struct partition){.id = id, .routed_ms = -1, .needed_ms = INT64_MAX, .accepted_gap = -1};
        return partition;
}

void
partition_remove(struct partition_list *list, struct partition *partition)
{
        dedup_free(partition->dedup);
        *partition = list->items[--list->n];
}

void
partition_clear(struct partition_list *list)
{
        while (list->n > 0)
                partition_remove(list, &list->items[list->n - 1]);
        free(list->items);
        list->items = NULL;
}

int
partition_accepts(struct partition *partition, int64_t offset)
{
        if (offset == partition->next || offset == partition->accepted_gap)
                return 1;
        partition->accepted_gap = offset;
        return 0;
}

int
partition_recognises(const struct partition *partition, int64_t offset, int64_t timestamp_ms)
{
        return offset != partition->decide_from - 1 || partition->routed_ms < 0 ||
               timestamp_ms == partition->routed_ms;
}

void
partition_advance(struct partition *partition, int64_t offset, int64_t timestamp_ms)
{
        partition->next = offset + 1;
        partition->last_ms = timestamp_ms;
}

int
partition_can_judge(struct partition *partition, int64_t timestamp_ms)
{
        if (dedup_covers(partition->dedup, timestamp_ms))
                return 1;
        if (partition->needed_ms > timestamp_ms)
                partition->needed_ms = timestamp_ms;
        return 0;
}

void
partition_committed(struct partition *partition)
{
        if (partition_open(partition) == 0)
                return;
        partition->decide_from = partition->next;
        partition->routed_ms = partition->last_ms;
        partition->expired_from = partition->next;
        if (partition->last_ms - partition->needed_ms > 2 * (int64_t)dedup_window_ms(partition->dedup))
                partition->needed_ms = INT64_MAX;
        dedup_expire(partition->dedup,
                     partition->needed_ms < partition->last_ms ? partition->needed_ms : partition->last_ms);
}

int64_t
partition_open(const struct partition *partition)
{
        return partition->next > partition->decide_from ? partition->next - partition->decide_from : 0;
}

int64_t
partition_waiting_ms(struct partition *partition, int64_t lag, int64_t now_ms)
{
        int64_t since_ms = partition->routed_ms >= 0 ? partition->routed_ms : partition->last_ms;

        if (lag == 0)
                partition->caught_up_ms = now_ms;
        if (partition->caught_up_ms > since_ms)
                since_ms = partition->caught_up_ms;
        return lag > 0 && since_ms > 0 && now_ms > since_ms ? now_ms - since_ms : 0;
}
