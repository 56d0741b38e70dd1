#include <check.h>
#include <string.h>

#include "base/compiler.h"
#include "config/endpoint.h"
#include "suites.h"

START_TEST(test_service_urls_are_accepted)
{
        static const char *const good[] = {
            "https://api.example/v1",       "https://api.example",          "https://api.example/",
            "https://api.example:8443/v1/", "https://192.0.2.1/v1",         "https://[2001:db8::1]:443/v1",
            "http://127.0.0.1:8500/v1",     "http://127.8.9.1/v1",          "http://localhost:1/v1",
            "http://[::1]:65535/v1",        "https://a-b.example/v1/a%20b", "http://LocalHost:8500/v1",
        };

        for (size_t i = 0; i < ARRAY_LEN(good); i++) {
                struct error error = {""};

                ck_assert_msg(endpoint_check_url(good[i], &error) == 0, "%s: %s", good[i], error.text);
        }
}
END_TEST

/* Also hosts that one parser could take for loopback and another for a remote host. */
START_TEST(test_unencrypted_non_local_url_is_refused)
{
        static const char *const bad[] = {
            "http://api.example/v1",
            "http://127.0.0.1.example/",
            "http://localhost.example/",
            "http://128.0.0.1/",
            "http://[::2]/",
            "http://0x7f000001/",
            "http://[::ffff:127.0.0.1]/",
            "http://2130706433/",
            "http://127.1/",
        };

        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                struct error error = {""};

                ck_assert_msg(endpoint_check_url(bad[i], &error) == -1, "%s", bad[i]);
                ck_assert_msg(strstr(error.text, "API key") != NULL, "%s: %s", bad[i], error.text);
        }
}
END_TEST

START_TEST(test_invalid_url_is_refused)
{
        static const char *const bad[] = {
            "",
            "api.example/v1",
            "ftp://api.example",
            "HTTPS://api.example",
            "https://",
            "https:///v1",
            "https://:443/",
            "https://a b/",
            "https://user@api.example/",
            "https://user:pass@api.example/v1",
            "http://127.0.0.1@evil.example/",
            "http://127.0.0.1:80@evil.example/",
            "http://127.0.0.1/@evil.example",
            "http://127.0.0.1\\.evil.example/",
            "http://127.0.0.1#.evil.example/",
            "http://127.0.0.1?.evil.example/",
            "https://api.example/v1?a=b",
            "https://api.example/v1#x",
            "https://api.example:0/",
            "https://api.example:65536/",
            "https://api.example:/v1",
            "https://api.example:80x/",
            "https://[::1/",
            "https://[nonsense]/",
            "https://[::1]x/",
            "https://[]/",
            "https://api.example/a\nb",
            "https://api.example/\xc3\xa4",
            "https://m\xc3\xbcller.example/",
        };

        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                struct error error = {""};

                ck_assert_msg(endpoint_check_url(bad[i], &error) == -1, "%s", bad[i]);
                ck_assert_msg(strstr(error.text, "https") != NULL, "%s: %s", bad[i], error.text);
        }
}
END_TEST

START_TEST(test_secret_in_a_url_is_not_shown)
{
        static const char *const bad[] = {
            "https://user:hidden@api.example/v1",
            "https://hidden@api.example",
            "https://api.example/v1?api_key=hidden",
            "http://api.example/v1?key=hidden",
            "hidden@api.example",
        };

        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                struct error error = {""};

                ck_assert_int_eq(endpoint_check_url(bad[i], &error), -1);
                ck_assert_msg(strstr(error.text, "hidden") == NULL, "%s", error.text);
        }
}
END_TEST

Suite *
suite_endpoint(void)
{
        Suite *suite = suite_create("endpoint");
        TCase *tcase = tcase_create("url");

        tcase_add_test(tcase, test_service_urls_are_accepted);
        tcase_add_test(tcase, test_unencrypted_non_local_url_is_refused);
        tcase_add_test(tcase, test_invalid_url_is_refused);
        tcase_add_test(tcase, test_secret_in_a_url_is_not_shown);
        suite_add_tcase(suite, tcase);
        return suite;
}
