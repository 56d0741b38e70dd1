#include <check.h>

#include "base/compiler.h"
#include "kafka/fetch_ahead.h"
#include "scratch.h"
#include "suites.h"

#define LITTLE "8192"
#define MUCH "65536"

/* Options of [kafka], and how much is fetched ahead by a librdkafka that must be woken. */
static const struct {
        const char *options, *limit;
} logins[] = {
    {"", LITTLE},
    {"security.protocol = SSL\n", LITTLE},
    {"security.protocol = sasl_ssl\nsasl.mechanism = PLAIN\nsasl.username = u\nsasl.password = p\n", LITTLE},
    {"security.protocol = SASL_PLAINTEXT\nsasl.mechanism = OAUTHBEARER\n"
     "enable.sasl.oauthbearer.unsecure.jwt = true\n",
     MUCH},
};

START_TEST(test_much_is_fetched_ahead_only_where_credentials_are_not_to_be_set)
{
        struct loaded loaded = scratch_load_more(logins[_i].options);

        ck_assert_msg(loaded.config != NULL, "%s", loaded.messages);
        ck_assert_str_eq(fetch_ahead_limit(loaded.config),
                         fetch_ahead_backoff() == NULL ? logins[_i].limit : LITTLE);
        scratch_release(&loaded);
}
END_TEST

Suite *
suite_fetch_ahead(void)
{
        Suite *suite = suite_create("fetch_ahead");
        TCase *tcase = tcase_create("fetch_ahead");

        tcase_add_loop_test(tcase, test_much_is_fetched_ahead_only_where_credentials_are_not_to_be_set, 0,
                            (int)ARRAY_LEN(logins));
        suite_add_tcase(suite, tcase);
        return suite;
}
