#include <check.h>
#include <string.h>

#include "dedup/slice.h"
#include "suites.h"

#define START_MS INT64_C(1795230000000)

static struct slice *slice;

static void
set_up(void)
{
        slice = slice_new(START_MS);
        ck_assert_ptr_nonnull(slice);
}

static void
tear_down(void)
{
        slice_free(slice);
}

/* Make an identity. If `together` is set, all have the same hash. */
static void
make_identity(uint32_t number, int together, uint8_t identity[16])
{
        memset(identity, 0xa5, 16);
        memcpy(identity + (together ? 12 : 0), &number, sizeof(number));
}

static void
remember(uint32_t number, uint64_t body, int64_t offset, int64_t since_start)
{
        const struct slice_entry *entry;
        uint8_t identity[16];
        int is_other;

        make_identity(number, 0, identity);
        is_other = slice_remember(slice, SLICE_FIRST_BODY, identity, body, offset, START_MS + since_start);
        entry = slice_find(slice, identity);
        /* Unlike ck_assert, this costs nothing if it does not fail. */
        if (entry == NULL || is_other != (entry->body != body))
                ck_abort_msg("slice_remember returned %d", is_other);
}

static const struct slice_entry *
find(uint32_t number)
{
        uint8_t identity[16];

        make_identity(number, 0, identity);
        return slice_find(slice, identity);
}

START_TEST(test_new_slice_is_empty)
{
        ck_assert_int_eq(slice_start_ms(slice), START_MS);
        ck_assert_uint_eq(slice_size(slice), 0);
        ck_assert_ptr_null(find(0));
}
END_TEST

START_TEST(test_entry_has_the_first_offset_and_the_last_time)
{
        const struct slice_entry *entry;

        remember(1, 77, 500, 10);
        remember(1, 77, 600, 30);
        remember(1, 77, 550, 20);
        entry = find(1);
        ck_assert_ptr_nonnull(entry);
        ck_assert_int_eq(entry->first_offset, 500);
        ck_assert_uint_eq(entry->last_ms, 30);
        ck_assert_uint_eq(slice_size(slice), 1);
        ck_assert_ptr_null(find(2));
        remember(1, 77, 400, 5);
        ck_assert_int_eq(entry->first_offset, 400);
        ck_assert_uint_eq(entry->last_ms, 30);
}
END_TEST

START_TEST(test_another_body_changes_nothing)
{
        const struct slice_entry *entry;

        remember(1, 77, 500, 10);
        remember(1, 88, 400, 30);
        entry = find(1);
        ck_assert_int_eq(entry->first_offset, 500);
        ck_assert_uint_eq(entry->body, 77);
        ck_assert_uint_eq(entry->last_ms, 10);
        ck_assert_uint_eq(slice_size(slice), 1);
}
END_TEST

START_TEST(test_adding_a_record_again_changes_nothing)
{
        remember(1, 77, 500, 10);
        remember(1, 77, 500, 10);
        ck_assert_int_eq(find(1)->first_offset, 500);
        ck_assert_uint_eq(find(1)->last_ms, 10);
        ck_assert_uint_eq(slice_size(slice), 1);
}
END_TEST

START_TEST(test_growing_loses_no_entry)
{
        enum { N = 100000 };

        size_t n_found = 0;

        for (uint32_t i = 0; i < N; i++)
                remember(i, ~(uint64_t)i, i, 0);
        ck_assert_uint_eq(slice_size(slice), N);
        for (uint32_t i = 0; i < N; i++) {
                const struct slice_entry *entry = find(i);

                n_found += entry != NULL && entry->body == ~(uint64_t)i && entry->first_offset == i;
        }
        ck_assert_uint_eq(n_found, N);
        ck_assert_ptr_null(find(N));
}
END_TEST

START_TEST(test_identities_with_the_same_hash_are_distinguished)
{
        enum { N = 300 };
        uint8_t identity[16];

        for (uint32_t i = 0; i < N; i++) {
                make_identity(i, 1, identity);
                ck_assert_int_eq(slice_remember(slice, SLICE_FIRST_BODY, identity, i, i, START_MS), 0);
        }
        for (uint32_t i = 0; i < N; i++) {
                make_identity(i, 1, identity);
                ck_assert_uint_eq(slice_find(slice, identity)->body, i);
        }
        make_identity(N, 1, identity);
        ck_assert_ptr_null(slice_find(slice, identity));
}
END_TEST

START_TEST(test_entries_do_not_move)
{
        const struct slice_entry *entry;

        remember(0, 77, 0, 0);
        entry = find(0);
        for (uint32_t i = 1; i < 5000; i++)
                remember(i, 0, i, 0);
        ck_assert_ptr_eq(find(0), entry);
}
END_TEST

START_TEST(test_memory_is_freed_in_pieces)
{
        for (uint32_t i = 0; i < 5000; i++)
                remember(i, 0, i, 0);
        ck_assert_uint_eq(slice_shrink(slice, 2), 2);
        ck_assert_uint_eq(slice_shrink(slice, 0), 0);
        ck_assert_uint_eq(slice_shrink(slice, 10), 3);
        ck_assert_uint_eq(slice_shrink(slice, 10), 0);
}
END_TEST

/* Several doublings of the number of buckets: each could lose an entry. */
START_TEST(test_all_entries_are_found_at_every_size)
{
        for (uint32_t n = 1; n <= 1100; n++) {
                remember(n, n, n, 0);
                for (uint32_t i = 1; i <= n; i++) {
                        const struct slice_entry *entry = find(i);

                        if (entry == NULL || entry->body != i)
                                ck_abort_msg("entry %u of %u is lost", i, n);
                }
        }
}
END_TEST

START_TEST(test_slice_free_accepts_null)
{
        slice_free(NULL);
}
END_TEST

Suite *
suite_slice(void)
{
        Suite *suite = suite_create("slice");
        TCase *tcase = tcase_create("slice");

        tcase_add_checked_fixture(tcase, set_up, tear_down);
        tcase_add_test(tcase, test_new_slice_is_empty);
        tcase_add_test(tcase, test_entry_has_the_first_offset_and_the_last_time);
        tcase_add_test(tcase, test_another_body_changes_nothing);
        tcase_add_test(tcase, test_adding_a_record_again_changes_nothing);
        tcase_add_test(tcase, test_growing_loses_no_entry);
        tcase_add_test(tcase, test_identities_with_the_same_hash_are_distinguished);
        tcase_add_test(tcase, test_entries_do_not_move);
        tcase_add_test(tcase, test_memory_is_freed_in_pieces);
        tcase_add_test(tcase, test_all_entries_are_found_at_every_size);
        tcase_add_test(tcase, test_slice_free_accepts_null);
        suite_add_tcase(suite, tcase);
        return suite;
}
