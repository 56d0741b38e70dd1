#include "model/pointer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Undo the escapes of RFC 6901 in place: ~1 is a slash, ~0 a tilde. Return -1 at any other tilde. */
static int
unescape(char *segment)
{
        char *to = segment;

        for (const char *from = segment; *from != '\0'; from++) {
                if (*from != '~') {
                        *to++ = *from;
                        continue;
                }
                from++;
                if (*from != '0' && *from != '1')
                        return -1;
                *to++ = *from == '0' ? '~' : '/';
        }
        *to = '\0';
        return 0;
}

int
pointer_parse(const char *text, struct pointer *pointer, struct error *error)
{
        const char *start = text;

        memset(pointer, 0, sizeof(*pointer));
        if (text[0] != '/')
                return error_set(error,
                                 "'%.64s' is not a JSON Pointer: it begins with a slash, such as /event",
                                 text);
        pointer->text = mem_strdup(text);
        while (*start == '/') {
                size_t len = strcspn(++start, "/");
                char *segment;

                if (pointer->n_segments == POINTER_MAX_SEGMENTS) {
                        pointer_clear(pointer);
                        return error_set(error, "a JSON Pointer of more than %d steps", POINTER_MAX_SEGMENTS);
                }
                segment = mem_strndup(start, len);
                pointer->segments[pointer->n_segments++] = segment;
                if (unescape(segment) != 0) {
                        pointer_clear(pointer);
                        return error_set(error,
                                         "'%.64s': in a JSON Pointer ~ is written ~0 and / in a name ~1",
                                         text);
                }
                start += len;
        }
        return 0;
}

void
pointer_clear(struct pointer *pointer)
{
        for (size_t i = 0; i < pointer->n_segments; i++)
                free(pointer->segments[i]);
        free(pointer->text);
        memset(pointer, 0, sizeof(*pointer));
}

/* Return the watches that lead through this level and whose next segment is the name. */
static uint32_t
match(const struct pointer_walk *walk, const struct pointer_level *level, struct span name)
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
pointer_walk_name(struct pointer_walk *walk, struct span name)
{
        struct pointer_level *level = &walk->levels[walk->depth - 1];
        uint32_t again;

        level->current = match(walk, level, name);
        again = level->current & level->met;
        level->met |= level->current;
        return again;
}

uint32_t
pointer_walk_value(struct pointer_walk *walk)
{
        struct pointer_level *level;
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
pointer_walk_enter(struct pointer_walk *walk, int is_array)
{
        struct pointer_level *level = &walk->levels[walk->depth];

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
pointer_walk_leave(struct pointer_walk *walk)
{
        walk->depth--;
}
