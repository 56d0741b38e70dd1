#include <stdlib.h>
#include <string.h>

#include "../framing/cases.h"
#include "base/compiler.h"
#include "spans.h"
#include "suites.h"

static const struct framing_limits limits = FRAMING_CASES_LIMITS;

/* What came of a connection's bytes. */
struct outcome {
        int n_messages;
        int status; /* of the refusal, or 0 */
        size_t used;
        char *seen; /* the bytes as they stand for evhttp */
        char body[256];
        size_t body_len;
};

/* The bytes of bodies are noted where they come one at a time, since then the state tells. */
static void
note_body(struct outcome *outcome, const struct framing *framing, const char *data, size_t len)
{
        if (framing->state != FRAMING_LENGTH_BODY && framing->state != FRAMING_CHUNK_DATA)
                return;
        ck_assert_uint_eq(len, 1);
        ck_assert_uint_lt(outcome->body_len, sizeof(outcome->body));
        outcome->body[outcome->body_len++] = *data;
}

/* Feed the bytes, `step` at a time. Release outcome->seen. */
static void
run(const char *bytes, size_t len, size_t step, struct outcome *outcome)
{
        struct framing framing;

        memset(outcome, 0, sizeof(*outcome));
        outcome->seen = malloc(len + 1);
        ck_assert_ptr_nonnull(outcome->seen);
        memcpy(outcome->seen, bytes, len);
        framing_init(&framing, &limits);
        while (outcome->used < len && outcome->status == 0) {
                size_t left = len - outcome->used < step ? len - outcome->used : step, used;
                enum framing_verdict verdict;

                if (step == 1)
                        note_body(outcome, &framing, bytes + outcome->used, left);
                verdict = framing_feed(&framing, outcome->seen + outcome->used, left, &used);
                ck_assert(used <= left && (used > 0 || verdict == FRAMING_REFUSED));
                outcome->used += used;
                outcome->n_messages += verdict == FRAMING_MESSAGE;
                if (verdict == FRAMING_REFUSED) {
                        outcome->status = framing.fault.status;
                        ck_assert_ptr_nonnull(framing.fault.reason);
                }
        }
        framing_clear(&framing);
}

static void
expect_as_told(const struct framing_case *row)
{
        static const size_t steps[] = {1, 2, 3, 7, 4096};
        struct outcome first, outcome;

        run(row->bytes, row->len, 1, &first);
        for (size_t s = 0; s < ARRAY_LEN(steps); s++) {
                run(row->bytes, row->len, steps[s], &outcome);
                ck_assert_msg(outcome.n_messages == row->n_messages && outcome.status == row->status,
                              "RFC 9112 %s, %zu at a time: %d messages, status %d: %s", row->section,
                              steps[s], outcome.n_messages, outcome.status, row->bytes);
                ck_assert_uint_eq(outcome.used, first.used);
                ck_assert_mem_eq(outcome.seen, first.seen, first.used);
                free(outcome.seen);
        }
        free(first.seen);
}

START_TEST(test_bytes_are_framed_alike_however_they_come)
{
        for (size_t i = 0; i < n_framing_cases; i++)
                expect_as_told(&framing_cases[i]);
}
END_TEST

START_TEST(test_there_are_enough_cases_of_both_kinds)
{
        size_t n_refused = 0;

        for (size_t i = 0; i < n_framing_cases; i++)
                n_refused += framing_cases[i].status != 0;
        ck_assert_uint_ge(n_refused, 150);
        ck_assert_uint_ge(n_framing_cases - n_refused, 75);
}
END_TEST

#define GET "GET / HTTP/1.1\r\nHost: a\r\n"
#define CHUNKED "POST /hook HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"

/* A message's bytes, how they stand for evhttp afterwards, and the body. */
static const struct {
        struct span bytes;
        struct span seen;
        struct span body;
} blanked[] = {
    {SPAN_OF(GET "\r\n"), SPAN_OF(GET "\r\n"), SPAN_OF("")},
    {SPAN_OF(GET "a:\tb\tc\t\r\nd: \t \te\r\nf\t"), SPAN_OF(GET "a: b\tc\t\r\nd:    e\r\nf\t"), SPAN_OF("")},
    {SPAN_OF(GET "a:\t:\tb\r\n:\tc"), SPAN_OF(GET "a: :\tb\r\n: c"), SPAN_OF("")},
    {SPAN_OF("GET /:\tHTTP"), SPAN_OF("GET /:\tHTTP"), SPAN_OF("")},
    {SPAN_OF(CHUNKED "5\r\nhello\r\n0\r\n\r\n"), SPAN_OF(CHUNKED "5\r\nhello\r\n0  \n\n"), SPAN_OF("hello")},
    {SPAN_OF(CHUNKED "5;a=b\r\nhello\r\n0\r\n\r\n"), SPAN_OF(CHUNKED "5    \r\nhello\r\n0  \n\n"),
     SPAN_OF("hello")},
    {SPAN_OF(CHUNKED "5\t;a=\"5\"\r\n;a\r\n0\r\n5;0;0\r\n\r\n;=\r\r\n00;a=0\r\n\r\n" GET "a:\tb\r\n\r\n"),
     SPAN_OF(CHUNKED "5       \r\n;a\r\n0\r\n5    \r\n\r\n;=\r\r\n00      \n\n" GET "a: b\r\n\r\n"),
     SPAN_OF(";a\r\n0\r\n;=\r")},
    {SPAN_OF(CHUNKED "1\r\nx\r\n0;a\r\nb: 0\r\nc:\r\n\r\n"), SPAN_OF(CHUNKED "1\r\nx\r\n0              \n\n"),
     SPAN_OF("x")},
    {SPAN_OF(CHUNKED "4\r\n\n\t \r\r\n0\r\nx: \r\n\r\n"), SPAN_OF(CHUNKED "4\r\n\n\t \r\r\n0       \n\n"),
     SPAN_OF("\n\t \r")},
};

START_TEST(test_what_evhttp_cannot_read_is_overwritten_and_bodies_are_not)
{
        struct outcome outcome;

        run(blanked[_i].bytes.data, blanked[_i].bytes.len, 1, &outcome);
        ck_assert_int_eq(outcome.status, 0);
        ck_assert_uint_eq(blanked[_i].seen.len, blanked[_i].bytes.len);
        ck_assert_mem_eq(outcome.seen, blanked[_i].seen.data, blanked[_i].seen.len);
        ck_assert_uint_eq(outcome.body_len, blanked[_i].body.len);
        ck_assert_mem_eq(outcome.body, blanked[_i].body.data, outcome.body_len);
        free(outcome.seen);
}
END_TEST

START_TEST(test_endless_lines_are_cut_off)
{
        static const struct {
                struct span start;
                char then;
                int status;
        } rows[] = {
            {SPAN_OF("GET /"), 'a', 414},           {SPAN_OF(GET "a:"), ' ', 400},
            {SPAN_OF(CHUNKED), '0', 400},           {SPAN_OF(CHUNKED "5"), ' ', 400},
            {SPAN_OF(CHUNKED "0;a="), 'a', 400},    {SPAN_OF(CHUNKED "0\r\n"), 'a', 400},
            {SPAN_OF(CHUNKED "0\r\na:"), ' ', 400},
        };
        char bytes[4096];
        struct outcome outcome;

        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                memset(bytes, rows[i].then, sizeof(bytes));
                memcpy(bytes, rows[i].start.data, rows[i].start.len);
                run(bytes, sizeof(bytes), sizeof(bytes), &outcome);
                ck_assert_int_eq(outcome.status, rows[i].status);
                ck_assert_uint_le(outcome.used, strlen(CHUNKED) + limits.max_header_bytes + 8);
                free(outcome.seen);
        }
}
END_TEST

/* Feed a message with so many bytes of extensions and trailer fields, at least 12; the last line end counts. */
static enum framing_verdict
feed_besides(struct framing *framing, size_t n)
{
        enum framing_verdict verdict = FRAMING_MORE;
        char bytes[2048], *end = stpcpy(bytes, CHUNKED);

        for (; n >= 22; n -= 10)
                end = stpcpy(end, "1;a=4567890\r\nx\r\n");
        end = stpcpy(end, "0\r\na:");
        for (; n > 6; n--)
                end = stpcpy(end, "b");
        end = stpcpy(end, "\r\n\r\n");
        for (size_t i = 0, used; bytes + i < end && verdict != FRAMING_REFUSED; i += used)
                verdict = framing_feed(framing, bytes + i, (size_t)(end - bytes) - i, &used);
        return verdict;
}

START_TEST(test_extensions_and_trailers_together_have_one_limit_for_each_message)
{
        struct framing framing;

        framing_init(&framing, &limits);
        for (int i = 0; i < 3; i++)
                ck_assert_int_eq(feed_besides(&framing, limits.max_header_bytes), FRAMING_MESSAGE);
        ck_assert_int_eq(feed_besides(&framing, limits.max_header_bytes + 1), FRAMING_REFUSED);
        ck_assert_int_eq(framing.fault.status, 400);
        framing_clear(&framing);
}
END_TEST

Suite *
suite_framing(void)
{
        Suite *suite = suite_create("framing");
        TCase *all = tcase_create("all");

        tcase_add_test(all, test_bytes_are_framed_alike_however_they_come);
        tcase_add_test(all, test_there_are_enough_cases_of_both_kinds);
        tcase_add_loop_test(all, test_what_evhttp_cannot_read_is_overwritten_and_bodies_are_not, 0,
                            (int)ARRAY_LEN(blanked));
        tcase_add_test(all, test_endless_lines_are_cut_off);
        tcase_add_test(all, test_extensions_and_trailers_together_have_one_limit_for_each_message);
        suite_add_tcase(suite, all);
        return suite;
}
