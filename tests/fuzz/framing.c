/*
 * Framing finds the same messages however the bytes are split, and a handler behind evhttp gets the same
 * messages. The first byte chooses how many bytes are fed at a time.
 */
#include "../framing/cases.h"
#include "../framing/messages.h"
#include "choices.h"
#include "transcript.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const struct framing_limits limits = FRAMING_CASES_LIMITS;

/* Feed single bytes, `step` bytes, and all bytes at once, and compare the results. */
static void
compare_steps(const uint8_t *data, size_t len, size_t step)
{
        const size_t steps[] = {step, len};
        struct messages first, other;

        messages_read(&limits, (const char *)data, len, 1, &first);
        for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
                messages_read(&limits, (const char *)data, len, steps[i], &other);
                MUST(messages_are_equal(&first, &other));
                messages_clear(&other);
        }
        messages_clear(&first);
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
        compare_steps(data, len, step);
        transcript_of_framing(&limits, data, len, len, &framed);
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
