#include <stdint.h>
#include <string.h>

#include "base/json_memory.h"
#include "suites.h"

static void *
take(struct json_memory *memory, size_t size)
{
        return memory->functions.malloc(memory->functions.ctx, size);
}

START_TEST(test_block_keeps_its_content_when_it_grows)
{
        struct json_memory memory;
        char *text;

        json_memory_init(&memory);
        if (setjmp(memory.failed) != 0)
                ck_abort_msg("memory failed");
        (void)take(&memory, 10);
        text = memory.functions.realloc(memory.functions.ctx, NULL, 4);
        memcpy(text, "abc", 4);
        (void)take(&memory, 0);
        text = memory.functions.realloc(memory.functions.ctx, text, 100000);
        ck_assert_str_eq(text, "abc");
        memory.functions.free(memory.functions.ctx, text);
        memory.functions.free(memory.functions.ctx, NULL);
        json_memory_clear(&memory); /* the sanitizer would detect a leak */
        ck_assert(LIST_EMPTY(&memory.blocks));
}
END_TEST

START_TEST(test_allocation_failure_jumps_to_the_owner)
{
        struct json_memory memory;

        json_memory_init(&memory);
        if (setjmp(memory.failed) == 0) {
                void *data = take(&memory, 10);

                (void)take(&memory, 20);
                (void)memory.functions.realloc(memory.functions.ctx, data, SIZE_MAX);
                ck_abort_msg("there is not so much memory");
        }
        json_memory_clear(&memory);
        if (setjmp(memory.failed) == 0) {
                (void)take(&memory, SIZE_MAX);
                ck_abort_msg("there is not so much memory");
        }
        json_memory_clear(&memory);
        ck_assert(LIST_EMPTY(&memory.blocks));
}
END_TEST

Suite *
suite_json_memory(void)
{
        Suite *suite = suite_create("json_memory");
        TCase *all = tcase_create("all");

        tcase_add_test(all, test_block_keeps_its_content_when_it_grows);
        tcase_add_test(all, test_allocation_failure_jumps_to_the_owner);
        suite_add_tcase(suite, all);
        return suite;
}
