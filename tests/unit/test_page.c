#include <check.h>
#include <string.h>

#include "daemon/page.h"
#include "suites.h"

#define HAS(text, part) ck_assert_msg(strstr(text, part) != NULL, "no `%s' in:\n%s", part, text)

START_TEST(test_page_contains_its_style_and_script)
{
        struct page page;

        ck_assert_int_eq(page_build(&page), 0);
        ck_assert_uint_eq(strlen(page.text), page.len);
        ck_assert_ptr_null(strstr(page.text, "{{"));
        HAS(page.text, "<style>:root {");
        HAS(page.text, "<script>\"use strict\";");
        HAS(page.text, "</html>\n");
        HAS(page.text, "<noscript>");
        page_clear(&page);
}
END_TEST

START_TEST(test_policy_admits_its_style_and_script_by_hash)
{
        struct page page;

        ck_assert_int_eq(page_build(&page), 0);
        HAS(page.policy, "default-src 'none'; script-src 'sha256-");
        HAS(page.policy, "'; style-src 'sha256-");
        HAS(page.policy, "connect-src 'self'");
        page_clear(&page);
}
END_TEST

Suite *
suite_page(void)
{
        Suite *suite = suite_create("page");
        TCase *tcase = tcase_create("page");

        tcase_add_test(tcase, test_page_contains_its_style_and_script);
        tcase_add_test(tcase, test_policy_admits_its_style_and_script_by_hash);
        suite_add_tcase(suite, tcase);
        return suite;
}
