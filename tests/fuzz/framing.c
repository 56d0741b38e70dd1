/*
 * However the bytes come, framing says the same of them, overwrites the same and no body's; and a handler behind evhttp gets
 * the very messages. The first byte chooses how many come at a time.
 */
#include <string.h>

#include "../framing/cases.h"
#include "choices.h"
#include "transcript.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const struct framing_limits limits = FRAMING_CASES_LIMITS;

/* Feed `step` at a time, from memory of exactly that size, and compare. */
static void
feed(const uint8_t *data, size_t len, size_t step, const struct transcript *expected)
{
        struct framing framing;
        size_t at = 0, n = 0;
        int status = 0;

        framing_init(&framing, &limits);
        while (at < len && status == 0) {
                size_t left = len - at < step ? len - at : step, used;
                char *piece = malloc(left);
                enum framing_verdict verdict;

                memcpy(piece, data + at, left);
                verdict = framing_feed(&framing, piece, left, &used);
                MUST(used <= left && (used > 0 || verdict == FRAMING_REFUSED));
                MUST(memcmp(piece, expected->seen + at, used) == 0);
                free(piece);
                at += used;
                n += verdict == FRAMING_MESSAGE;
                status = verdict == FRAMING_REFUSED ? framing.fault.status : 0;
        }
        MUST(at == expected->used && n == expected->n && status == expected->status);
        framing_clear(&framing);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
        static const size_t steps[] = {4096, 1, 2, 5, 17, 64, 200, 1000};
        struct choices choices = {data, len};
        struct transcript framed, served;
        size_t step;

        if (len < 2 || len > 4096)
                return 0;
        step = CHOOSE(&choices, steps);
        data = choices.data;
        len = choices.len;
        transcript_of_framing(&limits, data, len, &framed);
        feed(data, len, step, &framed);
        feed(data, len, len, &framed);
        if (framed.n > 0 && framed.n < 16) {
                transcript_of_server(&limits, data, len, step, &served);
                MUST(served.n <= framed.n);
                MUST(served.n > 0);
                transcript_compare(&framed, &served, served.n);
                transcript_clear(&served);
        }
        transcript_clear(&framed);
        return 0;
}
