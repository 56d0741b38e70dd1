#include "model/walk.h"

#include <stdio.h>
#include <string.h>

/* The watches on their way through this level whose next step is the name. */
static uint32_t
match(const struct walk *walk, const struct walk_level *level, struct span name)
{
        uint32_t matching = 0;

        for (size_t i = 0; i < walk->n_watches; i++) {
                const char *segment;

                if (!(level->on_the_way & UINT32_C(1) << i))
                        continue;
                segment = walk->watches[i].segments[walk->depth - 1];
                if (strlen(segment) == name.len && memcmp(segment, name.data, name.len) == 0)
                        matching |= UINT32_C(1) << i;
        }
        return matching;
}

uint32_t
walk_name(struct walk *walk, struct span name)
{
        struct walk_level *level = &walk->levels[walk->depth - 1];
        uint32_t again;

        level->current = match(walk, level, name);
        again = level->current & level->met;
        level->met |= level->current;
        return again;
}

uint32_t
walk_value(struct walk *walk)
{
        struct walk_level *level;
        uint32_t ending = 0;

        if (walk->depth == 0)
                return 0;
        level = &walk->levels[walk->depth - 1];
        if (level->is_array) {
                char index[24];
                int len = snprintf(index, sizeof(index), "%zu", level->index++);

                level->current =
                    level->on_the_way == 0 ? 0 : match(walk, level, (struct span){index, (size_t)len});
        }
        for (size_t i = 0; i < walk->n_watches; i++) {
                if ((level->current & UINT32_C(1) << i) && walk->watches[i].n_segments == walk->depth)
                        ending |= UINT32_C(1) << i;
        }
        return ending;
}

void
walk_enter(struct walk *walk, int is_array)
{
        struct walk_level *level = &walk->levels[walk->depth];

        memset(level, 0, sizeof(*level));
        level->is_array = is_array;
        for (size_t i = 0; i < walk->n_watches; i++) {
                uint32_t bit = UINT32_C(1) << i;
                int leads_here = walk->depth == 0 || (walk->levels[walk->depth - 1].current & bit);

                if (leads_here && walk->watches[i].n_segments > walk->depth)
                        level->on_the_way |= bit;
        }
        walk->depth++;
}

void
walk_leave(struct walk *walk)
{
        walk->depth--;
}
