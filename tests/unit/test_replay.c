#include <check.h>
#include <stdio.h>
#include <string.h>

#include "model/replay.h"
#include "suites.h"

static char original[DELIVERY_ID_MAX + 1];

/* Begin a delivery with the n-th signature. The signatures differ in their first bytes only. */
static int
check(struct replay *replay, uint32_t n, const char *delivery_id)
{
        uint8_t signature[SIGNATURE_SIZE];

        memset(signature, 0x5a, sizeof(signature));
        memcpy(signature, &n, sizeof(n));
        memset(original, 0, sizeof(original));
        return (int)replay_begin(replay, "invoicing", signature, delivery_id, original);
}

/* End the attempt, with the delivery stored or not. */
static void
end(struct replay *replay, uint32_t n, const char *delivery_id, int may_be_stored)
{
        uint8_t signature[SIGNATURE_SIZE];

        memset(signature, 0x5a, sizeof(signature));
        memcpy(signature, &n, sizeof(n));
        replay_end(replay, "invoicing", signature, delivery_id, may_be_stored);
}

/* Like check(), but store a signature that is not a replay. */
static int
store(struct replay *replay, uint32_t n, const char *delivery_id)
{
        int verdict = check(replay, n, delivery_id);

        if (verdict == REPLAY_NONE)
                end(replay, n, delivery_id, 1);
        return verdict;
}

static struct replay *
replay_of(size_t max_entries)
{
        struct replay *replay = replay_new(max_entries);

        ck_assert_ptr_nonnull(replay);
        return replay;
}

/* Return the number of the oldest signature from which all up to n - 1 are remembered. */
static uint32_t
first_remembered(struct replay *replay, uint32_t n)
{
        for (uint32_t i = n; i > 0; i--) {
                if (store(replay, i - 1, "other") != 1)
                        return i;
        }
        return 0;
}

START_TEST(test_signature_under_another_id_is_a_replay_of_the_first)
{
        struct replay *replay = replay_of(1000);

        ck_assert_int_eq(store(replay, 1, "d-1"), 0);
        ck_assert_int_eq(store(replay, 1, "d-2"), 1);
        ck_assert_str_eq(original, "d-1");
        ck_assert_int_eq(store(replay, 1, "d-3"), 1);
        ck_assert_str_eq(original, "d-1");
        ck_assert_int_eq(store(replay, 2, "d-2"), 0);
        replay_free(replay);
}
END_TEST

/* The service signs for both with the same secret, in the same second. */
START_TEST(test_same_signature_for_another_source_is_no_replay)
{
        struct replay *replay = replay_of(1000);
        const uint8_t signature[SIGNATURE_SIZE] = {1};

        ck_assert_int_eq(replay_begin(replay, "invoicing", signature, "d-1", original), REPLAY_NONE);
        replay_end(replay, "invoicing", signature, "d-1", 1);
        ck_assert_int_eq(replay_begin(replay, "billing", signature, "d-2", original), REPLAY_NONE);
        replay_end(replay, "billing", signature, "d-2", 1);
        ck_assert_int_eq(replay_begin(replay, "billing", signature, "d-1", original), REPLAY_FOUND);
        ck_assert_str_eq(original, "d-2");
        ck_assert_int_eq(replay_begin(replay, "invoicing", signature, "d-2", original), REPLAY_FOUND);
        ck_assert_str_eq(original, "d-1");
        replay_free(replay);
}
END_TEST

START_TEST(test_signature_under_the_same_id_is_no_replay)
{
        struct replay *replay = replay_of(1000);

        for (int i = 0; i < 10; i++)
                ck_assert_int_eq(store(replay, 1, "d-1"), 0);
        /* An id with the same prefix is a different id. */
        ck_assert_int_eq(store(replay, 1, "d-10"), 1);
        ck_assert_int_eq(store(replay, 1, "d-"), 1);
        replay_free(replay);
}
END_TEST

START_TEST(test_longest_id_is_not_truncated)
{
        static const char id[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        struct replay *replay = replay_of(1000);

        ck_assert_uint_eq(strlen(id), DELIVERY_ID_MAX);
        ck_assert_int_eq(store(replay, 1, id), 0);
        ck_assert_int_eq(store(replay, 1, id), 0);
        ck_assert_int_eq(store(replay, 1, "d-1"), 1);
        ck_assert_str_eq(original, id);
        replay_free(replay);
}
END_TEST

START_TEST(test_growth_keeps_all_signatures)
{
        enum { N = 20000 };
        struct replay *replay = replay_of(65536);
        char id[32];

        uint32_t n_known = 0;

        for (uint32_t i = 0; i < N; i++) {
                (void)snprintf(id, sizeof(id), "d-%u", i);
                n_known += store(replay, i, id) != 0;
        }
        ck_assert_uint_eq(n_known, 0);
        for (uint32_t i = 0; i < N; i++) {
                (void)snprintf(id, sizeof(id), "d-%u", i);
                n_known += store(replay, i, "other") == 1 && strcmp(original, id) == 0;
        }
        ck_assert_uint_eq(n_known, N);
        replay_free(replay);
}
END_TEST

START_TEST(test_failed_attempt_is_not_remembered)
{
        struct replay *replay = replay_of(1000);

        ck_assert_int_eq(check(replay, 1, "d-1"), REPLAY_NONE);
        end(replay, 1, "d-1", 0);
        ck_assert_int_eq(check(replay, 1, "d-2"), REPLAY_NONE);
        replay_free(replay);
}
END_TEST

START_TEST(test_replay_is_undecided_while_the_first_is_pending)
{
        struct replay *replay = replay_of(1000);

        ck_assert_int_eq(check(replay, 1, "d-1"), REPLAY_NONE);
        ck_assert_int_eq(check(replay, 1, "d-2"), REPLAY_UNDECIDED);
        ck_assert_str_eq(original, "d-1");
        end(replay, 1, "d-1", 1);
        ck_assert_int_eq(check(replay, 1, "d-2"), REPLAY_FOUND);
        replay_free(replay);
}
END_TEST

/* In either order, the attempt that may be stored counts. */
START_TEST(test_signature_is_remembered_if_one_of_several_attempts_succeeds)
{
        struct replay *replay = replay_of(1000);

        ck_assert_int_eq(check(replay, 1, "d-1"), REPLAY_NONE);
        ck_assert_int_eq(check(replay, 1, "d-1"), REPLAY_NONE);
        end(replay, 1, "d-1", _i);
        ck_assert_int_eq(check(replay, 1, "d-2"), _i ? REPLAY_FOUND : REPLAY_UNDECIDED);
        end(replay, 1, "d-1", !_i);
        ck_assert_int_eq(check(replay, 1, "d-2"), REPLAY_FOUND);
        replay_free(replay);
}
END_TEST

START_TEST(test_signature_forgotten_while_pending_is_remembered_at_its_end)
{
        struct replay *replay = replay_of(2);

        ck_assert_int_eq(check(replay, 1, "d-1"), REPLAY_NONE);
        ck_assert_int_eq(store(replay, 2, "d"), REPLAY_NONE);
        ck_assert_int_eq(store(replay, 3, "d"), REPLAY_NONE);
        end(replay, 1, "d-1", 1);
        ck_assert_int_eq(check(replay, 1, "d-2"), REPLAY_FOUND);
        replay_free(replay);
}
END_TEST

START_TEST(test_failed_attempts_evict_nothing)
{
        struct replay *replay = replay_of(100);

        ck_assert_int_eq(store(replay, 1, "d-1"), REPLAY_NONE);
        for (uint32_t i = 0; i < 1000; i++) {
                ck_assert_int_eq(check(replay, 1000 + i, "d"), REPLAY_NONE);
                ck_assert_int_eq(check(replay, 3000 + i, "d"), REPLAY_NONE);
                end(replay, 1000 + i, "d", 0);
                end(replay, 3000 + i, "d", 0);
        }
        ck_assert_int_eq(store(replay, 1, "d-2"), REPLAY_FOUND);
        replay_free(replay);
}
END_TEST

START_TEST(test_failed_attempts_between_others_leave_the_others_remembered)
{
        struct replay *replay = replay_of(300);

        for (uint32_t i = 0; i < 2000; i++) {
                if (i % 3 != 0) {
                        ck_assert_int_eq(store(replay, i, "d"), REPLAY_NONE);
                        continue;
                }
                ck_assert_int_eq(check(replay, i, "d"), REPLAY_NONE);
                ck_assert_int_eq(store(replay, 10000 + i, "d"), REPLAY_NONE);
                end(replay, i, "d", 0);
        }
        for (uint32_t i = 1998; i > 1850; i--) {
                ck_assert_int_eq(store(replay, i, "other"), i % 3 == 0 ? REPLAY_NONE : REPLAY_FOUND);
        }
        replay_free(replay);
}
END_TEST

static const size_t maxima[] = {1, 100, 256, 1000, 1024};

START_TEST(test_full_table_evicts_the_oldest_only)
{
        struct replay *replay = replay_of(maxima[_i]);
        uint32_t n = 3000;

        for (uint32_t i = 0; i < n; i++)
                ck_assert_int_eq(store(replay, i, "d"), 0);
        /* From the newest back to the first forgotten one, which then replaces another one. */
        ck_assert_uint_eq(first_remembered(replay, n), n - maxima[_i]);
        replay_free(replay);
}
END_TEST

START_TEST(test_table_of_size_zero_remembers_nothing)
{
        struct replay *replay = replay_of(0);

        ck_assert_int_eq(store(replay, 1, "d-1"), 0);
        ck_assert_int_eq(store(replay, 1, "d-2"), 0);
        replay_free(replay);
}
END_TEST

START_TEST(test_replay_free_accepts_null)
{
        replay_free(NULL);
}
END_TEST

Suite *
suite_replay(void)
{
        Suite *suite = suite_create("replay");
        TCase *tcase = tcase_create("replay");

        tcase_add_test(tcase, test_signature_under_another_id_is_a_replay_of_the_first);
        tcase_add_test(tcase, test_same_signature_for_another_source_is_no_replay);
        tcase_add_test(tcase, test_signature_under_the_same_id_is_no_replay);
        tcase_add_test(tcase, test_longest_id_is_not_truncated);
        tcase_add_test(tcase, test_growth_keeps_all_signatures);
        tcase_add_test(tcase, test_failed_attempt_is_not_remembered);
        tcase_add_test(tcase, test_replay_is_undecided_while_the_first_is_pending);
        tcase_add_loop_test(tcase, test_signature_is_remembered_if_one_of_several_attempts_succeeds, 0, 2);
        tcase_add_test(tcase, test_signature_forgotten_while_pending_is_remembered_at_its_end);
        tcase_add_test(tcase, test_failed_attempts_evict_nothing);
        tcase_add_test(tcase, test_failed_attempts_between_others_leave_the_others_remembered);
        tcase_add_loop_test(tcase, test_full_table_evicts_the_oldest_only, 0,
                            sizeof(maxima) / sizeof(maxima[0]));
        tcase_add_test(tcase, test_table_of_size_zero_remembers_nothing);
        tcase_add_test(tcase, test_replay_free_accepts_null);
        suite_add_tcase(suite, tcase);
        return suite;
}
