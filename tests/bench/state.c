/*
 * Measures dedup tables with files: memory, disk, time per call, the longest call, and a restart. One thread, as
 * in a router, fills the tables of several partitions by a window's records in the order of their times; the
 * state's thread writes. Memory is what the process has of its own, without the page cache.
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/number.h"
#include "dedup/state.h"

#define WINDOW_MS (INT64_C(3) * 24 * 60 * 60 * 1000)
#define BEGIN_MS (INT64_C(6925) * WINDOW_MS)
#define RECORDS_A_COMMIT 10000
#define ENTRIES 65536
#define N_PARTITIONS 6
#define N_LOOKUPS 1000000

struct table {
        struct dedup *dedup;
        int64_t next; /* offset */
};

struct bench {
        struct state *state;
        struct table tables[N_PARTITIONS];
        uint64_t n_ids;
        uint64_t most_bytes;
        uint64_t longest_ns;
};

static void
fail(const char *what)
{
        fprintf(stderr, "state: %s\n", what);
        exit(EX_SOFTWARE);
}

static uint64_t
now_ns(clockid_t clock)
{
        struct timespec now;

        (void)clock_gettime(clock, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Resident memory that is not a mapped file. */
static uint64_t
own_bytes(void)
{
        FILE *file = fopen("/proc/self/statm", "r");
        uint64_t all, resident, shared;

        if (file == NULL || fscanf(file, "%" SCNu64 " %" SCNu64 " %" SCNu64, &all, &resident, &shared) != 3)
                fail("cannot read /proc/self/statm");
        (void)fclose(file);
        return (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Make an identity whose bits look random, like a digest. */
static void
make_identity(uint64_t number, uint8_t identity[DEDUP_IDENTITY_SIZE])
{
        for (size_t i = 0; i < DEDUP_IDENTITY_SIZE; i += sizeof(number)) {
                number = (number ^ number >> 31) * UINT64_C(0x9e3779b97f4a7c15) + 1;
                number ^= number >> 29;
                memcpy(identity + i, &number, sizeof(number));
        }
}

static struct dedup *
find(void *arg, int32_t partition, uint64_t number)
{
        struct bench *bench = arg;
        struct dedup *dedup = bench->tables[partition].dedup;

        return dedup != NULL && dedup_number(dedup) == number ? dedup : NULL;
}

static void
commit(struct bench *bench, int64_t timestamp_ms, size_t at_least)
{
        uint64_t begun = now_ns(CLOCK_MONOTONIC), took;

        state_take_results(bench->state, find, bench);
        for (int32_t i = 0; i < N_PARTITIONS; i++) {
                dedup_expire(bench->tables[i].dedup, timestamp_ms);
                state_tend(bench->state, i, bench->tables[i].dedup, bench->tables[i].next, at_least);
        }
        took = now_ns(CLOCK_MONOTONIC) - begun;
        bench->longest_ns = took > bench->longest_ns ? took : bench->longest_ns;
}

/* Wait until nothing is being written. */
static void
settle(struct bench *bench, int64_t timestamp_ms)
{
        int is_busy;

        do {
                commit(bench, timestamp_ms, SIZE_MAX);
                is_busy = 0;
                for (int32_t i = 0; i < N_PARTITIONS; i++)
                        is_busy |= dedup_is_busy(bench->tables[i].dedup);
                (void)usleep(1000);
        } while (is_busy);
}

/* The time of an id, of those in the window. */
static int64_t
time_of(const struct bench *bench, uint64_t number)
{
        return BEGIN_MS + (int64_t)((double)WINDOW_MS * 0.99 * (double)number / (double)bench->n_ids);
}

static void
fill(struct bench *bench)
{
        uint64_t begun = now_ns(CLOCK_MONOTONIC);

        for (uint64_t number = 0; number < bench->n_ids; number++) {
                struct table *table = &bench->tables[number % N_PARTITIONS];
                uint8_t identity[DEDUP_IDENTITY_SIZE];
                enum dedup_answer answer;

                make_identity(number, identity);
                if (dedup_check(table->dedup, identity, number, table->next++, time_of(bench, number),
                                &answer) != 0)
                        fail("dedup_check failed");
                if (answer != DEDUP_NEW)
                        fail("a new identity was reported as known");
                if (number % RECORDS_A_COMMIT == RECORDS_A_COMMIT - 1) {
                        uint64_t bytes = own_bytes();

                        commit(bench, time_of(bench, number), ENTRIES);
                        bench->most_bytes = bytes > bench->most_bytes ? bytes : bench->most_bytes;
                }
        }
        printf("  filled in %.1f s, most memory %.0f MB\n", (double)(now_ns(CLOCK_MONOTONIC) - begun) / 1e9,
               (double)bench->most_bytes / 1e6);
}

static int
compare(const void *a, const void *b)
{
        uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

        return (left > right) - (left < right);
}

/* Look up ids, known or new ones, and print the time of a call. */
static void
look_up(struct bench *bench, const char *what, uint64_t first, uint64_t step, enum dedup_answer expected)
{
        uint32_t *times = mem_alloc(N_LOOKUPS * sizeof(*times));
        uint64_t cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);

        for (size_t i = 0; i < N_LOOKUPS; i++) {
                uint64_t number = first + (i * step) % bench->n_ids, begun;
                struct table *table = &bench->tables[number % N_PARTITIONS];
                uint8_t identity[DEDUP_IDENTITY_SIZE];
                enum dedup_answer answer;

                make_identity(number, identity);
                begun = now_ns(CLOCK_MONOTONIC);
                if (dedup_find(table->dedup, identity, number, INT64_MAX, time_of(bench, bench->n_ids),
                               &answer) != 0)
                        fail("dedup_find failed");
                times[i] = (uint32_t)(now_ns(CLOCK_MONOTONIC) - begun);
                if (answer != expected)
                        fail("a wrong answer");
        }
        cpu = (now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu) / N_LOOKUPS;
        qsort(times, N_LOOKUPS, sizeof(*times), compare);
        printf("  %-6s processor time %" PRIu64 " ns; time p50 %" PRIu32 ", p99 %" PRIu32
               ", longest %.1f ms\n",
               what, cpu, times[N_LOOKUPS / 2], times[(size_t)N_LOOKUPS * 99 / 100],
               times[N_LOOKUPS - 1] / 1e6);
        free(times);
}

static void
report(struct bench *bench)
{
        struct dedup_files all = {0};
        size_t n = 0;

        for (int32_t i = 0; i < N_PARTITIONS; i++) {
                struct dedup_files files = dedup_files(bench->tables[i].dedup);

                all.n += files.n;
                all.bytes += files.bytes;
                all.memory += files.memory;
                n += dedup_size(bench->tables[i].dedup);
        }
        (void)malloc_trim(0);
        printf("  %zu entries, %zu files, on disk %.1f bytes each; memory %.0f MB, %.0f of it for files; "
               "longest "
               "commit %.1f ms\n",
               n, all.n, (double)all.bytes / (double)n, (double)own_bytes() / 1e6, (double)all.memory / 1e6,
               (double)bench->longest_ns / 1e6);
}

static void
open_state(struct bench *bench, const char *directory)
{
        struct error error;

        bench->state = state_open(directory, "deliveries", &error);
        if (bench->state == NULL)
                fail(error.text);
        for (int32_t i = 0; i < N_PARTITIONS; i++) {
                bench->tables[i].dedup = dedup_new(WINDOW_MS, DEDUP_COMPLETE);
                if (bench->tables[i].dedup == NULL)
                        fail("out of memory");
                dedup_begin_at(bench->tables[i].dedup, 0);
        }
}

static void
close_state(struct bench *bench)
{
        for (int32_t i = 0; i < N_PARTITIONS; i++)
                dedup_free(bench->tables[i].dedup);
        state_close(bench->state);
}

static void
restart(struct bench *bench, const char *directory)
{
        uint64_t begun;
        int64_t most = 0;

        close_state(bench);
        begun = now_ns(CLOCK_MONOTONIC);
        open_state(bench, directory);
        for (int32_t i = 0; i < N_PARTITIONS; i++) {
                const struct state_wanted wanted = {.partition = i,
                                                    .to = bench->tables[i].next,
                                                    .complete_ms = BEGIN_MS};
                int64_t next;

                if (!state_restore(bench->state, &wanted, bench->tables[i].dedup, &next))
                        fail("nothing was restored");
                most = bench->tables[i].next - next > most ? bench->tables[i].next - next : most;
        }
        printf("  files read in %.2f s; at most %" PRId64
               " records of a partition are to be read from the log\n",
               (double)(now_ns(CLOCK_MONOTONIC) - begun) / 1e9, most);
}

int
main(int argc, char **argv)
{
        struct bench bench = {.n_ids = 1000000};
        struct error error;

        if (argc < 2 || argc > 3 || strcmp(argv[1], "--help") == 0 ||
            (argc == 3 && number_parse(argv[2], 10000, UINT32_MAX, &bench.n_ids, &error) != 0)) {
                printf(
                    "usage: state DIRECTORY [IDS]\n\n"
                    "Measure dedup tables of %d partitions with this number of ids (default: 1000000), with\n"
                    "files in a new directory: memory, disk, time per call, and a restart.\n",
                    N_PARTITIONS);
                return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : EX_USAGE;
        }
        log_set_level(LOG_LEVEL_WARNING);
        open_state(&bench, argv[1]);
        printf("%" PRIu64 " ids over a window:\n", bench.n_ids);
        fill(&bench);
        settle(&bench, time_of(&bench, bench.n_ids - 1));
        report(&bench);
        look_up(&bench, "new", bench.n_ids, 1, DEDUP_NEW);
        look_up(&bench, "known", 0, 7919 * N_PARTITIONS + 1, DEDUP_REPEAT);
        restart(&bench, argv[1]);
        close_state(&bench);
        return 0;
}
