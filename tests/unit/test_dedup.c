#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "model/dedup.h"
#include "suites.h"

#define WINDOW_MS 1600 /* a slice of 100 ms */
#define N_RECORDS 3000
#define N_IDS 40

/* A log of few ids with rising timestamps; the definition of a repeat can be looked up in it by brute force. */
static struct {
        int id;
        uint64_t body;
        int64_t ms;
} records[N_RECORDS];

static void
identity_of(int id, uint8_t identity[DEDUP_IDENTITY_SIZE])
{
        uint64_t mixed = (uint64_t)id * UINT64_C(0x9e3779b97f4a7c15);

        memset(identity, 0, DEDUP_IDENTITY_SIZE);
        memcpy(identity, &mixed, sizeof(mixed));
        memcpy(identity + 8, &id, sizeof(id));
}

static enum dedup_answer
check_at(struct dedup *dedup, int offset)
{
        uint8_t identity[DEDUP_IDENTITY_SIZE];
        enum dedup_answer answer;

        identity_of(records[offset].id, identity);
        ck_assert_int_eq(dedup_check(dedup, identity, records[offset].body, offset, records[offset].ms,
                                     &answer),
                         0);
        return answer;
}

/* By the definition: an earlier record, at most the window older, has the same identity. */
static int
is_repeat(int offset)
{
        for (int i = offset - 1; i >= 0 && records[i].ms >= records[offset].ms - WINDOW_MS; i--) {
                if (records[i].id == records[offset].id)
                        return 1;
        }
        return 0;
}

static void
make_records(unsigned seed)
{
        int64_t ms = 1000000;

        srand(seed);
        for (int i = 0; i < N_RECORDS; i++) {
                ms += rand() % 4 == 0 ? rand() % 400 : rand() % 10;
                records[i].id = rand() % N_IDS;
                records[i].body = (uint64_t)(rand() % 2);
                records[i].ms = ms;
        }
}

START_TEST(test_a_repeat_is_what_the_definition_says_through_rewinds_and_restores)
{
        struct dedup *dedup = dedup_new(WINDOW_MS);
        enum dedup_answer first_answers[N_RECORDS];
        int committed = 0, judged = 0, offset = 0;

        make_records((unsigned)_i + 1);
        while (offset < N_RECORDS) {
                enum dedup_answer answer = check_at(dedup, offset);

                ck_assert_msg((answer != DEDUP_NEW) == is_repeat(offset), "offset %d", offset);
                if (offset < judged)
                        ck_assert_int_eq(answer, first_answers[offset]);
                else
                        first_answers[judged++] = answer;
                offset++;
                switch (rand() % 20) {
                case 0: /* a commit: what came before will not be read again */
                        committed = offset;
                        dedup_expire(dedup, records[offset - 1].ms);
                        break;
                case 1: /* a transaction is given up */
                        offset = committed;
                        break;
                case 2: /* another router takes over */
                        if (committed == 0)
                                break;
                        dedup_free(dedup);
                        dedup = dedup_new(WINDOW_MS);
                        for (offset = 0;
                             records[offset].ms < dedup_restore_start(WINDOW_MS, records[committed - 1].ms);)
                                offset++;
                        for (; offset < committed; offset++)
                                (void)check_at(dedup, offset);
                        break;
                default:
                        break;
                }
        }
        dedup_free(dedup);
}
END_TEST

START_TEST(test_another_body_under_the_same_id_is_a_conflict)
{
        struct dedup *dedup = dedup_new(WINDOW_MS);
        uint8_t identity[DEDUP_IDENTITY_SIZE];
        enum dedup_answer answer;

        identity_of(1, identity);
        ck_assert_int_eq(dedup_check(dedup, identity, 7, 10, 5000, &answer), 0);
        ck_assert_int_eq(answer, DEDUP_NEW);
        ck_assert_int_eq(dedup_check(dedup, identity, 7, 11, 5000, &answer), 0);
        ck_assert_int_eq(answer, DEDUP_REPEAT);
        ck_assert_int_eq(dedup_check(dedup, identity, 8, 12, 5100, &answer), 0);
        ck_assert_int_eq(answer, DEDUP_CONFLICT);
        ck_assert_int_eq(dedup_check(dedup, identity, 7, 10, 5000, &answer), 0); /* the first, read again */
        ck_assert_int_eq(answer, DEDUP_NEW);
        dedup_free(dedup);
}
END_TEST

START_TEST(test_the_window_ends_to_the_millisecond)
{
        struct dedup *dedup = dedup_new(WINDOW_MS);
        uint8_t identity[DEDUP_IDENTITY_SIZE];
        enum dedup_answer answer;

        identity_of(1, identity);
        ck_assert_int_eq(dedup_check(dedup, identity, 7, 1, 5050, &answer), 0);
        ck_assert_int_eq(dedup_check(dedup, identity, 7, 2, 5050 + WINDOW_MS + 1, &answer), 0);
        ck_assert_int_eq(answer, DEDUP_NEW);
        ck_assert_int_eq(dedup_check(dedup, identity, 7, 3, 5050 + 2 * WINDOW_MS + 1, &answer), 0);
        ck_assert_int_eq(answer, DEDUP_REPEAT);
        dedup_free(dedup);
}
END_TEST

START_TEST(test_what_has_expired_takes_no_memory)
{
        struct dedup *dedup = dedup_new(WINDOW_MS);

        make_records(99);
        for (int i = 0; i < N_RECORDS; i++)
                (void)check_at(dedup, i);
        ck_assert_uint_gt(dedup_size(dedup), N_IDS);
        dedup_expire(dedup, records[N_RECORDS - 1].ms + 2 * WINDOW_MS);
        ck_assert_uint_eq(dedup_size(dedup), 0);
        dedup_free(dedup);
}
END_TEST

START_TEST(test_an_id_takes_at_most_48_bytes)
{
        const int n = 400000;
        struct dedup *dedup = dedup_new(UINT64_C(259200000));
        size_t before = mallinfo2().uordblks + mallinfo2().hblkhd, bytes;
        uint8_t identity[DEDUP_IDENTITY_SIZE];
        enum dedup_answer answer;

        for (int i = 0; i < n; i++) {
                identity_of(i, identity);
                ck_assert_int_eq(dedup_check(dedup, identity, 1, i, INT64_C(1795000000000) + i * 500,
                                             &answer),
                                 0);
        }
        bytes = mallinfo2().uordblks + mallinfo2().hblkhd - before;
        ck_assert_uint_eq(dedup_size(dedup), (size_t)n);
        /* Under AddressSanitizer malloc does not tell: then nothing is measured here. */
        ck_assert_msg(bytes / (size_t)n <= 48, "%zu bytes an id", bytes / (size_t)n);
        dedup_free(dedup);
}
END_TEST

Suite *
suite_dedup(void)
{
        Suite *suite = suite_create("dedup");
        TCase *all = tcase_create("all");

        tcase_set_timeout(all, 60);
        tcase_add_loop_test(all, test_a_repeat_is_what_the_definition_says_through_rewinds_and_restores, 0,
                            20);
        tcase_add_test(all, test_another_body_under_the_same_id_is_a_conflict);
        tcase_add_test(all, test_the_window_ends_to_the_millisecond);
        tcase_add_test(all, test_what_has_expired_takes_no_memory);
        tcase_add_test(all, test_an_id_takes_at_most_48_bytes);
        suite_add_tcase(suite, all);
        return suite;
}
