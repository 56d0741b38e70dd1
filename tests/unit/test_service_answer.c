#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/service_answer.h"
#include "suites.h"

static struct service_error
read_error(const char *body)
{
        struct service_error error;

        service_error_read(body, strlen(body), &error);
        return error;
}

START_TEST(test_error_envelope_is_parsed_completely)
{
        struct service_error error = read_error(
            "{\"ok\":false,\"error\":{\"code\":\"VALIDATION_ERROR\",\"message\":\"no good\","
            "\"requestId\":\"r-1\",\"violations\":[{\"field\":\"url\",\"message\":\"must be https\"},"
            "{\"field\":\"events[0]\",\"message\":\"unknown\",\"more\":[1,2]}]}}");

        ck_assert_str_eq(error.code, "VALIDATION_ERROR");
        ck_assert_str_eq(error.message, "no good");
        ck_assert_str_eq(error.request_id, "r-1");
        ck_assert_uint_eq(error.n_violations, 2);
        ck_assert_str_eq(error.violations[0].field, "url");
        ck_assert_str_eq(error.violations[0].message, "must be https");
        ck_assert_str_eq(error.violations[1].field, "events[0]");
        ck_assert_str_eq(error.violations[1].message, "unknown");
        service_error_clear(&error);
}
END_TEST

START_TEST(test_malformed_envelope_gives_an_empty_error)
{
        static const char *const bodies[] = {
            "",
            "<html>Bad Gateway</html>",
            "null",
            "7",
            "[]",
            "{}",
            "{\"error\":null}",
            "{\"error\":\"text\"}",
            "{\"error\":[{\"code\":\"X\"}]}",
            "{\"error\":{\"code\":7,\"message\":null,\"requestId\":{},\"violations\":{}}}",
            "{\"error\":{\"violations\":[]}}",
            "{\"error\":{\"violations\":[1,null,\"x\",[],{},{\"field\":1,\"message\":[]}]}}",
            "{\"error\":{\"code\":\"cut of",
            "{\"error\":{\"code\":\"\xff\"}}",
        };

        for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
                struct service_error error = read_error(bodies[i]);

                ck_assert_ptr_null(error.code);
                ck_assert_ptr_null(error.message);
                ck_assert_ptr_null(error.request_id);
                ck_assert_uint_eq(error.n_violations, 0);
                service_error_clear(&error);
        }
}
END_TEST

START_TEST(test_violation_may_lack_field_or_message)
{
        struct service_error error =
            read_error("{\"error\":{\"violations\":[{\"message\":\"m\"},{},{\"field\":\"f\"}]}}");

        ck_assert_uint_eq(error.n_violations, 2);
        ck_assert_ptr_null(error.violations[0].field);
        ck_assert_str_eq(error.violations[0].message, "m");
        ck_assert_str_eq(error.violations[1].field, "f");
        ck_assert_ptr_null(error.violations[1].message);
        service_error_clear(&error);
}
END_TEST

#define ONE \
        "{\"id\":\"a\",\"url\":\"https://x/" \
        "\",\"events\":[\"*\"],\"createdAt\":\"2026-11-21T00:00:00Z\",\"secret\":\"s\"}"
#define OTHER "{\"id\":12,\"url\":\"https://y/\",\"events\":[\"invoice.accepted\",7,\"invoice.rejected\"]}"

START_TEST(test_list_is_found_in_all_supported_forms)
{
        static const char *const bodies[] = {
            "[" ONE "," OTHER "]",
            "{\"ok\":true,\"webhooks\":[" ONE "," OTHER "]}",
            "{\"data\":[" ONE "," OTHER "],\"next\":null}",
            "{\"items\":[" ONE "," OTHER "]}",
            "{\"webhooks\":7,\"subscriptions\":[" ONE "," OTHER "]}",
        };

        for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
                struct subscription_views views;
                struct error error = {""};

                ck_assert_msg(service_answer_list(bodies[i], strlen(bodies[i]), &views, &error) == 0,
                              "%s: %s", bodies[i], error.text);
                ck_assert_uint_eq(views.n, 2);
                ck_assert_str_eq(views.items[0].id, "a");
                ck_assert_str_eq(views.items[0].url, "https://x/");
                ck_assert_uint_eq(views.items[0].n_events, 1);
                ck_assert_str_eq(views.items[0].events[0], "*");
                ck_assert_str_eq(views.items[0].created, "2026-11-21T00:00:00Z");
                ck_assert_str_eq(views.items[1].id, "12");
                ck_assert_uint_eq(views.items[1].n_events, 2);
                ck_assert_str_eq(views.items[1].events[1], "invoice.rejected");
                ck_assert_ptr_null(views.items[1].created);
                subscription_views_clear(&views);
        }
}
END_TEST

START_TEST(test_empty_list_is_accepted)
{
        struct subscription_views views;
        struct error error;

        ck_assert_int_eq(service_answer_list("{\"webhooks\":[]}", 15, &views, &error), 0);
        ck_assert_uint_eq(views.n, 0);
        subscription_views_clear(&views);
}
END_TEST

/* If a part of a list were accepted as all of it, a webhook could be registered twice. */
START_TEST(test_malformed_list_is_refused)
{
        static const char *const bodies[] = {
            "",
            "{}",
            "null",
            "\"x\"",
            "{\"webhooks\":null}",
            "{\"webhooks\":{}}",
            "[1]",
            "[null]",
            "[[]]",
            "[{}]",
            "[{\"id\":\"a\"}]",
            "[{\"id\":\"\",\"url\":\"https://x/\"}]",
            "[{\"id\":true,\"url\":\"https://x/\"}]",
            "[{\"url\":\"https://x/\"}]",
            "[" ONE ",{\"id\":\"b\"}]",
            "[" ONE "",
            "[" ONE "]]",
        };

        for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
                struct subscription_views views;
                struct error error = {""};

                ck_assert_msg(service_answer_list(bodies[i], strlen(bodies[i]), &views, &error) == -1, "%s",
                              bodies[i]);
                ck_assert_str_ne(error.text, "");
                subscription_views_clear(&views);
        }
}
END_TEST

START_TEST(test_deep_nesting_is_refused)
{
        size_t len = 1000000;
        char *body = malloc(len);
        struct subscription_views views;
        struct service_error service_error;
        struct error error;

        memset(body, '[', len);
        ck_assert_int_eq(service_answer_list(body, len, &views, &error), -1);
        subscription_views_clear(&views);
        service_error_read(body, len, &service_error);
        service_error_clear(&service_error);
        free(body);
}
END_TEST

START_TEST(test_registered_webhook_is_found_in_all_supported_forms)
{
        static const char *const bodies[] = {ONE, "{\"webhook\":" ONE "}", "{\"ok\":true,\"data\":" ONE "}",
                                             "{\"subscription\":" ONE "}"};
        struct subscription_views views;

        for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
                service_answer_one(bodies[i], strlen(bodies[i]), &views);
                ck_assert_uint_eq(views.n, 1);
                ck_assert_str_eq(views.items[0].id, "a");
                subscription_views_clear(&views);
        }
        service_answer_one("{\"id\":7}", 8, &views);
        ck_assert_uint_eq(views.n, 1);
        ck_assert_str_eq(views.items[0].id, "7");
        ck_assert_ptr_null(views.items[0].url);
        subscription_views_clear(&views);
}
END_TEST

START_TEST(test_answer_without_a_webhook_gives_none)
{
        static const char *const bodies[] = {"",
                                             "{}",
                                             "null",
                                             "[]",
                                             "[" ONE "]",
                                             "{\"data\":[]}",
                                             "{\"id\":null}",
                                             "{\"webhook\":{\"url\":\"https://x/\",\"events\":[\"*\"]}}"};
        struct subscription_views views;

        for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
                service_answer_one(bodies[i], strlen(bodies[i]), &views);
                ck_assert_uint_eq(views.n, 0);
                subscription_views_clear(&views);
        }
}
END_TEST

Suite *
suite_service_answer(void)
{
        Suite *suite = suite_create("service_answer");
        TCase *tcase = tcase_create("answers");

        tcase_add_test(tcase, test_error_envelope_is_parsed_completely);
        tcase_add_test(tcase, test_malformed_envelope_gives_an_empty_error);
        tcase_add_test(tcase, test_violation_may_lack_field_or_message);
        tcase_add_test(tcase, test_list_is_found_in_all_supported_forms);
        tcase_add_test(tcase, test_empty_list_is_accepted);
        tcase_add_test(tcase, test_malformed_list_is_refused);
        tcase_add_test(tcase, test_deep_nesting_is_refused);
        tcase_add_test(tcase, test_registered_webhook_is_found_in_all_supported_forms);
        tcase_add_test(tcase, test_answer_without_a_webhook_gives_none);
        suite_add_tcase(suite, tcase);
        return suite;
}
