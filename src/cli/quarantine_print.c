#include "cli/quarantine_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"

char *
quarantine_print_place(const struct release_id *place, char text[RELEASE_ID_SIZE])
{
        if (place->partition < 0)
                (void)snprintf(text, RELEASE_ID_SIZE, "-");
        else
                (void)snprintf(text, RELEASE_ID_SIZE, "%" PRId32 "/%" PRId64, place->partition,
                               place->offset);
        return text;
}

const char *
quarantine_print_state(const struct quarantined *record)
{
        static const char *const names[] = {
            [QUARANTINE_WAITING] = "no", [QUARANTINE_RELEASED] = "yes", [QUARANTINE_UNSURE] = "unsure"};

        return names[record->state];
}

static void
put_text(yajl_gen json, const char *name, const char *text)
{
        if (text == NULL)
                json_null(json, name);
        else
                json_bytes(json, name, text, strlen(text));
}

static void
put_place(yajl_gen json, const char *name, const struct release_id *place)
{
        if (place->partition < 0) {
                json_null(json, name);
                return;
        }
        json_text(json, name);
        (void)yajl_gen_map_open(json);
        json_number(json, "partition", place->partition);
        json_number(json, "offset", place->offset);
        (void)yajl_gen_map_close(json);
}

static void
put_id(yajl_gen json, const char *name, const struct release_id *id)
{
        char text[RELEASE_ID_SIZE];

        json_member(json, name, id->partition < 0 ? NULL : release_id_format(id, text));
}

void
quarantine_print_members(yajl_gen json, const struct quarantined *record)
{
        char when[CLOCK_RFC3339_SIZE];

        put_id(json, "id", &record->id);
        json_member(json, "timestamp", clock_format_ms(record->timestamp_ms, when));
        put_text(json, "reason", record->reason);
        put_text(json, "detail", record->detail);
        put_text(json, "source", record->source);
        json_bytes(json, "deliveryId", record->key, record->key_len);
        put_place(json, "delivery", &record->delivery);
        if (record->state == QUARANTINE_UNSURE)
                json_null(json, "released");
        else
                json_flag(json, "released", record->state == QUARANTINE_RELEASED);
        put_place(json, "release", &record->release);
        put_id(json, "cameBackAs", &record->came_back);
        put_id(json, "cameOf", &record->came_of);
}
