#include "model/release.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

/* Read a number of len digits without leading zeros. */
static int
parse_number(const char *digits, size_t len, uint64_t max, uint64_t *value)
{
        char text[24];
        struct error error;

        if (len == 0 || len >= sizeof(text) || (len > 1 && digits[0] == '0') ||
            memchr(digits, 0, len) != NULL)
                return -1;
        memcpy(text, digits, len);
        text[len] = '\0';
        return number_parse(text, 0, max, value, &error);
}

int
release_id_parse(struct span text, struct release_id *id)
{
        const char *hyphen = text.len == 0 ? NULL : memchr(text.data, '-', text.len);
        uint64_t partition, offset;
        size_t before;

        if (hyphen == NULL)
                return -1;
        before = (size_t)(hyphen - text.data);
        if (parse_number(text.data, before, INT32_MAX, &partition) != 0 ||
            parse_number(hyphen + 1, text.len - before - 1, INT64_MAX, &offset) != 0)
                return -1;
        id->partition = (int32_t)partition;
        id->offset = (int64_t)offset;
        return 0;
}

int
release_place_parse(struct span partition, struct span offset, struct release_id *place)
{
        uint64_t p, o;

        if (parse_number(partition.data, partition.len, INT32_MAX, &p) != 0 ||
            parse_number(offset.data, offset.len, INT64_MAX, &o) != 0)
                return -1;
        *place = (struct release_id){(int32_t)p, (int64_t)o};
        return 0;
}

char *
release_id_format(const struct release_id *id, char text[RELEASE_ID_SIZE])
{
        (void)snprintf(text, RELEASE_ID_SIZE, "%" PRId32 "-%" PRId64, id->partition, id->offset);
        return text;
}

int
release_id_compare(const struct release_id *a, const struct release_id *b)
{
        if (a->partition != b->partition)
                return a->partition < b->partition ? -1 : 1;
        return (a->offset > b->offset) - (a->offset < b->offset);
}

struct span
release_delivery_id(struct span event_id)
{
        const char *dot = event_id.len == 0 ? NULL : memrchr(event_id.data, '.', event_id.len);
        struct release_id id;
        size_t len;

        if (dot == NULL)
                return event_id;
        len = (size_t)(dot - event_id.data);
        if (release_id_parse((struct span){dot + 1, event_id.len - len - 1}, &id) != 0)
                return event_id;
        return (struct span){event_id.data, len};
}

int
release_keeps_header(const char *name)
{
        static const char *const dropped[] = {RECORD_REPLAY_OF, RECORD_RELEASED, RECORD_RELEASE_SIGNATURE,
                                              RECORD_REASON,    RECORD_DETAIL,   RECORD_PARTITION,
                                              RECORD_OFFSET};

        for (size_t i = 0; i < ARRAY_LEN(dropped); i++) {
                if (strcmp(name, dropped[i]) == 0)
                        return 0;
        }
        return 1;
}
