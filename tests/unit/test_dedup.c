#include <check.h>
#include <malloc.h>
#include <string.h>

#include "base/compiler.h"
#include "dedup/dedup.h"
#include "suites.h"

#define WINDOW INT64_C(160000)
#define SLICE (WINDOW / 16)
#define T INT64_C(1795230240000) /* where a slice begins */
#define BODY 77
#define OTHER_BODY 88

static struct dedup *dedup;

static void
set_up(void)
{
        dedup = dedup_new(WINDOW, DEDUP_COMPLETE);
        ck_assert_ptr_nonnull(dedup);
}

static void
tear_down(void)
{
        dedup_free(dedup);
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

static enum dedup_answer
check(uint64_t number, uint64_t body, int64_t offset, int64_t timestamp_ms)
{
        uint8_t identity[DEDUP_IDENTITY_SIZE];
        enum dedup_answer answer;

        make_identity(number, identity);
        if (dedup_check(dedup, identity, body, offset, timestamp_ms, &answer) != 0)
                ck_abort_msg(
                    "dedup_check failed"); /* unlike ck_assert, it costs nothing if it does not fail */
        return answer;
}

START_TEST(test_second_record_of_an_identity_is_a_repeat)
{
        ck_assert_int_eq(check(1, BODY, 10, T), DEDUP_NEW);
        ck_assert_int_eq(check(2, BODY, 11, T), DEDUP_NEW);
        ck_assert_int_eq(check(1, BODY, 12, T), DEDUP_REPEAT);
        ck_assert_int_eq(check(1, BODY, 13, T + SLICE), DEDUP_REPEAT);
        ck_assert_int_eq(check(2, BODY, 14, T + WINDOW), DEDUP_REPEAT);
}
END_TEST

/* Look up identity 1. */
static enum dedup_answer
find(uint64_t body, int64_t offset, int64_t timestamp_ms)
{
        uint8_t identity[DEDUP_IDENTITY_SIZE];
        enum dedup_answer answer;

        make_identity(1, identity);
        ck_assert_int_eq(dedup_find(dedup, identity, body, offset, timestamp_ms, &answer), 0);
        return answer;
}

START_TEST(test_find_does_not_insert)
{
        ck_assert_int_eq(find(BODY, 10, T), DEDUP_NEW);
        ck_assert_uint_eq(dedup_size(dedup), 0);
        ck_assert_int_eq(check(1, BODY, 11, T), DEDUP_NEW);
        ck_assert_int_eq(find(BODY, 10, T), DEDUP_NEW);
        ck_assert_int_eq(find(BODY, 12, T), DEDUP_REPEAT);
        ck_assert_int_eq(find(OTHER_BODY, 12, T + WINDOW), DEDUP_CONFLICT);
        ck_assert_int_eq(find(BODY, 12, T + WINDOW + 1), DEDUP_NEW);
        ck_assert_uint_eq(dedup_size(dedup), 1);
}
END_TEST

/* If the topic has CreateTime, the producer chooses the timestamp. */
START_TEST(test_extreme_timestamps_are_handled)
{
        static const int64_t times[] = {INT64_MIN, -1, 0, 1, T, INT64_MAX - 1, INT64_MAX};
        int64_t offset = 10;

        for (size_t i = 0; i < ARRAY_LEN(times); i++) {
                ck_assert_int_eq(check(i, BODY, offset++, times[i]), DEDUP_NEW);
                ck_assert_int_eq(check(i, BODY, offset++, times[i]), DEDUP_REPEAT);
                ck_assert(dedup_covers(dedup, times[i]));
                (void)dedup_restore_start(WINDOW, times[i]);
                (void)dedup_trusted_from(WINDOW, times[i]);
        }
        for (size_t i = 0; i < ARRAY_LEN(times); i++)
                dedup_expire(dedup, times[i]);
        ck_assert_int_eq(check(0, BODY, offset++, INT64_MAX), DEDUP_NEW);
}
END_TEST

START_TEST(test_record_is_not_a_repeat_of_itself)
{
        for (int i = 0; i < 3; i++)
                ck_assert_int_eq(check(1, BODY, 10, T), DEDUP_NEW);
        ck_assert_int_eq(check(1, BODY, 9, T), DEDUP_NEW);
        ck_assert_int_eq(check(1, BODY, 10, T), DEDUP_REPEAT);
}
END_TEST

START_TEST(test_other_body_is_a_conflict)
{
        ck_assert_int_eq(check(1, BODY, 10, T), DEDUP_NEW);
        ck_assert_int_eq(check(1, OTHER_BODY, 11, T), DEDUP_CONFLICT);
        ck_assert_int_eq(check(1, BODY, 12, T), DEDUP_REPEAT);
        ck_assert_int_eq(check(1, OTHER_BODY + 1, 13, T + 3 * SLICE), DEDUP_CONFLICT);
}
END_TEST

START_TEST(test_repeated_conflict_is_a_repeat)
{
        ck_assert_int_eq(check(1, BODY, 10, T), DEDUP_NEW);
        for (int64_t i = 0; i < 40; i++)
                ck_assert_int_eq(check(1, OTHER_BODY + (uint64_t)i, 11 + i, T + i * SLICE / 4),
                                 DEDUP_CONFLICT);
        for (int64_t i = 0; i < 40; i++)
                ck_assert_int_eq(check(1, OTHER_BODY + (uint64_t)i, 51 + i, T + 10 * SLICE), DEDUP_REPEAT);
        ck_assert_int_eq(check(1, BODY, 91, T + 10 * SLICE), DEDUP_REPEAT);
        ck_assert_int_eq(check(1, OTHER_BODY + 40, 92, T + 10 * SLICE), DEDUP_CONFLICT);
}
END_TEST

START_TEST(test_rereading_finds_the_same_conflicts)
{
        for (int i = 0; i < 3; i++) {
                ck_assert_int_eq(check(1, BODY, 10, T), DEDUP_NEW);
                ck_assert_int_eq(check(1, OTHER_BODY, 11, T), DEDUP_CONFLICT);
                ck_assert_int_eq(check(1, OTHER_BODY, 12, T + SLICE), DEDUP_REPEAT);
                ck_assert_int_eq(check(1, BODY, 13, T + SLICE), DEDUP_REPEAT);
        }
        ck_assert_int_eq(check(1, BODY, 14, T + SLICE + WINDOW), DEDUP_REPEAT);
        ck_assert_int_eq(check(1, OTHER_BODY, 15, T + SLICE + WINDOW), DEDUP_REPEAT);
        ck_assert_int_eq(check(1, OTHER_BODY, 16, T + SLICE + 2 * WINDOW + 1), DEDUP_NEW);
}
END_TEST

START_TEST(test_window_is_exact_to_the_millisecond)
{
        for (int64_t at = 0; at < 2 * SLICE; at += 937) {
                uint64_t number = (uint64_t)at * 2;

                ck_assert_int_eq(check(number, BODY, 10, T + at), DEDUP_NEW);
                ck_assert_int_eq(check(number + 1, BODY, 10, T + at), DEDUP_NEW);
                ck_assert_int_eq(check(number, BODY, 11, T + at + WINDOW), DEDUP_REPEAT);
                ck_assert_int_eq(check(number + 1, BODY, 11, T + at + WINDOW + 1), DEDUP_NEW);
        }
}
END_TEST

START_TEST(test_window_starts_at_the_last_record_even_if_it_was_a_repeat)
{
        ck_assert_int_eq(check(1, BODY, 10, T), DEDUP_NEW);
        for (int64_t i = 1; i <= 50; i++)
                ck_assert_int_eq(check(1, BODY, 10 + i, T + i * WINDOW), DEDUP_REPEAT);
        ck_assert_int_eq(check(1, BODY, 61, T + 51 * WINDOW + 1), DEDUP_NEW);
}
END_TEST

START_TEST(test_times_before_the_epoch_are_valid)
{
        ck_assert_int_eq(check(1, BODY, 10, -1), DEDUP_NEW);
        ck_assert_int_eq(check(1, BODY, 11, WINDOW - 1), DEDUP_REPEAT);
        ck_assert_int_eq(check(2, BODY, 12, -1), DEDUP_NEW);
        ck_assert_int_eq(check(2, BODY, 13, WINDOW), DEDUP_NEW);
}
END_TEST

START_TEST(test_size_counts_an_identity_once_per_slice)
{
        ck_assert_uint_eq(dedup_size(dedup), 0);
        (void)check(1, BODY, 10, T);
        (void)check(1, BODY, 11, T + SLICE - 1);
        (void)check(2, BODY, 12, T);
        ck_assert_uint_eq(dedup_size(dedup), 2);
        (void)check(1, BODY, 13, T + SLICE);
        ck_assert_uint_eq(dedup_size(dedup), 3);
}
END_TEST

START_TEST(test_expiry_keeps_entries_needed_at_that_time)
{
        for (int64_t at = 0; at < SLICE; at += 937) {
                uint64_t number = (uint64_t)at;

                ck_assert_int_eq(check(number, BODY, 10, T + at), DEDUP_NEW);
                dedup_expire(dedup, T + at + WINDOW);
                ck_assert_int_eq(check(number, BODY, 11, T + at + WINDOW), DEDUP_REPEAT);
                tear_down();
                set_up();
        }
}
END_TEST

START_TEST(test_expiry_drops_unneeded_entries)
{
        (void)check(1, BODY, 10, T);
        (void)check(2, BODY, 11, T + SLICE);
        dedup_expire(dedup, T + WINDOW + 2 * SLICE - 1);
        ck_assert_uint_eq(dedup_size(dedup), 2);
        dedup_expire(dedup, T + WINDOW + 2 * SLICE);
        ck_assert_uint_eq(dedup_size(dedup), 1);
        ck_assert_int_eq(check(2, BODY, 12, T + SLICE + WINDOW), DEDUP_REPEAT);
        dedup_expire(dedup, T + 3 * WINDOW);
        ck_assert_uint_eq(dedup_size(dedup), 0);
        ck_assert_int_eq(check(2, BODY, 13, T + 3 * WINDOW), DEDUP_NEW);
        dedup_expire(dedup, T); /* an earlier time has no effect */
        ck_assert_uint_eq(dedup_size(dedup), 1);
}
END_TEST

START_TEST(test_table_reports_times_it_does_not_cover)
{
        int64_t start = dedup_restore_start(WINDOW, T);

        ck_assert(dedup_covers(dedup, 0)); /* nothing is missing */
        tear_down();
        dedup = dedup_new(WINDOW, start);
        ck_assert_ptr_nonnull(dedup);
        ck_assert(dedup_covers(dedup, T - SLICE));
        ck_assert(dedup_covers(dedup, start + WINDOW));
        ck_assert(!dedup_covers(dedup, start + WINDOW - 1));
        dedup_expire(dedup, T + WINDOW);
        ck_assert(dedup_covers(dedup, T + WINDOW - SLICE));
        ck_assert(!dedup_covers(dedup, T));
        dedup_expire(dedup, T); /* dropped entries do not return */
        ck_assert(!dedup_covers(dedup, T));
}
END_TEST

START_TEST(test_restore_start_is_a_slice_boundary_at_least_a_window_earlier)
{
        for (int64_t at = 0; at < 3 * SLICE; at += 613) {
                int64_t start = dedup_restore_start(WINDOW, T + at);

                ck_assert_int_eq(start % SLICE, 0);
                ck_assert_int_le(start, T + at - WINDOW);
                ck_assert_int_ge(start, T + at - WINDOW - 2 * SLICE);
        }
        ck_assert_int_le(dedup_restore_start(1, T), T - 1);
}
END_TEST

size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

/* The bytes in use, from malloc or from the sanitizer that replaces it. */
static size_t
allocated_bytes(void)
{
        struct mallinfo2 info = mallinfo2();

        if (__sanitizer_get_current_allocated_bytes != NULL)
                return __sanitizer_get_current_allocated_bytes();
        return info.uordblks + info.hblkhd;
}

START_TEST(test_trusted_time_is_at_most_a_window_and_two_slices_later)
{
        int64_t from = dedup_trusted_from(WINDOW, T);

        ck_assert_int_ge(dedup_restore_start(WINDOW, from), T);
        ck_assert_int_le(from, T + WINDOW + 2 * (WINDOW / 16));
        ck_assert_int_ge(dedup_restore_start(1, dedup_trusted_from(1, T)), T);
}
END_TEST

START_TEST(test_remembered_record_counts_like_a_checked_one)
{
        uint8_t identity[DEDUP_IDENTITY_SIZE];

        make_identity(1, identity);
        ck_assert_int_eq(dedup_remember(dedup, identity, BODY, 10, T), 0);
        ck_assert_int_eq(dedup_remember(dedup, identity, OTHER_BODY, 11, T + SLICE), 0);
        ck_assert_uint_eq(dedup_size(dedup), 2);
        ck_assert_int_eq(check(1, BODY, 12, T + 2 * SLICE), DEDUP_REPEAT);
        ck_assert_int_eq(check(1, OTHER_BODY, 13, T + WINDOW + 1), DEDUP_REPEAT);
        ck_assert_int_eq(check(2, BODY, 14, T), DEDUP_NEW);
}
END_TEST

/* A large slice is freed over several calls: meanwhile, look-ups ignore its rest, and find new entries. */
START_TEST(test_slice_being_freed_is_not_searched)
{
        enum { N = 600000 };

        for (int64_t i = 0; i < N; i++)
                (void)check((uint64_t)i, BODY, i, T);
        dedup_expire(dedup, T + 3 * WINDOW);
        ck_assert_uint_eq(dedup_size(dedup), 0);
        ck_assert_int_eq(check(0, BODY, N, T), DEDUP_NEW);
        ck_assert_int_eq(check(0, BODY, N + 1, T), DEDUP_REPEAT);
        ck_assert_int_eq(check(N - 1, BODY, N + 2, T + 1), DEDUP_NEW);
        ck_assert_uint_eq(dedup_size(dedup), 2);
}
END_TEST

START_TEST(test_entries_use_at_most_48_bytes_and_are_freed)
{
        static const uint64_t sizes[] = {1200000, 2200000};
        uint64_t n = sizes[_i];
        size_t before = allocated_bytes(), full, n_new = 0;

        ck_assert_uint_gt(before, 0);
        for (uint64_t i = 0; i < n; i++)
                n_new += check(i, i, (int64_t)i, T + (int64_t)(i * WINDOW / n)) == DEDUP_NEW;
        ck_assert_uint_eq(n_new, n);
        ck_assert_uint_eq(dedup_size(dedup), n);
        full = allocated_bytes() - before;
        full += n * sizeof(uint32_t); /* mapped, not allocated: the buckets */
        ck_assert_msg(full >= n * 36 && full <= n * 48, "%zu bytes for %zu entries", full, (size_t)n);
        for (int i = 0; i < 20; i++) {
                dedup_expire(dedup, T + 3 * WINDOW);
                ck_assert_uint_eq(dedup_size(dedup), 0);
        }
        ck_assert_uint_lt(allocated_bytes(), before + 65536);
}
END_TEST

START_TEST(test_files_end_with_a_record_that_has_an_identity)
{
        struct dedup_seal seal;

        dedup_begin_at(dedup, 0);
        for (uint64_t i = 0; i < 10; i++)
                ck_assert_int_eq(check(i, 1, (int64_t)i, 5000), DEDUP_NEW);
        ck_assert(dedup_seal(dedup, 15, 1, &seal)); /* of 10 to 14, there is nothing to remember */
        ck_assert_int_eq(seal.range.to, 10);
        ck_assert_int_eq(seal.range.last.offset, 9);
        slice_list_free(seal.slices);
        dedup_end_seal(dedup, NULL);
        ck_assert_int_eq(check(10, 1, 12, 5000), DEDUP_NEW);
        ck_assert_int_eq(check(10, 1, 13, 5000), DEDUP_REPEAT);
}
END_TEST

START_TEST(test_dedup_free_accepts_null)
{
        dedup_free(NULL);
}
END_TEST

Suite *
suite_dedup(void)
{
        Suite *suite = suite_create("dedup");
        TCase *tcase = tcase_create("dedup");

        tcase_add_checked_fixture(tcase, set_up, tear_down);
        tcase_set_timeout(tcase, 60);
        tcase_add_test(tcase, test_trusted_time_is_at_most_a_window_and_two_slices_later);
        tcase_add_test(tcase, test_second_record_of_an_identity_is_a_repeat);
        tcase_add_test(tcase, test_find_does_not_insert);
        tcase_add_test(tcase, test_extreme_timestamps_are_handled);
        tcase_add_test(tcase, test_record_is_not_a_repeat_of_itself);
        tcase_add_test(tcase, test_other_body_is_a_conflict);
        tcase_add_test(tcase, test_repeated_conflict_is_a_repeat);
        tcase_add_test(tcase, test_rereading_finds_the_same_conflicts);
        tcase_add_test(tcase, test_window_is_exact_to_the_millisecond);
        tcase_add_test(tcase, test_window_starts_at_the_last_record_even_if_it_was_a_repeat);
        tcase_add_test(tcase, test_times_before_the_epoch_are_valid);
        tcase_add_test(tcase, test_size_counts_an_identity_once_per_slice);
        tcase_add_test(tcase, test_expiry_keeps_entries_needed_at_that_time);
        tcase_add_test(tcase, test_expiry_drops_unneeded_entries);
        tcase_add_test(tcase, test_table_reports_times_it_does_not_cover);
        tcase_add_test(tcase, test_restore_start_is_a_slice_boundary_at_least_a_window_earlier);
        tcase_add_test(tcase, test_remembered_record_counts_like_a_checked_one);
        tcase_add_test(tcase, test_slice_being_freed_is_not_searched);
        tcase_add_loop_test(tcase, test_entries_use_at_most_48_bytes_and_are_freed, 0, 2);
        tcase_add_test(tcase, test_files_end_with_a_record_that_has_an_identity);
        tcase_add_test(tcase, test_dedup_free_accepts_null);
        suite_add_tcase(suite, tcase);
        return suite;
}
