#ifndef TESTS_UNIT_BODIES_H
#define TESTS_UNIT_BODIES_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "model/decode.h"
#include "spans.h"

/* State shared by the tests of the decoder: a decoder, its rules, and its last result. */
static struct decoder *decoder;
static struct event_rules rules;
static struct decoded decoded;

static void
set_pointer(struct pointer *pointer, const char *text)
{
        struct error error;

        pointer_clear(pointer);
        ck_assert_int_eq(pointer_parse(text, pointer, &error), 0);
}

static void
set_up_decoder(void)
{
        decoder = decoder_new();
        ck_assert_ptr_nonnull(decoder);
        rules = (struct event_rules){.source = "invoicing"};
        set_pointer(&rules.kind, "/event");
}

static void
tear_down_decoder(void)
{
        pointer_clear(&rules.kind);
        pointer_clear(&rules.key);
        pointer_clear(&rules.subject);
        decoder_free(decoder);
}

/* Decode a body from memory of exactly its size, so that the sanitizer detects reads beyond it. */
static enum decode_result
decode(struct span body)
{
        char *exact = malloc(body.len > 0 ? body.len : 1);
        enum decode_result result;

        ck_assert_ptr_nonnull(exact);
        memcpy(exact, body.data, body.len);
        ck_assert_int_eq(decoder_run(decoder, &rules, (struct span){exact, body.len}, &decoded, &result), 0);
        free(exact);
        return result;
}

/* The same for a body without NULs. */
static enum decode_result
decode_text(const char *body)
{
        return decode((struct span){body, strlen(body)});
}

#endif
