/*
 * Measures the dedup table: memory per id, time per call, and the longest call. Times are processor time of
 * this thread, so that other load on the machine has little effect.
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/number.h"
#include "dedup/dedup.h"

#define WINDOW_MS (INT64_C(3) * 24 * 60 * 60 * 1000)
#define SLICE_MS (WINDOW_MS / 16)
#define BEGIN_MS (INT64_C(6925) * WINDOW_MS) /* start of a slice */
#define RECORDS_A_COMMIT 10000
#define MAX_BYTES 48.0
#define MAX_PAUSE_MS 10.0

struct times {
        uint32_t *ns;
        size_t n;
};

struct bench {
        struct dedup *dedup;
        size_t n_ids;
        uint64_t n_made; /* number of identities made, all different */
        size_t memory;   /* resident bytes without the table */
        struct times checks, expiries;
        uint64_t clock_ns; /* cost of reading the clock */
        int failed;
};

static void
fail(const char *what)
{
        fprintf(stderr, "dedup: %s\n", what);
        exit(EX_OSERR);
}

static uint64_t
now_ns(void)
{
        struct timespec now;

        (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t
clock_cost_ns(void)
{
        uint64_t begun = now_ns();

        for (int i = 0; i < 100000; i++)
                (void)now_ns();
        return (now_ns() - begun) / 100000;
}

static void
note(struct bench *bench, struct times *times, uint64_t begun_ns)
{
        uint64_t took = now_ns() - begun_ns;

        took -= took < bench->clock_ns ? took : bench->clock_ns;
        times->ns[times->n++] = took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
}

static size_t
resident_bytes(void)
{
        FILE *file = fopen("/proc/self/statm", "r");
        size_t all, resident;

        if (file == NULL || fscanf(file, "%zu %zu", &all, &resident) != 2)
                fail("cannot read /proc/self/statm");
        (void)fclose(file);
        return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static int
compare(const void *a, const void *b)
{
        uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

        return (left > right) - (left < right);
}

/* Print the times, and clear them. */
static void
report_times(struct bench *bench, struct times *times, const char *what)
{
        uint64_t sum = 0;
        double longest_ms;

        qsort(times->ns, times->n, sizeof(*times->ns), compare);
        for (size_t i = 0; i < times->n; i++)
                sum += times->ns[i];
        longest_ms = (double)times->ns[times->n - 1] / 1e6;
        printf("  %-7s mean %" PRIu64 " ns, p50 %" PRIu32 ", p99 %" PRIu32 ", p99.9 %" PRIu32
               ", longest %.3f ms%s\n",
               what, sum / times->n, times->ns[times->n / 2], times->ns[times->n * 99 / 100],
               times->ns[times->n * 999 / 1000], longest_ms, longest_ms > MAX_PAUSE_MS ? "  TOO LONG" : "");
        bench->failed |= longest_ms > MAX_PAUSE_MS;
        times->n = 0;
}

static void
report_memory(struct bench *bench)
{
        size_t n = dedup_size(bench->dedup);
        double bytes = (double)(resident_bytes() - bench->memory) / (double)n;

        printf("  memory  %zu ids, %.1f bytes each%s\n", n, bytes, bytes > MAX_BYTES ? "  TOO MUCH" : "");
        bench->failed |= bytes > MAX_BYTES;
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

static void
check(struct bench *bench, int64_t timestamp_ms)
{
        uint8_t identity[DEDUP_IDENTITY_SIZE];
        enum dedup_answer answer;
        uint64_t number = bench->n_made++, begun;

        make_identity(number, identity);
        begun = now_ns();
        if (dedup_check(bench->dedup, identity, number, (int64_t)number, timestamp_ms, &answer) != 0)
                fail("out of memory");
        note(bench, &bench->checks, begun);
        if (answer != DEDUP_NEW)
                fail("a new identity was reported as known");
}

static void
expire(struct bench *bench, int64_t timestamp_ms)
{
        uint64_t begun = now_ns();

        dedup_expire(bench->dedup, timestamp_ms);
        note(bench, &bench->expiries, begun);
}

/* Add n_ids new ids with evenly spread times, and expire old ones as often as a router commits. */
static void
fill(struct bench *bench, int64_t from_ms, int64_t span_ms)
{
        for (size_t i = 0; i < bench->n_ids; i++) {
                int64_t timestamp_ms =
                    from_ms + (int64_t)((double)span_ms * (double)i / (double)bench->n_ids);

                check(bench, timestamp_ms);
                if (i % RECORDS_A_COMMIT == 0)
                        expire(bench, timestamp_ms);
        }
}

static void
begin(struct bench *bench)
{
        dedup_free(bench->dedup);
        (void)malloc_trim(0);
        bench->memory = resident_bytes();
        bench->dedup = dedup_new((uint64_t)WINDOW_MS, DEDUP_COMPLETE);
        if (bench->dedup == NULL)
                fail("out of memory");
}

static void
bench_even_load(struct bench *bench)
{
        begin(bench);
        printf("spread over the window, from an empty table:\n");
        fill(bench, BEGIN_MS, WINDOW_MS);
        report_memory(bench);
        report_times(bench, &bench->checks, "check");
        report_times(bench, &bench->expiries, "expiry");
        printf("spread over another window, while the first expires:\n");
        fill(bench, BEGIN_MS + WINDOW_MS, WINDOW_MS);
        report_memory(bench);
        report_times(bench, &bench->checks, "check");
        report_times(bench, &bench->expiries, "expiry");
}

/* Add all ids within one slice, which expires at once, as with a backlog or after a restore. */
static void
bench_burst(struct bench *bench)
{
        begin(bench);
        printf("all within one slice:\n");
        fill(bench, BEGIN_MS, SLICE_MS);
        report_memory(bench);
        for (size_t i = 0; dedup_size(bench->dedup) > 0 && i < bench->n_ids; i++)
                expire(bench, BEGIN_MS + 3 * WINDOW_MS);
        report_times(bench, &bench->checks, "check");
        report_times(bench, &bench->expiries, "expiry");
}

int
main(int argc, char **argv)
{
        struct bench bench = {.n_ids = 10000000};
        struct error error;
        uint64_t n = bench.n_ids;

        if (argc > 2 || (argc == 2 && number_parse(argv[1], 10000, UINT32_MAX / 4, &n, &error) != 0)) {
                printf(
                    "usage: dedup [IDS]\n\n"
                    "Measure the dedup table with this number of ids (default: 10000000): memory, time per\n"
                    "call, and the longest call. Exits 1 if an id takes more than %.0f bytes or a call more\n"
                    "than %.0f ms.\n",
                    MAX_BYTES, MAX_PAUSE_MS);
                return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : EX_USAGE;
        }
        bench.n_ids = (size_t)n;
        bench.clock_ns = clock_cost_ns();
        bench.checks.ns = mem_alloc(bench.n_ids * sizeof(uint32_t));
        bench.expiries.ns = mem_alloc(bench.n_ids * sizeof(uint32_t));
        memset(bench.checks.ns, 1, bench.n_ids * sizeof(uint32_t)); /* make it resident before measuring */
        memset(bench.expiries.ns, 1, bench.n_ids * sizeof(uint32_t));
        bench_even_load(&bench);
        bench_burst(&bench);
        dedup_free(bench.dedup);
        free(bench.checks.ns);
        free(bench.expiries.ns);
        return bench.failed;
}
