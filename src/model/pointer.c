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

/* Return the watch of the lowest bit, which must exist. */
static const struct pointer_watch *
first_of(const struct pointer_walk *walk, uint32_t bits)
{
        return &walk->watches[__builtin_ctz(bits)];
}

/* Return the watches that lead through this level and whose next segment is the name. */
static uint32_t
match(const struct pointer_walk *walk, const struct pointer_level *level, struct span name)
{
        uint32_t matching = 0;

        for (uint32_t left = level->on_the_way; left != 0; left &= left - 1) {
                const char *segment = first_of(walk, left)->segments[walk->depth - 1];

                if (strlen(segment) == name.len && memcmp(segment, name.data, name.len) == 0)
                        matching |= left & -left;
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

static uint32_t
match_index(const struct pointer_walk *walk, struct pointer_level *level)
{
        char index[24];
        size_t len;

        if (level->on_the_way == 0)
                return 0;
        len = (size_t)snprintf(index, sizeof(index), "%zu", level->index++);
        return match(walk, level, (struct span){index, len});
}

uint32_t
pointer_walk_value(struct pointer_walk *walk)
{
        struct pointer_level *level;
        uint32_t ending = 0;

        if (walk->depth == 0)
                return 0;
        level = &walk->levels[walk->depth - 1];
        if (level->is_array)
                level->current = match_index(walk, level);
        for (uint32_t left = level->current; left != 0; left &= left - 1) {
                if (first_of(walk, left)->n_segments == walk->depth)
                        ending |= left & -left;
        }
        return ending;
}

static uint32_t
all_watches(const struct pointer_walk *walk)
{
        return walk->n_watches == 0 ? 0 : UINT32_MAX >> (POINTER_MAX_WATCHES - walk->n_watches);
}

void
pointer_walk_enter(struct pointer_walk *walk, int is_array)
{
        struct pointer_level *level = &walk->levels[walk->depth];
        uint32_t left = walk->depth > 0 ? walk->levels[walk->depth - 1].current : all_watches(walk);

        memset(level, 0, sizeof(*level));
        level->is_array = is_array;
        for (; left != 0; left &= left - 1) {
                if (first_of(walk, left)->n_segments > walk->depth)
                        level->on_the_way |= left & -left;
        }
        walk->depth++;
}

void
pointer_walk_leave(struct pointer_walk *walk)
{
        walk->depth--;
}
