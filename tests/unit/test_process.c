#include <check.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/process.h"
#include "suites.h"

START_TEST(test_available_memory_is_between_something_and_all)
{
        int64_t all = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
        int64_t available = process_available_memory();

        ck_assert_int_ge(available, 0);
        ck_assert_int_le(available, all);
}
END_TEST

Suite *
suite_process(void)
{
        Suite *suite = suite_create("process");
        TCase *tcase = tcase_create("process");

        tcase_add_test(tcase, test_available_memory_is_between_something_and_all);
        suite_add_tcase(suite, tcase);
        return suite;
}
