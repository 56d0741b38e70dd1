#include "cli/test_delivery.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/json_tree.h"
#include "model/delivery_check.h"
#include "model/judge.h"

/* Return the name of a body's first member, which must not be the one that leads to the kind. */
static const char *
name_of_id(const char *leading)
{
        return strcmp(leading, JUDGE_TEST_KIND) == 0 ? JUDGE_TEST_KIND ".id" : JUDGE_TEST_KIND;
}

char *
test_delivery_body(const struct pointer *kind)
{
        struct json_writer *json = json_new(0);
        char id[BYTES_UUID_SIZE];
        size_t len;

        json_open_object(json, NULL);
        json_member(json, name_of_id(kind->segments[0]), bytes_random_uuid(id));
        for (size_t i = 0; i + 1 < kind->n_segments; i++)
                json_open_object(json, kind->segments[i]);
        json_member(json, kind->segments[kind->n_segments - 1], JUDGE_TEST_KIND);
        for (size_t i = 0; i + 1 < kind->n_segments; i++)
                json_close_object(json);
        json_close_object(json);
        return json_take(json, &len);
}

static int
is_id(const struct json_value *value)
{
        return value->type == JSON_STRING && strlen(value->text) == BYTES_UUID_SIZE - 1 &&
               strspn(value->text, "0123456789abcdef-") == BYTES_UUID_SIZE - 1;
}

/* Return whether this is an object of an id and of a path to the kind. */
static int
is_body(const struct json_value *object)
{
        const struct json_value *value;

        if (object->type != JSON_OBJECT || object->n != 2 || !is_id(object->first) ||
            strcmp(object->first->name, name_of_id(object->last->name)) != 0)
                return 0;
        value = object->last;
        while (value->type == JSON_OBJECT && value->n == 1)
                value = value->first;
        return value->type == JSON_STRING && strcmp(value->text, JUDGE_TEST_KIND) == 0;
}

int
test_delivery_recognises(struct span body)
{
        static const char start[] = "{\"" JUDGE_TEST_KIND;
        struct json_value *object;
        struct error error;
        int result;

        /* Spare almost all others the parsing. */
        if (body.len < strlen(start) || memcmp(body.data, start, strlen(start)) != 0)
                return 0;
        object = json_tree_parse(body.data, body.len, &error);
        result = object != NULL && is_body(object);
        json_tree_free(object);
        return result;
}

int
test_delivery_send(const struct config_source *source, const struct receiver_url *to,
                   struct test_delivery *delivery)
{
        struct sign_input *signing = &delivery->signing;
        int result;

        *delivery = (struct test_delivery){.signing = {.source = source, .agent = DELIVERY_PROBE_AGENT},
                                           .sent_ms = clock_now_ms()};
        signing->body = test_delivery_body(&source->rules.kind);
        signing->len = strlen(signing->body);
        sign_choose_ids(signing, NULL, NULL);
        result = sign_post(signing, source->keys[0], delivery->sent_ms / 1000, to, &delivery->answer,
                           &delivery->error);
        delivery->answered_ms = clock_now_ms();
        return result;
}

void
test_delivery_clear(struct test_delivery *delivery)
{
        free(delivery->signing.body);
        free(delivery->answer.body);
}
