#include <check.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "base/pool.h"
#include "suites.h"

#ifdef __SANITIZE_ADDRESS__
#define KEEPS 0
#else
#define KEEPS 1
#endif

static const size_t sizes[] = {0,    1,    31,   32,   33,   500,  1000, 1023,  1024,
                               1025, 2048, 2049, 4095, 4096, 4097, 8192, 100000};

START_TEST(test_reused_block_has_the_requested_size)
{
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                for (int again = 0; again < 3; again++) {
                        char *first = pool_alloc(sizes[i]), *second = pool_alloc_zeroed(sizes[i]);

                        ck_assert(first != NULL && second != NULL && first != second);
                        for (size_t k = 0; k < sizes[i]; k++)
                                ck_assert_int_eq(second[k], 0);
                        memset(first, 1, sizes[i]);
                        memset(second, 2, sizes[i]);
                        ck_assert(sizes[i] == 0 || (first[sizes[i] - 1] == 1 && second[0] == 2));
                        pool_free(first);
                        pool_free(second);
                }
        }
        pool_clear();
}
END_TEST

START_TEST(test_freed_block_is_reused_first)
{
        char *block = pool_alloc(100);
        uintptr_t before = (uintptr_t)block;

        pool_free(block);
        block = pool_alloc(120);
        if (KEEPS)
                ck_assert_uint_eq((uintptr_t)block, before);
        pool_free(block);
        pool_free(NULL);
        pool_clear();
}
END_TEST

START_TEST(test_block_keeps_its_content_when_it_grows)
{
        char *text = pool_resize(NULL, 4);

        memcpy(text, "abc", 4);
        for (size_t size = 5; size < 100000; size *= 3)
                ck_assert_str_eq(text = pool_resize(text, size), "abc");
        pool_free(text);
        pool_clear();
}
END_TEST

static void *
release(void *block)
{
        pool_free(block);
        pool_clear();
        return NULL;
}

START_TEST(test_block_can_be_freed_by_another_thread)
{
        pthread_t thread;

        ck_assert_int_eq(pthread_create(&thread, NULL, release, pool_alloc(200)), 0);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
END_TEST

Suite *
suite_pool(void)
{
        Suite *suite = suite_create("pool");
        TCase *tcase = tcase_create("pool");

        tcase_add_test(tcase, test_reused_block_has_the_requested_size);
        tcase_add_test(tcase, test_freed_block_is_reused_first);
        tcase_add_test(tcase, test_block_keeps_its_content_when_it_grows);
        tcase_add_test(tcase, test_block_can_be_freed_by_another_thread);
        suite_add_tcase(suite, tcase);
        return suite;
}
