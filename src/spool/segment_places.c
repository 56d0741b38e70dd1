#include "spool/segment_places.h"

#include <stdlib.h>

#define FIRST_SIZE 1024

/* Both lists are ascending. */
static void
keep_fates(struct segment_places *places, const struct segment_places *before)
{
        size_t at = 0;

        for (size_t i = 0; i < places->n; i++) {
                while (at < before->n && before->items[at].offset < places->items[i].offset)
                        at++;
                if (at < before->n && before->items[at].offset == places->items[i].offset)
                        places->items[i].fate = before->items[at].fate;
        }
}

/* Many segments with few records may stay. */
static void
shrink(struct segment_places *places)
{
        struct segment_place *smaller =
            places->n == 0 ? NULL : reallocarray(places->items, places->n, sizeof(*smaller));

        if (smaller != NULL)
                places->items = smaller;
}

int
segment_places_read(struct segment_places *places, struct segment_reader *reader)
{
        struct segment_record record;
        size_t size = 0;
        int found;

        while ((found = segment_reader_next(reader, &record)) > 0) {
                if (places->n == size) {
                        struct segment_place *larger;

                        size = size == 0 ? FIRST_SIZE : 2 * size;
                        larger = reallocarray(places->items, size, sizeof(*larger));
                        if (larger == NULL) {
                                found = -1;
                                break;
                        }
                        places->items = larger;
                }
                places->items[places->n++] =
                    (struct segment_place){record.offset & UINT64_MAX >> 2, FATE_UNKNOWN};
        }
        if (found < 0) {
                segment_places_free(places);
                return -1;
        }
        shrink(places);
        return 0;
}

void
segment_places_replace(struct segment_places *places, struct segment_places *newer)
{
        keep_fates(newer, places);
        segment_places_free(places);
        *places = *newer;
        *newer = (struct segment_places){NULL, 0};
}

void
segment_places_free(struct segment_places *places)
{
        free(places->items);
        *places = (struct segment_places){NULL, 0};
}

size_t
segment_places_left(const struct segment_places *places)
{
        size_t n = 0;

        for (size_t i = 0; i < places->n; i++)
                n += places->items[i].fate != FATE_ACKNOWLEDGED;
        return n;
}

size_t
segment_places_reset(struct segment_places *places, enum fate fate)
{
        size_t n = 0;

        for (size_t i = 0; i < places->n; i++) {
                if (places->items[i].fate != fate)
                        continue;
                places->items[i].fate = FATE_UNKNOWN;
                n++;
        }
        return n;
}
