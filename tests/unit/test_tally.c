#include <check.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/tally.h"
#include "suites.h"

#define MAX_RECORDS 4096

/* Records to compare, added in each pass. */
static struct {
        uint8_t fingerprint[TALLY_FINGERPRINT_SIZE];
        enum tally_side side;
        struct tally_place place;
} records[MAX_RECORDS];
static size_t n_records;

/* Results of the comparison. */
static uint64_t faults[TALLY_N_FAULTS];
static struct tally_finding last;
static size_t n_findings;
static size_t n_passes;

static void
set_up(void)
{
        n_records = 0;
}

/* Derive a fingerprint from a number, as a digest would: any two differ in both halves. */
static void
fingerprint_of(uint64_t number, uint8_t fingerprint[TALLY_FINGERPRINT_SIZE])
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
put(uint64_t number, enum tally_side side)
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
                int failed = 0; /* ck_assert() costs a system call: do not call it for each record */

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

START_TEST(test_records_found_as_required_take_one_pass)
{
        for (uint64_t i = 0; i < 1000; i++)
                put(i, TALLY_REQUIRED);
        for (uint64_t i = 1000; i > 0; i--)
                put(i - 1, TALLY_FOUND);
        compare(4, 10);
        assert_faults(0, 0, 0);
        ck_assert_uint_eq(n_passes, 1);
}
END_TEST

START_TEST(test_no_records_are_balanced)
{
        compare(4, 10);
        ck_assert_uint_eq(n_passes, 1);
}
END_TEST

START_TEST(test_lost_record_is_found_in_a_full_bucket)
{
        for (uint64_t i = 0; i < 1000; i++) {
                put(i, TALLY_REQUIRED);
                if (i != 333)
                        put(i, TALLY_FOUND);
        }
        compare(0, 10);
        assert_faults(1, 0, 0);
        ck_assert_uint_eq(n_passes, 2);
        ck_assert_int_eq(last.place.offset, 333);
        ck_assert_int_eq(last.place.partition, TALLY_REQUIRED);
        ck_assert_uint_eq(last.place.topic, 333 % 7);
}
END_TEST

START_TEST(test_second_copy_is_duplicated_and_a_foreign_record_unexpected)
{
        for (uint64_t i = 0; i < 100; i++) {
                put(i, TALLY_REQUIRED);
                put(i, TALLY_FOUND);
        }
        put(50, TALLY_FOUND);
        compare(4, 1000);
        assert_faults(0, 1, 0);
        ck_assert_int_eq(last.place.offset, 50);
        ck_assert_int_eq(last.place.partition, TALLY_FOUND);
        put(50, TALLY_FOUND);
        put(1000, TALLY_FOUND);
        compare(4, 1000);
        assert_faults(0, 2, 1);
}
END_TEST

START_TEST(test_lost_and_unexpected_records_do_not_cancel_out)
{
        put(1, TALLY_REQUIRED);
        put(2, TALLY_FOUND);
        compare(0, 10);
        assert_faults(1, 0, 1);
        /* Nor do a duplicate and a lost record, or an allowed and a required one. */
        put(2, TALLY_REQUIRED);
        put(2, TALLY_FOUND);
        compare(0, 10);
        assert_faults(1, 1, 0);
        n_records = 0;
        put(1, TALLY_REQUIRED);
        put(2, TALLY_ALLOWED);
        put(2, TALLY_FOUND);
        compare(0, 10);
        assert_faults(1, 0, 0);
}
END_TEST

START_TEST(test_allowed_records_may_be_missing)
{
        for (uint64_t i = 0; i < 100; i++) {
                put(i, i < 50 ? TALLY_REQUIRED : TALLY_ALLOWED);
                if (i < 75)
                        put(i, TALLY_FOUND);
        }
        compare(0, 1000);
        assert_faults(0, 0, 0);
        put(60, TALLY_FOUND);
        compare(4, 1000);
        assert_faults(0, 1, 0);
        /* A required and an allowed copy allow two. */
        n_records = 0;
        put(1, TALLY_REQUIRED);
        put(1, TALLY_ALLOWED);
        put(1, TALLY_FOUND);
        put(1, TALLY_FOUND);
        compare(0, 10);
        assert_faults(0, 0, 0);
        put(1, TALLY_FOUND);
        compare(0, 10);
        assert_faults(0, 1, 0);
}
END_TEST

START_TEST(test_all_or_none_of_the_allowed_records_take_one_pass)
{
        for (uint64_t i = 0; i < 100; i++) {
                put(i, TALLY_REQUIRED);
                put(i, TALLY_FOUND);
                put(i + 100, TALLY_ALLOWED);
        }
        compare(2, 10);
        ck_assert_uint_eq(n_passes, 1);
        for (uint64_t i = 0; i < 100; i++)
                put(i + 100, TALLY_FOUND);
        compare(2, 10);
        ck_assert_uint_eq(n_passes, 1);
        assert_faults(0, 0, 0);
}
END_TEST

START_TEST(test_more_faults_than_fit_take_more_passes)
{
        for (uint64_t i = 0; i < 1000; i++) {
                put(i, TALLY_REQUIRED);
                if (i % 2 == 0)
                        put(i, TALLY_FOUND);
                if (i % 4 == 0)
                        put(i, TALLY_FOUND);
                if (i % 5 == 0)
                        put(i + 10000, TALLY_FOUND);
        }
        compare(6, 50);
        assert_faults(500, 250, 200);
        ck_assert_uint_eq(n_findings, 950);
        ck_assert_uint_gt(n_passes, 10);
        compare(10, 1);
        assert_faults(500, 250, 200);
        ck_assert_uint_eq(n_findings, 950);
        compare(0, 1); /* a bucket that exceeds the limit alone is still counted */
        assert_faults(500, 250, 200);
        ck_assert_uint_eq(n_passes, 2);
}
END_TEST

START_TEST(test_passes_are_filled_up_to_the_limit)
{
        static const size_t limits[] = {50, 500};

        for (uint64_t i = 0; i < 2000; i++)
                put(i, TALLY_REQUIRED);
        for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
                compare(8, limits[i]); /* 8 per bucket: no bucket exceeds the limit alone */
                assert_faults(2000, 0, 0);
                ck_assert_uint_ge(n_passes - 1, 2000 / limits[i]);
                ck_assert_uint_le(n_passes - 1, 2 * 2000 / limits[i]);
        }
}
END_TEST

START_TEST(test_fingerprints_that_share_a_half_are_distinguished)
{
        uint8_t one[TALLY_FINGERPRINT_SIZE];

        put(1, TALLY_REQUIRED);
        put(1, TALLY_FOUND);
        memcpy(one, records[0].fingerprint, sizeof(one));
        records[1].fingerprint[15] ^= 1; /* same bucket, same chain */
        compare(8, 10);
        assert_faults(1, 0, 1);
        memcpy(records[1].fingerprint, one, sizeof(one));
        records[1].fingerprint[0] ^= 1; /* same sum, other bucket */
        compare(8, 10);
        assert_faults(1, 0, 1);
}
END_TEST

START_TEST(test_tally_free_accepts_null)
{
        tally_free(NULL);
}
END_TEST

Suite *
suite_tally(void)
{
        Suite *suite = suite_create("tally");
        TCase *tcase = tcase_create("tally");

        tcase_add_checked_fixture(tcase, set_up, NULL);
        tcase_add_test(tcase, test_records_found_as_required_take_one_pass);
        tcase_add_test(tcase, test_no_records_are_balanced);
        tcase_add_test(tcase, test_lost_record_is_found_in_a_full_bucket);
        tcase_add_test(tcase, test_second_copy_is_duplicated_and_a_foreign_record_unexpected);
        tcase_add_test(tcase, test_lost_and_unexpected_records_do_not_cancel_out);
        tcase_add_test(tcase, test_allowed_records_may_be_missing);
        tcase_add_test(tcase, test_all_or_none_of_the_allowed_records_take_one_pass);
        tcase_add_test(tcase, test_more_faults_than_fit_take_more_passes);
        tcase_add_test(tcase, test_passes_are_filled_up_to_the_limit);
        tcase_add_test(tcase, test_fingerprints_that_share_a_half_are_distinguished);
        tcase_add_test(tcase, test_tally_free_accepts_null);
        suite_add_tcase(suite, tcase);
        return suite;
}
