#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/json_tree.h"
#include "sandbox/fire_report.h"
#include "sandbox/invoice_rules.h"
#include "sandbox/keys.h"
#include "sandbox/webhooks.h"
#include "suites.h"

#define SUPPLIER "\"invoiceNumber\":\"1\",\"supplierTaxId\":"
#define LINES(code) ",\"lines\":[{\"taxCode\":\"" code "\"}]}"

static const struct {
        const char *text;
        const char *field;  /* of the only violation; NULL: none */
        const char *broken; /* part of the error of the country rules; NULL: none */
} invoices[] = {
    {"{" SUPPLIER "\"PL1\"" LINES("S"), NULL, NULL},
    {"{" SUPPLIER "\"PL1\"" LINES("20"), "lines[0].taxCode", NULL},
    {"{" SUPPLIER "\"PL1\",\"lines\":[{\"taxCode\":\"S\"},[]]}", "lines[1]", NULL},
    {"[]", "body", NULL},
    {"{" SUPPLIER "\"PL1\"" LINES("AE"), NULL, "reverse charge"},
    {"{\"reverseCharge\":true," SUPPLIER "\"PL1\"" LINES("S"), NULL, "reverse charge"},
    {"{\"buyerTaxId\":\"FR1\"," SUPPLIER "\"PL1\"" LINES("AE"), NULL, NULL},
    {"{" SUPPLIER "\"IT00743110157\"" LINES("S"), NULL, NULL},
    {"{" SUPPLIER "\"IT12345678903\"" LINES("S"), NULL, NULL},
    {"{" SUPPLIER "\"IT00743110158\"" LINES("S"), NULL, "check digit"},
    {"{" SUPPLIER "\"IT07643110157\"" LINES("S"), NULL, "check digit"},
    {"{" SUPPLIER "\"IT0074311015\"" LINES("S"), NULL, "check digit"},
    {"{" SUPPLIER "\"IT0074311015A\"" LINES("S"), NULL, "check digit"},
    {"{" SUPPLIER "\"00743110158\"" LINES("S"), NULL, NULL},
    {"{\"country\":\"IT\"," SUPPLIER "\"00743110158\"" LINES("S"), NULL, "check digit"},
};

START_TEST(test_invoice_is_checked)
{
        struct violations violations = {0};
        struct error error;
        struct json_value *invoice = json_tree_parse(invoices[_i].text, strlen(invoices[_i].text), &error);

        ck_assert_ptr_nonnull(invoice);
        invoice_rules_check(invoice, &violations);
        ck_assert_uint_eq(violations.n, invoices[_i].field != NULL);
        if (invoices[_i].field != NULL) {
                ck_assert_str_eq(violations.items[0].field, invoices[_i].field);
        } else if (invoices[_i].broken != NULL) {
                ck_assert_int_eq(invoice_rules_check_country(invoice, &error), -1);
                ck_assert_msg(strstr(error.text, invoices[_i].broken) != NULL, "%s", error.text);
        } else {
                ck_assert_int_eq(invoice_rules_check_country(invoice, &error), 0);
        }
        violations_clear(&violations);
        json_tree_free(invoice);
}
END_TEST

static const struct {
        const char *filter;
        const char *kind;
        int matches;
} filters[] = {
    {"*", "invoice.accepted", 1},
    {"*", "something_new", 1},
    {"invoice.accepted", "invoice.accepted", 1},
    {"invoice.accepted", "invoice.accepted2", 0},
    {"invoice.accepted", "invoice", 0},
    {"reporting_batch.*", "reporting_batch.overdue", 1},
    {"reporting_batch.*", "reporting_batch", 0},
    {"reporting_batch.*", "invoice.accepted", 0},
    {"reporting_batch.overdue", "reporting_batch.overdue", 1},
    {"reporting_batch.overdue", "reporting_batch.ready", 0},
};

START_TEST(test_webhook_wants_the_kinds_of_its_events)
{
        struct violations violations = {0};
        struct error error;
        char text[256];
        int len =
            snprintf(text, sizeof(text),
                     "{\"url\":\"https://a.example/\",\"events\":[\"%s\"],\"secret\":\"0123456789abcdef\"}",
                     filters[_i].filter);
        struct json_value *payload = json_tree_parse(text, (size_t)len, &error);
        struct webhook *webhook;

        webhooks_check(payload, &violations);
        ck_assert_uint_eq(violations.n, 0);
        webhook = webhooks_new(payload, NULL);
        ck_assert_int_eq(webhooks_wants(webhook, "default", filters[_i].kind), filters[_i].matches);
        webhooks_free(webhook);
        json_tree_free(payload);
}
END_TEST

START_TEST(test_key_has_its_restrictions)
{
        struct api_keys keys = {.n = 0};
        struct error error;
        const struct api_key *key;

        ck_assert_int_eq(keys_add(&keys, "one", &error), 0);
        ck_assert_int_eq(keys_add(&keys, "two,entity=a.b,read-only", &error), 0);
        key = keys_find(&keys, "one");
        ck_assert(key != NULL && !key->read_only && keys_allow_entity(key, "c"));
        key = keys_find(&keys, "two");
        ck_assert(key != NULL && key->read_only && keys_allow_entity(key, "a.b") &&
                  !keys_allow_entity(key, "c"));
        ck_assert_ptr_null(keys_find(&keys, "on"));
        ck_assert_ptr_null(keys_find(&keys, ""));
        keys_clear(&keys);
}
END_TEST

static const struct {
        int status;
        int forged;
        int exit_status;
} answers[] = {
    {200, 0, 0},  {204, 0, 0},  {401, 1, 0},  {200, 1, 65}, {401, 0, 65},
    {302, 0, 65}, {503, 0, 75}, {503, 1, 75}, {0, 0, 75},   {999, 0, 65},
};

START_TEST(test_exit_status_of_fire)
{
        struct fire_report report = {0};

        fire_report_add(&report, 200, 0, 1, NULL);
        fire_report_add(&report, answers[_i].status, answers[_i].forged, 1, "away");
        ck_assert_int_eq(fire_report_exit_status(&report), answers[_i].exit_status);
        fire_report_clear(&report);
}
END_TEST

Suite *
suite_sandbox_rules(void)
{
        Suite *suite = suite_create("sandbox_rules");
        TCase *tcase = tcase_create("sandbox_rules");

        tcase_add_loop_test(tcase, test_invoice_is_checked, 0, ARRAY_LEN(invoices));
        tcase_add_loop_test(tcase, test_webhook_wants_the_kinds_of_its_events, 0, ARRAY_LEN(filters));
        tcase_add_test(tcase, test_key_has_its_restrictions);
        tcase_add_loop_test(tcase, test_exit_status_of_fire, 0, ARRAY_LEN(answers));
        suite_add_tcase(suite, tcase);
        return suite;
}
