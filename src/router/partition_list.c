#include "router/partition_list.h"

#include <stdlib.h>

struct partition *
partition_find(struct partition_list *list, int32_t id)
{
        for (size_t i = 0; i < list->n; i++) {
                struct partition *found = list->items[i];

                if (found->id != id)
                        continue;
                list->items[i] = list->items[0];
                list->items[0] = found;
                return found;
        }
        return NULL;
}

static int
make_room(struct partition_list *list)
{
        struct partition **items = reallocarray(list->items, list->n + 1, sizeof(*items));

        if (items == NULL)
                return -1;
        list->items = items;
        return 0;
}

struct partition *
partition_add(struct partition_list *list, int32_t id)
{
        struct partition *partition = malloc(sizeof(*partition));

        if (partition == NULL || make_room(list) != 0) {
                free(partition);
                return NULL;
        }
        *partition = (struct partition){.id = id,
                                        .routed_ms = -1,
                                        .bare_offset = -1,
                                        .needed_ms = INT64_MAX,
                                        .high = -1,
                                        .end = {-1, -1},
                                        .unread_from = -1,
                                        .short_of = -1,
                                        .diverged_at = -1,
                                        .cut_at = -1,
                                        .told_cut_at = -1,
                                        .changed_at = -1,
                                        .tried_to = -1,
                                        .anchor = -1,
                                        .scan_next = -1,
                                        .unpublishable = -1};
        list->items[list->n++] = partition;
        return partition;
}

static void
take_out(struct partition_list *list, const struct partition *partition)
{
        for (size_t i = 0; i < list->n; i++) {
                if (list->items[i] == partition)
                        list->items[i] = list->items[--list->n];
        }
}

void
partition_remove(struct partition_list *list, struct partition *partition)
{
        take_out(list, partition);
        dedup_free(partition->dedup);
        free(partition);
}

void
partition_clear(struct partition_list *list)
{
        while (list->n > 0)
                partition_remove(list, list->items[list->n - 1]);
        free(list->items);
        list->items = NULL;
}

int
partition_move(struct partition_list *from, struct partition_list *to, struct partition *partition,
               int64_t now_ms)
{
        if (make_room(to) != 0)
                return -1;
        take_out(from, partition);
        to->items[to->n++] = partition;
        partition_forget_open(partition, now_ms);
        partition_settle(partition);
        partition_void_position(partition, TROUBLE_NONE, NULL, 0, now_ms);
        partition_rewind(partition);
        partition->topic[0] = '\0';
        partition->awaits_turn = 0;
        return 0;
}

void
partition_list_note_end(struct partition_list *list, int32_t id, int64_t end)
{
        struct partition *partition = partition_find(list, id);

        if (partition != NULL)
                partition_note_end(partition, end);
}
