#include <check.h>
#include <string.h>

#include "base/compiler.h"
#include "model/tally.h"
#include "suites.h"

#define MAX_RECORDS 4096

/* The records of a comparison, which are added again in each pass. */
static struct {
        uint8_t fingerprint[SKETCH_FINGERPRINT_SIZE];
        enum sketch_side side;
        struct tally_place place;
} records[MAX_RECORDS];
static size_t n_records;

/* What came of it. */
static uint64_t faults[TALLY_N_FAULTS];
static struct tally_finding last;
static size_t n_findings;
static size_t n_passes;

static void
set_up(void)
{
        n_records = 0;
}

/* A fingerprint as a digest gives them: any two differ in all their parts, and always the same for a number. */
static void
fingerprint_of(uint64_t number, uint8_t fingerprint[SKETCH_FINGERPRINT_SIZE])
{
        uint64_t halves[2] = {number, number + UINT64_C(0x9e3779b97f4a7c15)};

        for (size_t i = 0; i < ARRAY_LEN(halves); i++) {
                halves[i] = (halves[i] ^ halves[i] >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
                halves[i] = (halves[i] ^ halves[i] >> 27) * UINT64_C(0x94d049bb133111eb);
                halves[i] ^= halves[i] >> 31;
        }
        memcpy(fingerprint, halves, sizeof(halves));
}

static void
put(uint64_t number, enum sketch_side side)
{
        ck_assert_uint_lt(n_records, MAX_RECORDS);
        fingerprint_of(number, records[n_records].fingerprint);
        records[n_records].side = side;
        records[n_records].place =
            (struct tally_place){(uint32_t)(number % 7), (int32_t)side, (int64_t)number};
        n_records++;
}

static void
on_finding(const struct tally_finding *finding, void *arg)
{
        (void)arg;
        faults[finding->fault] += finding->n;
        last = *finding;
        n_findings++;
}

static void
compare(unsigned bits, size_t max_entries)
{
        struct tally *tally = tally_new(bits, max_entries);
        size_t expected = SIZE_MAX, left;

        ck_assert_ptr_nonnull(tally);
        memset(faults, 0, sizeof(faults));
        n_findings = n_passes = 0;
        do {
                int failed = 0; /* each ck_assert() costs a system call: not one a record */

                for (size_t i = 0; i < n_records; i++)
                        failed |=
                            tally_add(tally, records[i].fingerprint, records[i].side, &records[i].place);
                ck_assert_int_eq(failed, 0);
                n_passes++;
                left = tally_end_pass(tally, on_finding, NULL);
                if (n_passes > 1)
                        ck_assert_uint_eq(left, expected);
                expected = left - 1;
        } while (left > 0);
        tally_free(tally);
}

static void
assert_faults(uint64_t lost, uint64_t duplicated, uint64_t unexpected)
{
        ck_assert_uint_eq(faults[TALLY_LOST], lost);
        ck_assert_uint_eq(faults[TALLY_DUPLICATED], duplicated);
        ck_assert_uint_eq(faults[TALLY_UNEXPECTED], unexpected);
}

START_TEST(test_records_that_are_as_they_must_be_take_one_pass)
{
        for (uint64_t i = 0; i < 1000; i++)
                put(i, SKETCH_REQUIRED);
        for (uint64_t i = 1000; i > 0; i--)
                put(i - 1, SKETCH_FOUND);
        compare(4, 10);
        assert_faults(0, 0, 0);
        ck_assert_uint_eq(n_passes, 1);
}
END_TEST

START_TEST(test_nothing_at_all_is_as_it_must_be)
{
        compare(4, 10);
        ck_assert_uint_eq(n_passes, 1);
}
END_TEST

START_TEST(test_lost_record_is_found_among_many_of_its_bucket)
{
        for (uint64_t i = 0; i < 1000; i++) {
                put(i, SKETCH_REQUIRED);
                if (i != 333)
                        put(i, SKETCH_FOUND);
        }
        compare(0, 10);
        assert_faults(1, 0, 0);
        ck_assert_uint_eq(n_passes, 2);
        ck_assert_int_eq(last.place.offset, 333);
        ck_assert_int_eq(last.place.partition, SKETCH_REQUIRED);
        ck_assert_uint_eq(last.place.topic, 333 % 7);
}
END_TEST

START_TEST(test_second_copy_is_duplicated_and_a_foreign_record_unexpected)
{
        for (uint64_t i = 0; i < 100; i++) {
                put(i, SKETCH_REQUIRED);
                put(i, SKETCH_FOUND);
        }
        put(50, SKETCH_FOUND);
        compare(4, 1000);
        assert_faults(0, 1, 0);
        ck_assert_int_eq(last.place.offset, 50);
        ck_assert_int_eq(last.place.partition, SKETCH_FOUND);
        put(50, SKETCH_FOUND);
        put(1000, SKETCH_FOUND);
        compare(4, 1000);
        assert_faults(0, 2, 1);
}
END_TEST

START_TEST(test_one_lost_and_one_unexpected_do_not_make_up_for_each_other)
{
        put(1, SKETCH_REQUIRED);
        put(2, SKETCH_FOUND);
        compare(0, 10);
        assert_faults(1, 0, 1);
        /* Nor does a duplicate for a loss, or an allowed one for a required one. */
        put(2, SKETCH_REQUIRED);
        put(2, SKETCH_FOUND);
        compare(0, 10);
        assert_faults(1, 1, 0);
        n_records = 0;
        put(1, SKETCH_REQUIRED);
        put(2, SKETCH_ALLOWED);
        put(2, SKETCH_FOUND);
        compare(0, 10);
        assert_faults(1, 0, 0);
}
END_TEST

START_TEST(test_what_is_allowed_may_be_there_or_not)
{
        for (uint64_t i = 0; i < 100; i++) {
                put(i, i < 50 ? SKETCH_REQUIRED : SKETCH_ALLOWED);
                if (i < 75)
                        put(i, SKETCH_FOUND);
        }
        compare(0, 1000);
        assert_faults(0, 0, 0);
        put(60, SKETCH_FOUND);
        compare(4, 1000);
        assert_faults(0, 1, 0);
        /* A copy that must and one that may be there make two. */
        n_records = 0;
        put(1, SKETCH_REQUIRED);
        put(1, SKETCH_ALLOWED);
        put(1, SKETCH_FOUND);
        put(1, SKETCH_FOUND);
        compare(0, 10);
        assert_faults(0, 0, 0);
        put(1, SKETCH_FOUND);
        compare(0, 10);
        assert_faults(0, 1, 0);
}
END_TEST

START_TEST(test_all_or_none_of_the_allowed_takes_one_pass)
{
        for (uint64_t i = 0; i < 100; i++) {
                put(i, SKETCH_REQUIRED);
                put(i, SKETCH_FOUND);
                put(i + 100, SKETCH_ALLOWED);
        }
        compare(2, 10);
        ck_assert_uint_eq(n_passes, 1);
        for (uint64_t i = 0; i < 100; i++)
                put(i + 100, SKETCH_FOUND);
        compare(2, 10);
        ck_assert_uint_eq(n_passes, 1);
        assert_faults(0, 0, 0);
}
END_TEST

START_TEST(test_more_faults_than_there_is_room_for_take_more_passes)
{
        for (uint64_t i = 0; i < 1000; i++) {
                put(i, SKETCH_REQUIRED);
                if (i % 2 == 0)
                        put(i, SKETCH_FOUND);
                if (i % 4 == 0)
                        put(i, SKETCH_FOUND);
                if (i % 5 == 0)
                        put(i + 10000, SKETCH_FOUND);
        }
        compare(6, 50);
        assert_faults(500, 250, 200);
        ck_assert_uint_eq(n_findings, 950);
        ck_assert_uint_gt(n_passes, 10);
        compare(10, 1);
        assert_faults(500, 250, 200);
        ck_assert_uint_eq(n_findings, 950);
        compare(0, 1); /* a bucket that alone is too much is taken all the same */
        assert_faults(500, 250, 200);
        ck_assert_uint_eq(n_passes, 2);
}
END_TEST

START_TEST(test_passes_are_filled_to_the_limit_and_not_beyond)
{
        static const size_t limits[] = {50, 500};

        for (uint64_t i = 0; i < 2000; i++)
                put(i, SKETCH_REQUIRED);
        for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
                compare(8, limits[i]); /* 8 a bucket: none is beyond the limit by itself */
                assert_faults(2000, 0, 0);
                ck_assert_uint_ge(n_passes - 1, 2000 / limits[i]);
                ck_assert_uint_le(n_passes - 1, 2 * 2000 / limits[i]);
        }
}
END_TEST

START_TEST(test_fingerprints_that_share_a_half_are_told_apart)
{
        uint8_t one[SKETCH_FINGERPRINT_SIZE];

        put(1, SKETCH_REQUIRED);
        put(1, SKETCH_FOUND);
        memcpy(one, records[0].fingerprint, sizeof(one));
        records[1].fingerprint[15] ^= 1; /* the same bucket and chain */
        compare(8, 10);
        assert_faults(1, 0, 1);
        memcpy(records[1].fingerprint, one, sizeof(one));
        records[1].fingerprint[0] ^= 1; /* the same sum, another bucket */
        compare(8, 10);
        assert_faults(1, 0, 1);
}
END_TEST

START_TEST(test_tally_free_of_nothing_is_harmless)
{
        tally_free(NULL);
        sketch_free(NULL);
}
END_TEST

Suite *
suite_tally(void)
{
        Suite *suite = suite_create("tally");
        TCase *tcase = tcase_create("tally");

        tcase_add_checked_fixture(tcase, set_up, NULL);
        tcase_add_test(tcase, test_records_that_are_as_they_must_be_take_one_pass);
        tcase_add_test(tcase, test_nothing_at_all_is_as_it_must_be);
        tcase_add_test(tcase, test_lost_record_is_found_among_many_of_its_bucket);
        tcase_add_test(tcase, test_second_copy_is_duplicated_and_a_foreign_record_unexpected);
        tcase_add_test(tcase, test_one_lost_and_one_unexpected_do_not_make_up_for_each_other);
        tcase_add_test(tcase, test_what_is_allowed_may_be_there_or_not);
        tcase_add_test(tcase, test_all_or_none_of_the_allowed_takes_one_pass);
        tcase_add_test(tcase, test_more_faults_than_there_is_room_for_take_more_passes);
        tcase_add_test(tcase, test_passes_are_filled_to_the_limit_and_not_beyond);
        tcase_add_test(tcase, test_fingerprints_that_share_a_half_are_told_apart);
        tcase_add_test(tcase, test_tally_free_of_nothing_is_harmless);
        suite_add_tcase(suite, tcase);
        return suite;
}
