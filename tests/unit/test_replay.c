#include <stdio.h>
#include <string.h>

#include "model/replay.h"
#include "suites.h"

static char original[DELIVERY_ID_MAX + 1];

static const uint8_t *
signature_of(int n)
{
        static uint8_t signature[SIGNATURE_SIZE];

        memset(signature, 0, sizeof(signature));
        memcpy(signature, &n, sizeof(n));
        memcpy(signature + 8, &n, sizeof(n));
        return signature;
}

START_TEST(test_a_signature_under_another_id_is_a_replay)
{
        struct replay *replay = replay_new(1024);

        ck_assert_int_eq(replay_check(replay, signature_of(1), "first", 0, 1000, original), 0);
        ck_assert_int_eq(replay_check(replay, signature_of(1), "first", 10, 1000, original), 0);
        ck_assert_int_eq(replay_check(replay, signature_of(2), "second", 10, 1000, original), 0);
        ck_assert_int_eq(replay_check(replay, signature_of(1), "third", 20, 1000, original), 1);
        ck_assert_str_eq(original, "first");
        replay_free(replay);
}
END_TEST

START_TEST(test_a_stale_signature_is_forgotten)
{
        struct replay *replay = replay_new(1024);

        ck_assert_int_eq(replay_check(replay, signature_of(1), "first", 0, 1000, original), 0);
        ck_assert_int_eq(replay_check(replay, signature_of(1), "other", 1001, 2000, original), 0);
        replay_free(replay);
}
END_TEST

START_TEST(test_when_it_is_full_the_oldest_goes)
{
        struct replay *replay = replay_new(1024);
        char id[16];

        for (int i = 0; i < 5000; i++) {
                (void)snprintf(id, sizeof(id), "id-%d", i);
                ck_assert_int_eq(replay_check(replay, signature_of(i), id, 0, 1000, original), 0);
        }
        ck_assert_int_eq(replay_check(replay, signature_of(4999), "x", 0, 1000, original), 1);
        ck_assert_int_eq(replay_check(replay, signature_of(5000 - 1024), "x", 0, 1000, original), 1);
        ck_assert_str_eq(original, "id-3976");
        ck_assert_int_eq(replay_check(replay, signature_of(5000 - 1025), "x", 0, 1000, original), 0);
        replay_free(replay);
}
END_TEST

Suite *
suite_replay(void)
{
        Suite *suite = suite_create("replay");
        TCase *all = tcase_create("all");

        tcase_add_test(all, test_a_signature_under_another_id_is_a_replay);
        tcase_add_test(all, test_a_stale_signature_is_forgotten);
        tcase_add_test(all, test_when_it_is_full_the_oldest_goes);
        suite_add_tcase(suite, all);
        return suite;
}
