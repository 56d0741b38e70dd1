#include "log_reader.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "scratch.h"

#define N_STEPS 3000
#define UNKNOWN (-1)

int64_t
reader_dice(struct reader *reader, int64_t n)
{
        reader->random ^= reader->random >> 12;
        reader->random ^= reader->random << 25;
        reader->random ^= reader->random >> 27;
        return (int64_t)((reader->random * UINT64_C(0x2545f4914f6cdd1d) >> 33) % (uint64_t)n);
}

void
reader_write_log(struct reader *reader, int64_t skew, int with_jumps)
{
        int64_t n_identities = 1 + reader_dice(reader, 40);
        int64_t pace =
            (1 + reader_dice(reader, 60)) * (reader->state == NULL ? 1 : 1 + reader_dice(reader, 50));
        int64_t longest_pause = 1 + reader->window_ms / pace;
        int64_t now = 1795230240000 + reader_dice(reader, 100000), offset = reader_dice(reader, 1000),
                wrong = 0;

        for (size_t i = 0; i < LOG_LEN; i++) {
                struct line *line = &reader->log[i];

                now += reader_dice(reader, 4) == 0 ? 0 : reader_dice(reader, longest_pause + 1);
                offset += reader_dice(reader, 10) == 0 ? 1 + reader_dice(reader, 5) : 1;
                memset(line->identity, (int)reader_dice(reader, n_identities), sizeof(line->identity));
                line->body = 1 + (reader_dice(reader, 10) == 0 ? (uint64_t)reader_dice(reader, 3) : 0);
                line->offset = offset;
                if (with_jumps && reader_dice(reader, 15) == 0)
                        wrong = wrong != 0
                                    ? 0
                                    : reader_dice(reader, 8 * reader->window_ms) - 4 * reader->window_ms;
                line->timestamp_ms = now + wrong - reader_dice(reader, skew + 1);
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

/* Returns 0, or -1 if the table turned out to be of no use. */
static int
read_line(struct reader *reader, size_t index, enum dedup_answer *answer)
{
        const struct line *line = &reader->log[index];

        if (reader->known <= index)
                reader->known = index + 1;
        if (dedup_check(reader->dedup, line->identity, line->body, line->offset, line->timestamp_ms,
                        answer) == 0)
                return 0;
        if (!reader->may_damage || dedup_trouble(reader->dedup) == DEDUP_SOUND)
                ck_abort_msg("line %zu: dedup_check failed: %d", index, (int)dedup_trouble(reader->dedup));
        return -1;
}

static struct dedup *
find_table(void *arg, int32_t partition, uint64_t number)
{
        const struct reader *reader = arg;

        return partition == 0 && number == dedup_number(reader->dedup) ? reader->dedup : NULL;
}

/* Write and merge what is committed, and sometimes wait for it. */
static void
tend(struct reader *reader)
{
        const struct line *last = &reader->log[reader->next - 1];
        int waits = !reader->may_damage ||
                    reader_dice(reader, 3) > 0; /* without, merges are many and the same each time */
        size_t at_least = 1 + (size_t)reader_dice(reader, 4);

        if (reader->state == NULL || reader->known > reader->next)
                return;
        do {
                size_t n = dedup_files(reader->dedup).n;

                state_take_results(reader->state, find_table, reader);
                reader->n_merged += dedup_files(reader->dedup).n < n;
                state_tend(reader->state, 0, reader->dedup, last->offset + 1, at_least);
        } while (waits && dedup_is_busy(reader->dedup));
}

/* Change a random file of the state: it must not be believed. */
static void
damage(struct reader *reader)
{
        char *names[1000];
        size_t n = scratch_list(reader->directory, ".run", names, ARRAY_LEN(names));
        size_t chosen = n == 0 ? 0 : (size_t)reader_dice(reader, (int64_t)n);
        struct stat status;
        uint8_t byte;
        int fd = n == 0 ? -1 : open(names[chosen], O_RDWR);

        if (fd >= 0 && fstat(fd, &status) == 0) {
                off_t at = (off_t)reader_dice(reader, status.st_size);

                reader->n_damaged++;
                if (reader_dice(reader, 4) == 0) {
                        ck_assert_int_eq(ftruncate(fd, at), 0);
                } else if (reader_dice(reader, 4) == 0) {
                        ck_assert_int_eq(rename(names[chosen],
                                                names[(size_t)reader_dice(reader, (int64_t)n)]),
                                         0);
                } else {
                        ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
                        byte ^= (uint8_t)(1 << reader_dice(reader, 8));
                        ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
                }
        }
        if (fd >= 0)
                (void)close(fd);
        for (size_t i = 0; i < n; i++)
                free(names[i]);
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
        tend(reader);
}

/* Fill a table from files, as far as they go. Returns the index of the first line to read. */
static size_t
read_state(struct reader *reader, size_t from, size_t committed)
{
        const struct line *log = reader->log;
        struct state_wanted wanted;
        int64_t next;

        dedup_begin_at(reader->dedup, from < LOG_LEN ? log[from].offset : log[LOG_LEN - 1].offset + 1);
        if (committed == 0 || reader->needed_ms != INT64_MAX) {
                state_discard(reader->state, 0, "the test");
                return from;
        }
        wanted = (struct state_wanted){.low = log[0].offset,
                                       .from = log[from].offset,
                                       .to = log[committed - 1].offset + 1,
                                       .complete_ms = log[committed - 1].timestamp_ms - reader->window_ms};
        if (from == committed || !state_restore(reader->state, &wanted, reader->dedup, &next))
                return from;
        reader->n_restored++;
        while (log[from].offset != next)
                from++;
        return from;
}

/* Make a new table to continue from a line, filled from the first line of the log that is recent enough. */
static int
restore_once(struct reader *reader, size_t committed)
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
        reader->known = 0;
        if (reader->state != NULL)
                from = read_state(reader, from, committed);
        reader->next = reader->expired = committed;
        for (; from < committed; from++) {
                enum dedup_answer answer;

                if (read_line(reader, from, &answer) != 0)
                        return -1;
        }
        return 0;
}

/* The table is of no use: delete the files, and read the log. */
static void
restore_without_state(struct reader *reader)
{
        reader->n_found++;
        state_discard(reader->state, 0, "the test");
        if (restore_once(reader, reader->expired) != 0)
                ck_abort_msg("files are left");
}

void
reader_restore(struct reader *reader, size_t committed)
{
        if (restore_once(reader, committed) != 0)
                restore_without_state(reader);
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
                reader_restore(reader, reader->expired);
                ck_assert(dedup_covers(reader->dedup, line->timestamp_ms));
                reader->n_uncovered++;
        }
        if (read_line(reader, reader->next, &answer) != 0) {
                restore_without_state(reader);
                return;
        }
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
            reader->expired + (size_t)reader_dice(reader, (int64_t)(reader->next - reader->expired + 1));

        reader->needed_ms = INT64_MAX;
        reader_restore(reader, committed);
}

void
reader_read_log(struct reader *reader)
{
        for (int i = 0; i < N_STEPS; i++) {
                int64_t step = reader_dice(reader, 100);

                if (reader->may_damage && reader_dice(reader, 50) == 0)
                        damage(reader);
                if (step < 2)
                        restart(reader);
                else if (step < 8)
                        reader->next =
                            reader->expired +
                            (size_t)reader_dice(reader, (int64_t)(reader->next - reader->expired + 1));
                else if (step < 12)
                        commit(reader);
                else if (reader->next < LOG_LEN)
                        decide_next(reader);
        }
        while (reader->next < LOG_LEN)
                decide_next(reader);
}
