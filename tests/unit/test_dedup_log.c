#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "dedup/dedup.h"
#include "suites.h"

/*
 * Reads random logs as a router would, with commits, expiry, rewinds and restarts in random order, and
 * compares each answer with the definition: a record repeats an earlier one with the same identity and body
 * that is at most the window older.
 */

#define LOG_LEN 300
#define N_STEPS 3000
#define UNKNOWN (-1)

struct line {
        uint8_t identity[DEDUP_IDENTITY_SIZE];
        uint64_t body;
        int64_t offset;
        int64_t timestamp_ms;
        int answered; /* UNKNOWN, or the answer when it was decided first */
};

struct reader {
        struct line log[LOG_LEN];
        int64_t window_ms;
        struct dedup *dedup;
        uint64_t random;
        size_t next;       /* index of the next line to read */
        size_t expired;    /* no line before this one will be decided again */
        int64_t needed_ms; /* the earliest time that had to be checked and was not covered */
        size_t n_repeats, n_conflicts, n_reread, n_uncovered;
};

/* xorshift64*: a number below n, the same in each run. */
static int64_t
dice(struct reader *reader, int64_t n)
{
        reader->random ^= reader->random >> 12;
        reader->random ^= reader->random << 25;
        reader->random ^= reader->random >> 27;
        return (int64_t)((reader->random * UINT64_C(0x2545f4914f6cdd1d) >> 33) % (uint64_t)n);
}

/*
 * A log of few identities over several windows. Timestamps rise, except for at most the given skew; and, with
 * jumps, while a clock is wrong for some lines.
 */
static void
write_log(struct reader *reader, int64_t skew, int with_jumps)
{
        int64_t n_identities = 1 + dice(reader, 40);
        int64_t longest_pause = 1 + reader->window_ms / (1 + dice(reader, 60));
        int64_t now = 1795230240000 + dice(reader, 100000), offset = dice(reader, 1000), wrong = 0;

        for (size_t i = 0; i < LOG_LEN; i++) {
                struct line *line = &reader->log[i];

                now += dice(reader, 4) == 0 ? 0 : dice(reader, longest_pause + 1);
                offset += dice(reader, 10) == 0 ? 1 + dice(reader, 5) : 1;
                memset(line->identity, (int)dice(reader, n_identities), sizeof(line->identity));
                line->body = 1 + (dice(reader, 10) == 0 ? (uint64_t)dice(reader, 3) : 0);
                line->offset = offset;
                if (with_jumps && dice(reader, 15) == 0)
                        wrong = wrong != 0 ? 0 : dice(reader, 8 * reader->window_ms) - 4 * reader->window_ms;
                line->timestamp_ms = now + wrong - dice(reader, skew + 1);
                line->answered = UNKNOWN;
        }
}

/* Compare with the definition. */
static void
assert_answer_is_right(const struct reader *reader, size_t index, enum dedup_answer answer)
{
        const struct line *line = &reader->log[index];
        int is_known = 0, is_repeat = 0;

        for (size_t i = 0; i < index; i++) {
                const struct line *earlier = &reader->log[i];
                int64_t age_ms = line->timestamp_ms - earlier->timestamp_ms;

                if (earlier->identity[0] != line->identity[0] || age_ms > reader->window_ms)
                        continue;
                is_known = 1;
                is_repeat |= earlier->body == line->body;
        }
        if ((answer != DEDUP_NEW) != is_known)
                ck_abort_msg("line %zu: answer %d, but the identity is known: %d", index, (int)answer,
                             is_known);
        if ((answer == DEDUP_REPEAT) != is_repeat)
                ck_abort_msg("line %zu: answer %d, but the body was there before: %d", index, (int)answer,
                             is_repeat);
}

static enum dedup_answer
read_line(struct reader *reader, size_t index)
{
        const struct line *line = &reader->log[index];
        enum dedup_answer answer;

        if (dedup_check(reader->dedup, line->identity, line->body, line->offset, line->timestamp_ms,
                        &answer) != 0)
                ck_abort_msg("dedup_check failed");
        return answer;
}

/* Commit the records before the next line: they will not be decided again. */
static void
commit(struct reader *reader)
{
        int64_t last_ms;

        if (reader->next <= reader->expired)
                return;
        reader->expired = reader->next;
        last_ms = reader->log[reader->next - 1].timestamp_ms;
        dedup_expire(reader->dedup, last_ms < reader->needed_ms ? last_ms : reader->needed_ms);
}

/* Make a new table to continue from a line, filled from the first line of the log that is recent enough. */
static void
restore(struct reader *reader, size_t committed)
{
        uint64_t window_ms = (uint64_t)reader->window_ms;
        int64_t start_ms = DEDUP_COMPLETE;
        size_t from = 0;

        if (committed > 0) {
                int64_t oldest_ms = reader->log[committed - 1].timestamp_ms;

                if (reader->needed_ms < oldest_ms)
                        oldest_ms = reader->needed_ms;
                start_ms = dedup_restore_start(window_ms, oldest_ms);
        }
        dedup_free(reader->dedup);
        reader->dedup = dedup_new(window_ms, start_ms);
        ck_assert_ptr_nonnull(reader->dedup);
        while (from < committed && reader->log[from].timestamp_ms < start_ms)
                from++;
        for (; from < committed; from++)
                (void)read_line(reader, from);
        reader->next = reader->expired = committed;
}

static void
decide_next(struct reader *reader)
{
        struct line *line = &reader->log[reader->next];
        enum dedup_answer answer;

        if (!dedup_covers(reader->dedup, line->timestamp_ms)) {
                commit(reader);
                if (reader->needed_ms > line->timestamp_ms)
                        reader->needed_ms = line->timestamp_ms;
                restore(reader, reader->expired);
                ck_assert(dedup_covers(reader->dedup, line->timestamp_ms));
                reader->n_uncovered++;
        }
        answer = read_line(reader, reader->next);
        assert_answer_is_right(reader, reader->next, answer);
        if (line->answered == UNKNOWN) {
                line->answered = (int)answer;
                reader->n_repeats += answer == DEDUP_REPEAT;
                reader->n_conflicts += answer == DEDUP_CONFLICT;
        } else {
                if ((int)answer != line->answered)
                        ck_abort_msg("line %zu: answer %d, before it was %d", reader->next, (int)answer,
                                     line->answered);
                reader->n_reread++;
        }
        reader->next++;
}

/* Restart from a committed position somewhere between the last commit and the current line. */
static void
restart(struct reader *reader)
{
        size_t committed =
            reader->expired + (size_t)dice(reader, (int64_t)(reader->next - reader->expired + 1));

        reader->needed_ms = INT64_MAX;
        restore(reader, committed);
}

static void
read_log(struct reader *reader)
{
        for (int i = 0; i < N_STEPS; i++) {
                int64_t step = dice(reader, 100);

                if (step < 2)
                        restart(reader);
                else if (step < 8)
                        reader->next = reader->expired +
                                       (size_t)dice(reader, (int64_t)(reader->next - reader->expired + 1));
                else if (step < 12)
                        commit(reader);
                else if (reader->next < LOG_LEN)
                        decide_next(reader);
        }
        while (reader->next < LOG_LEN)
                decide_next(reader);
}

static void
try_logs(uint64_t seed, int64_t shortest_window_ms, int with_skew, int with_jumps)
{
        struct reader *reader = calloc(1, sizeof(*reader));
        size_t n_repeats = 0, n_conflicts = 0, n_reread = 0, n_uncovered = 0;

        ck_assert_ptr_nonnull(reader);
        for (int i = 0; i < 20; i++) {
                *reader =
                    (struct reader){.random = (seed * 20 + (uint64_t)i) * UINT64_C(0x9e3779b97f4a7c15) + 1,
                                    .needed_ms = INT64_MAX};
                reader->window_ms = shortest_window_ms + dice(reader, 1 + dice(reader, 5000));
                restore(reader, 0);
                write_log(reader, with_skew ? reader->window_ms / 16 : 0, with_jumps);
                read_log(reader);
                dedup_free(reader->dedup);
                n_repeats += reader->n_repeats;
                n_conflicts += reader->n_conflicts;
                n_reread += reader->n_reread;
                n_uncovered += reader->n_uncovered;
        }
        /* Check that the logs produce all of these cases. */
        ck_assert_uint_gt(n_repeats, 100);
        ck_assert_uint_gt(n_conflicts, 20);
        ck_assert_uint_gt(n_reread, 1000);
        ck_assert(with_jumps ? n_uncovered > 20 : n_uncovered == 0);
        free(reader);
}

START_TEST(test_answers_follow_the_definition_through_rewinds_and_restarts)
{
        try_logs((uint64_t)_i, 16, 0, 0);
}
END_TEST

START_TEST(test_answers_follow_the_definition_for_very_short_windows)
{
        struct reader *reader = calloc(1, sizeof(*reader));

        ck_assert_ptr_nonnull(reader);
        for (int64_t window_ms = 1; window_ms < 40; window_ms++) {
                *reader = (struct reader){.random = (uint64_t)window_ms,
                                          .window_ms = window_ms,
                                          .needed_ms = INT64_MAX};
                restore(reader, 0);
                write_log(reader, 0, 0);
                read_log(reader);
                dedup_free(reader->dedup);
        }
        free(reader);
}
END_TEST

START_TEST(test_answers_follow_the_definition_when_clocks_differ_by_a_slice)
{
        try_logs((uint64_t)_i + 1000, 160, 1, 0);
}
END_TEST

START_TEST(test_answers_follow_the_definition_when_a_clock_is_wrong_by_several_windows)
{
        try_logs((uint64_t)_i + 2000, 160, 0, 1);
}
END_TEST

Suite *
suite_dedup_log(void)
{
        Suite *suite = suite_create("dedup_log");
        TCase *tcase = tcase_create("dedup_log");

        tcase_set_timeout(tcase, 60);
        tcase_add_loop_test(tcase, test_answers_follow_the_definition_through_rewinds_and_restarts, 0, 10);
        tcase_add_test(tcase, test_answers_follow_the_definition_for_very_short_windows);
        tcase_add_loop_test(tcase, test_answers_follow_the_definition_when_clocks_differ_by_a_slice, 0, 10);
        tcase_add_loop_test(tcase,
                            test_answers_follow_the_definition_when_a_clock_is_wrong_by_several_windows, 0,
                            10);
        suite_add_tcase(suite, tcase);
        return suite;
}
