#include <check.h>
#include <stdio.h>
#include <string.h>

#include "model/replay.h"
#include "suites.h"

static char original[DELIVERY_ID_MAX + 1];

/* A delivery with the n-th signature; the signatures that end alike begin differently. */
static int
check(struct replay *replay, uint32_t n, const char *delivery_id)
{
        uint8_t signature[SIGNATURE_SIZE];

        memset(signature, 0x5a, sizeof(signature));
        memcpy(signature, &n, sizeof(n));
        memset(original, 0, sizeof(original));
        return replay_check(replay, "invoicing", signature, delivery_id, original);
}

static struct replay *
replay_of(size_t max_entries)
{
        struct replay *replay = replay_new(max_entries);

        ck_assert_ptr_nonnull(replay);
        return replay;
}

/* How many of the signatures 0 to n - 1 it remembers. Checking again under the same id adds nothing it knows. */
static uint32_t
first_remembered(struct replay *replay, uint32_t n)
{
        for (uint32_t i = n; i > 0; i--) {
                if (check(replay, i - 1, "other") != 1)
                        return i;
        }
        return 0;
}

START_TEST(test_signature_under_another_id_is_a_replay_of_the_first)
{
        struct replay *replay = replay_of(1000);

        ck_assert_int_eq(check(replay, 1, "d-1"), 0);
        ck_assert_int_eq(check(replay, 1, "d-2"), 1);
        ck_assert_str_eq(original, "d-1");
        ck_assert_int_eq(check(replay, 1, "d-3"), 1);
        ck_assert_str_eq(original, "d-1");
        ck_assert_int_eq(check(replay, 2, "d-2"), 0);
        replay_free(replay);
}
END_TEST

/* The service signs for both with one secret, in the same second. */
START_TEST(test_same_signature_for_another_source_is_no_replay)
{
        struct replay *replay = replay_of(1000);
        const uint8_t signature[SIGNATURE_SIZE] = {1};

        ck_assert_int_eq(replay_check(replay, "invoicing", signature, "d-1", original), 0);
        ck_assert_int_eq(replay_check(replay, "billing", signature, "d-2", original), 0);
        ck_assert_int_eq(replay_check(replay, "billing", signature, "d-1", original), 1);
        ck_assert_str_eq(original, "d-2");
        ck_assert_int_eq(replay_check(replay, "invoicing", signature, "d-2", original), 1);
        ck_assert_str_eq(original, "d-1");
        replay_free(replay);
}
END_TEST

START_TEST(test_signature_under_the_same_id_is_no_replay)
{
        struct replay *replay = replay_of(1000);

        for (int i = 0; i < 10; i++)
                ck_assert_int_eq(check(replay, 1, "d-1"), 0);
        /* An id that only begins the same is another. */
        ck_assert_int_eq(check(replay, 1, "d-10"), 1);
        ck_assert_int_eq(check(replay, 1, "d-"), 1);
        replay_free(replay);
}
END_TEST

START_TEST(test_longest_id_is_told_whole)
{
        static const char id[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        struct replay *replay = replay_of(1000);

        ck_assert_uint_eq(strlen(id), DELIVERY_ID_MAX);
        ck_assert_int_eq(check(replay, 1, id), 0);
        ck_assert_int_eq(check(replay, 1, id), 0);
        ck_assert_int_eq(check(replay, 1, "d-1"), 1);
        ck_assert_str_eq(original, id);
        replay_free(replay);
}
END_TEST

START_TEST(test_growing_forgets_nothing)
{
        enum { N = 20000 };
        struct replay *replay = replay_of(65536);
        char id[32];

        uint32_t n_known = 0;

        for (uint32_t i = 0; i < N; i++) {
                (void)snprintf(id, sizeof(id), "d-%u", i);
                n_known += check(replay, i, id) != 0;
        }
        ck_assert_uint_eq(n_known, 0);
        for (uint32_t i = 0; i < N; i++) {
                (void)snprintf(id, sizeof(id), "d-%u", i);
                n_known += check(replay, i, "other") == 1 && strcmp(original, id) == 0;
        }
        ck_assert_uint_eq(n_known, N);
        replay_free(replay);
}
END_TEST

/* Checks a signature that was accepted, or not, under d-1. Returns whether another id is a replay. */
static int
is_replay_after(void (*note)(struct replay *replay, const char *source_name, const uint8_t *signature,
                             const char *delivery_id),
                int is_accepted_before)
{
        const uint8_t signature[SIGNATURE_SIZE] = {7};
        struct replay *replay = replay_of(1000);
        int result;

        ck_assert_int_eq(replay_check(replay, "invoicing", signature, "d-1", original), 0);
        if (is_accepted_before)
                replay_accept(replay, "invoicing", signature, "d-1");
        note(replay, "invoicing", signature, "d-1");
        result = replay_check(replay, "invoicing", signature, "d-2", original);
        replay_free(replay);
        return result;
}

START_TEST(test_only_what_was_accepted_is_remembered)
{
        ck_assert_int_eq(is_replay_after(replay_accept, 0), 1);
        ck_assert_int_eq(is_replay_after(replay_drop, 0), 0);
        ck_assert_int_eq(is_replay_after(replay_drop, 1),
                         1); /* another attempt under the same id was accepted */
}
END_TEST

START_TEST(test_dropped_signatures_keep_their_places_until_their_turn)
{
        struct replay *replay = replay_of(300);
        uint8_t signature[SIGNATURE_SIZE];

        for (uint32_t i = 0; i < 2000; i++) {
                ck_assert_int_eq(check(replay, i, "d"), 0);
                memset(signature, 0x5a, sizeof(signature));
                memcpy(signature, &i, sizeof(i));
                if (i % 3 == 0)
                        replay_drop(replay, "invoicing", signature, "d");
        }
        for (uint32_t i = 1998; i > 1800; i--)
                ck_assert_int_eq(check(replay, i, i % 3 == 0 ? "d" : "other"), i % 3 != 0);
        replay_free(replay);
}
END_TEST

static const size_t maxima[] = {1, 100, 256, 1000, 1024};

START_TEST(test_full_it_forgets_the_oldest_and_no_more)
{
        struct replay *replay = replay_of(maxima[_i]);
        uint32_t n = 3000;

        for (uint32_t i = 0; i < n; i++)
                ck_assert_int_eq(check(replay, i, "d"), 0);
        /* From the newest back to the one that is not known any more, which then takes the place of another. */
        ck_assert_uint_eq(first_remembered(replay, n), n - maxima[_i]);
        replay_free(replay);
}
END_TEST

START_TEST(test_without_room_it_knows_nothing)
{
        struct replay *replay = replay_of(0);

        ck_assert_int_eq(check(replay, 1, "d-1"), 0);
        ck_assert_int_eq(check(replay, 1, "d-2"), 0);
        replay_free(replay);
}
END_TEST

START_TEST(test_replay_free_of_nothing_is_harmless)
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
        tcase_add_test(tcase, test_longest_id_is_told_whole);
        tcase_add_test(tcase, test_growing_forgets_nothing);
        tcase_add_test(tcase, test_only_what_was_accepted_is_remembered);
        tcase_add_test(tcase, test_dropped_signatures_keep_their_places_until_their_turn);
        tcase_add_loop_test(tcase, test_full_it_forgets_the_oldest_and_no_more, 0,
                            sizeof(maxima) / sizeof(maxima[0]));
        tcase_add_test(tcase, test_without_room_it_knows_nothing);
        tcase_add_test(tcase, test_replay_free_of_nothing_is_harmless);
        suite_add_tcase(suite, tcase);
        return suite;
}
