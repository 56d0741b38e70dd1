#include <check.h>

#include "suites.h"

/* The reader, compiled again with an allocator that can fail. */
#define json_read read_with_scarce_memory
#define pool_resize scarce_resize
#define pool_free scarce_free
static void *scarce_resize(void *block, size_t size);
static void scarce_free(void *block);
#include "base/json_reader.c"
#undef json_read
#undef pool_resize
#undef pool_free

static size_t n_allowed; /* allocations that succeed from now on */
static size_t n_blocks;

static void *
scarce_resize(void *block, size_t size)
{
        if (n_allowed == 0)
                return NULL;
        n_allowed--;
        n_blocks += block == NULL;
        return realloc(block, size);
}

static void
scarce_free(void *block)
{
        n_blocks -= block != NULL;
        free(block);
}

static int
ignore_value(void *arg, enum json_type type, const char *text, size_t len)
{
        (void)arg;
        (void)type;
        (void)text;
        (void)len;
        return 0;
}

static int
ignore_name(void *arg, const char *text, size_t len)
{
        (void)arg;
        (void)text;
        (void)len;
        return 0;
}

static int
ignore_end(void *arg, enum json_type type)
{
        (void)arg;
        (void)type;
        return 0;
}

static const struct json_events ignore = {ignore_value, ignore_name, ignore_end};

/* With one allocation more each time, until there is enough memory. Returns the number of failures. */
static size_t
read_until_memory_suffices(const char *text, size_t len, enum json_result expected)
{
        struct error error;

        for (size_t n = 0;; n++) {
                enum json_result result;

                n_allowed = n;
                result = read_with_scarce_memory(text, len, 8, &ignore, NULL, &error);
                ck_assert_uint_eq(n_blocks, 0);
                if (result != JSON_OUT_OF_MEMORY) {
                        ck_assert_int_eq(result, expected);
                        return n;
                }
        }
}

START_TEST(test_failed_memory_is_reported_and_nothing_is_left)
{
        static char text[10000] = "{\"a\":[\"\\n\\ud800";

        memset(text + strlen(text), 'x', 9000); /* a string that yajl's first buffer is too small for */
        memcpy(text + strlen(text), "\"]}", 3);
        ck_assert_uint_gt(read_until_memory_suffices(text, strlen(text), JSON_READ), 5);
        ck_assert_uint_gt(read_until_memory_suffices(text, strlen(text) - 3, JSON_WRONG), 7);
}
END_TEST

START_TEST(test_depth_is_limited)
{
        struct error error;

        n_allowed = SIZE_MAX;
        ck_assert_int_eq(read_with_scarce_memory("[[{\"a\":0}]]", 11, 3, &ignore, NULL, &error), JSON_READ);
        ck_assert_int_eq(read_with_scarce_memory("[[{\"a\":0}]]", 11, 2, &ignore, NULL, &error), JSON_WRONG);
        ck_assert_str_eq(error.text, "the text is nested more than 2 levels deep");
}
END_TEST

Suite *
suite_json_reader(void)
{
        Suite *suite = suite_create("json_reader");
        TCase *tcase = tcase_create("json_reader");

        tcase_add_test(tcase, test_failed_memory_is_reported_and_nothing_is_left);
        tcase_add_test(tcase, test_depth_is_limited);
        suite_add_tcase(suite, tcase);
        return suite;
}
