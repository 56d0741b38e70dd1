#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "dedup/run_writer.h"
#include "scratch.h"
#include "suites.h"

#define FROM INT64_C(5000000000)
#define T INT64_C(1795230240000)
#define MAX_ENTRIES 6000

static const uint8_t owner[16] = "the owner of all";
static int directory;
static uint64_t seed;

static void
set_up(void)
{
        const char *path;

        scratch_setup();
        path = scratch_path("state");
        ck_assert_int_eq(mkdir(path, 0700), 0);
        directory = open(path, O_RDONLY | O_DIRECTORY);
        ck_assert_int_ge(directory, 0);
}

static void
tear_down(void)
{
        (void)close(directory);
        scratch_teardown();
}

/* xorshift64*: a number below n, the same in each run. */
static uint64_t
dice(uint64_t n)
{
        seed ^= seed >> 12;
        seed ^= seed << 25;
        seed ^= seed >> 27;
        return (seed * UINT64_C(0x2545f4914f6cdd1d) >> 33) % n;
}

static int
compare(const void *a, const void *b)
{
        return dedup_entry_compare(a, b);
}

/* Sort entries, and keep one of each pair. Returns how many are left. */
static size_t
sort(struct dedup_entry *entries, size_t n)
{
        size_t n_kept = 0;

        qsort(entries, n, sizeof(*entries), compare);
        for (size_t i = 0; i < n; i++) {
                if (n_kept == 0 || compare(&entries[n_kept - 1], &entries[i]) != 0)
                        entries[n_kept++] = entries[i];
        }
        return n_kept;
}

/*
 * Make sorted entries: few first bytes, so that keys of the index are equal, and sometimes very many bodies
 * of one identity. Returns their number.
 */
static size_t
make_entries(struct dedup_entry *entries, int64_t from)
{
        size_t n = 1 + dice(MAX_ENTRIES), n_keys = 1 + dice(dice(2) == 0 ? 5 : 100000), n_left = n;

        while (n_left > 0) {
                struct dedup_entry *entry = &entries[--n_left];
                uint32_t key = (uint32_t)(dice(n_keys) * UINT64_C(2654435761));
                size_t n_bodies = dice(20) == 0 ? 1 + dice(300) : 1;

                memset(entry, 0, sizeof(*entry));
                memcpy(entry->identity, &key, sizeof(key));
                for (size_t i = 4; i < DEDUP_IDENTITY_SIZE; i++)
                        entry->identity[i] = (uint8_t)dice(256);
                entry->body = dice(3) == 0 ? UINT64_MAX - 1 : dice(1000);
                entry->first_offset = from + (int64_t)dice(1000000);
                entry->last_ms = T + (int64_t)dice(100000);
                for (size_t i = 1; i < n_bodies && n_left > 0; i++) {
                        entries[n_left - 1] = *entry;
                        entries[--n_left].body = 2000 + i;
                        entries[n_left].last_ms = T + (int64_t)dice(100000);
                        entries[n_left].first_offset = from + (int64_t)dice(1000000);
                }
        }
        return sort(entries, n);
}

static struct run *
write_run(const struct dedup_entry *entries, size_t n, int64_t from)
{
        struct run_range range = {.from = from,
                                  .to = from + 1000000,
                                  .complete_from_ms = T,
                                  .before.offset = -1,
                                  .last.offset = from + 999999};
        struct error error;
        struct run *run;

        memcpy(range.owner, owner, sizeof(owner));
        run = run_write(directory, &range, entries, n, &error);
        ck_assert_msg(run != NULL, "%s", run == NULL ? error.text : "");
        return run;
}

/* The definition, for entries of several runs. */
static enum dedup_answer
expected(const struct dedup_entry *entries, size_t n, const struct dedup_question *question)
{
        enum dedup_answer answer = DEDUP_NEW;

        for (size_t i = 0; i < n; i++) {
                if (memcmp(entries[i].identity, question->identity, DEDUP_IDENTITY_SIZE) != 0)
                        continue;
                if (entries[i].body == question->body &&
                    dedup_is_earlier(entries[i].first_offset, entries[i].last_ms, question))
                        return DEDUP_REPEAT;
                if (entries[i].last_ms >= question->oldest_ms)
                        answer = DEDUP_CONFLICT;
        }
        return answer;
}

/* Ask for known pairs, known identities with other bodies, and identities that differ in the last byte. */
static void
ask(struct run *run, const struct dedup_entry *entries, size_t n, size_t n_questions)
{
        for (size_t i = 0; i < n_questions; i++) {
                const struct dedup_entry *entry = &entries[dice(n)];
                struct dedup_question question = {.body = entry->body,
                                                  .offset = INT64_MAX,
                                                  .oldest_ms = T + (int64_t)dice(110000)};
                enum dedup_answer answer;

                memcpy(question.identity, entry->identity, sizeof(question.identity));
                if (dice(3) == 0)
                        question.body = dice(3000);
                if (dice(4) == 0)
                        question.identity[15] ^= 1;
                ck_assert_int_eq(run_find(run, &question, &answer), 0);
                if (answer != expected(entries, n, &question))
                        ck_abort_msg("answer %d instead of %d", (int)answer,
                                     (int)expected(entries, n, &question));
        }
}

START_TEST(test_run_answers_as_its_entries_do)
{
        struct dedup_entry *entries = calloc(MAX_ENTRIES, sizeof(*entries));
        size_t n;
        struct run *run;

        seed = (uint64_t)_i + 1;
        n = make_entries(entries, FROM);
        run = write_run(entries, n, FROM);
        ask(run, entries, n, 2000);
        run_free(run);
        free(entries);
}
END_TEST

START_TEST(test_merged_run_answers_as_all_its_entries_do)
{
        enum { N_RUNS = 3 };
        struct dedup_entry *entries = calloc((size_t)N_RUNS * MAX_ENTRIES, sizeof(*entries));
        struct run *runs[N_RUNS], *merged;
        atomic_int stop = 0;
        struct error error;
        int is_damaged;
        size_t n = 0;

        seed = (uint64_t)_i + 100;
        for (int64_t i = 0; i < N_RUNS; i++) {
                int64_t from = FROM + i * 1000000;
                size_t n_own = make_entries(entries + n, from);

                /* Some pairs and identities are in the run before, too. */
                for (size_t k = 0; i > 0 && k < n_own; k += 5) {
                        const struct dedup_entry *other = &entries[dice(n)];

                        memcpy(entries[n + k].identity, other->identity, DEDUP_IDENTITY_SIZE);
                        if (dice(2) == 0)
                                entries[n + k].body = other->body;
                }
                n_own = sort(entries + n, n_own);
                runs[i] = write_run(entries + n, n_own, from);
                n += n_own;
        }
        merged = run_merge(directory, runs, N_RUNS, &stop, &is_damaged, &error);
        ck_assert_msg(merged != NULL, "%s", merged == NULL ? error.text : "");
        ck_assert_int_eq(run_header(merged)->range.to, FROM + 3000000);
        ask(merged, entries, n, 2000);
        for (size_t i = 0; i < N_RUNS; i++)
                run_free(runs[i]);
        run_free(merged);
        free(entries);
}
END_TEST

/* No change of a byte is believed: the file is refused, or a lookup fails, or the byte is in no checksum. */
START_TEST(test_changed_byte_is_noticed)
{
        struct dedup_entry entries[60];
        struct dedup_question question = {.offset = INT64_MAX, .oldest_ms = T};
        char *path, name[RUN_NAME_SIZE];
        size_t n = ARRAY_LEN(entries), n_noticed = 0, n_unused = 0;
        struct stat status;
        struct run *run;
        uint8_t byte;
        int fd;

        seed = 7;
        for (size_t i = 0; i < n; i++) {
                entries[i] = (struct dedup_entry){.body = i, .first_offset = FROM + (int64_t)i, .last_ms = T};
                entries[i].identity[0] = (uint8_t)i;
        }
        run = write_run(entries, n, FROM);
        (void)run_make_name(&run_header(run)->range, name);
        path = mem_printf("%s/%s", scratch_path("state"), name);
        run_free(run);
        fd = open(path, O_RDWR);
        ck_assert_int_eq(fstat(fd, &status), 0);
        for (off_t at = 0; at < status.st_size; at++) {
                struct error error;
                int is_noticed = 0;

                ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
                byte ^= (uint8_t)(1 << dice(8));
                ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
                run = run_open(directory, name, owner, &error);
                is_noticed = run == NULL;
                for (size_t i = 0; run != NULL && i < n; i++) {
                        enum dedup_answer answer = DEDUP_NEW;

                        memcpy(question.identity, entries[i].identity, sizeof(question.identity));
                        question.body = entries[i].body;
                        if (run_find(run, &question, &answer) != 0)
                                is_noticed = 1;
                        else
                                ck_assert_int_eq(answer, DEDUP_REPEAT);
                }
                run_free(run);
                n_noticed += (size_t)is_noticed;
                n_unused += (size_t)!is_noticed;
                run = write_run(entries, n, FROM);
                run_free(run);
                (void)close(fd);
                fd = open(path, O_RDWR);
        }
        (void)close(fd);
        /* The rest of the first block, and four bytes of each other one, are zeros that nobody reads. */
        ck_assert_uint_gt(n_noticed, n_unused);
        ck_assert_uint_le(n_unused, RUN_BLOCK_SIZE - sizeof(struct run_header) + 4 * 5);
        free(path);
}
END_TEST

Suite *
suite_run(void)
{
        Suite *suite = suite_create("run");
        TCase *tcase = tcase_create("run");

        tcase_add_checked_fixture(tcase, set_up, tear_down);
        tcase_set_timeout(tcase, 120);
        tcase_add_loop_test(tcase, test_run_answers_as_its_entries_do, 0, 20);
        tcase_add_loop_test(tcase, test_merged_run_answers_as_all_its_entries_do, 0, 10);
        tcase_add_test(tcase, test_changed_byte_is_noticed);
        suite_add_tcase(suite, tcase);
        return suite;
}
