#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "scratch.h"
#include "suites.h"

#define PASSWORD "a-password-of-the-tests"
#define SOURCE_S "[source s]\npath = /s\nsecret = another secret of 16 bytes\n"

START_TEST(test_invalid_name_for_events_is_refused)
{
        static const char *const cases[][2] = {
            {SOURCE_S "ce_source = invoicing eu\n", "is not a URI or a path"},
            {SOURCE_S "ce_source = /50%\n", "%NN"},
            {SOURCE_S "ce_source =\n", "value is missing"},
            {SOURCE_S "ce_source = /invoicing\n",
             "[source invoicing] and [source s] have the same ce_source"},
            {SOURCE_S "ce_type_prefix = com.example\n", "is not a prefix that ends with"},
            {SOURCE_S "ce_type_prefix = com.example .\n", "is not a prefix"},
            {SOURCE_S "ce_dataschema_base = /schemas/\n", "is not an absolute URI"},
            {SOURCE_S "ce_dataschema_base = https://schemas.example/?v=1/\n", "is not an absolute URI"},
            {SOURCE_S "ce_dataschema_base = https://schemas.example/gatepost\n", "that ends with a slash"},
        };

        scratch_expect_refused(cases[_i][0], cases[_i][1]);
}
END_TEST

START_TEST(test_overlong_name_for_events_is_refused)
{
        static const char *const names[] = {"ce_source = /", "ce_type_prefix = ", "ce_dataschema_base = x:/"};
        static const char *const ends[] = {"", ".", "/"};
        static const int most[] = {RULES_SOURCE_MAX - 1, RULES_TYPE_PREFIX_MAX - 1,
                                   RULES_SCHEMA_BASE_MAX - 4};
        char more[1024], letters[600];

        memset(letters, 'x', sizeof(letters));
        (void)snprintf(more, sizeof(more), SOURCE_S "%s%.*s%s\n", names[_i], most[_i], letters, ends[_i]);
        struct loaded loaded = scratch_load_more(more);
        ck_assert_str_eq(loaded.messages, "");
        scratch_release(&loaded);
        (void)snprintf(more, sizeof(more), SOURCE_S "%s%.*s%s\n", names[_i], most[_i] + 1, letters, ends[_i]);
        scratch_expect_refused(more, "is longer than");
}
END_TEST

START_TEST(test_sources_conflict_whichever_comes_first)
{
        struct loaded loaded =
            scratch_load_more(SOURCE_S "ce_source = /t\n"
                                       "[source t]\npath = /t\nsecret = a third secret of 16 bytes\n");

        ck_assert_uint_eq(scratch_count(&loaded), 1);
        (void)scratch_expect(&loaded, SCRATCH_MINIMAL_LINES + 4, "[source s] and [source t]");
        scratch_release(&loaded);
}
END_TEST

static const char *const with_password[] = {
    SOURCE_S "ce_dataschema_base = https://ops:" PASSWORD "@schemas.example/\n",
    SOURCE_S "ce_dataschema_base = https://" PASSWORD "@schemas.example:8443/gatepost/\n",
    SOURCE_S "ce_dataschema_base = https://ops:" PASSWORD "@schemas.example\n",
    SOURCE_S "ce_dataschema_base = https://ops:" PASSWORD "^/@schemas.example/\n",
    SOURCE_S "ce_source = https://ops:" PASSWORD "@invoicing.example/eu\n",
    SOURCE_S "ce_source = //" PASSWORD "@invoicing.example/eu\n",
    SOURCE_S "ce_source = https://ops:" PASSWORD " x@invoicing.example/eu\n",
};

START_TEST(test_password_in_a_published_uri_is_refused_and_not_shown)
{
        struct loaded loaded = scratch_load_more(with_password[_i]);

        ck_assert_uint_eq(scratch_count(&loaded), 1);
        (void)scratch_expect(&loaded, SCRATCH_MINIMAL_LINES + 4, "would be published in each event");
        ck_assert_ptr_null(strstr(loaded.messages, PASSWORD));
        scratch_release(&loaded);
}
END_TEST

START_TEST(test_at_sign_in_a_path_is_accepted)
{
        struct loaded loaded = scratch_load_more(SOURCE_S "ce_source = mailto:ops@invoicing.example\n"
                                                          "ce_dataschema_base = https://h:8443/@gatepost/\n");

        ck_assert_str_eq(loaded.messages, "");
        scratch_release(&loaded);
}
END_TEST

Suite *
suite_event_names(void)
{
        Suite *suite = suite_create("event_names");
        TCase *tests = tcase_create("options");

        tcase_add_checked_fixture(tests, scratch_setup, scratch_teardown);
        tcase_add_loop_test(tests, test_invalid_name_for_events_is_refused, 0, 9);
        tcase_add_loop_test(tests, test_overlong_name_for_events_is_refused, 0, 3);
        tcase_add_loop_test(tests, test_password_in_a_published_uri_is_refused_and_not_shown, 0,
                            ARRAY_LEN(with_password));
        tcase_add_test(tests, test_at_sign_in_a_path_is_accepted);
        tcase_add_test(tests, test_sources_conflict_whichever_comes_first);
        suite_add_tcase(suite, tests);
        return suite;
}
