#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/json_tree.h"
#include "sandbox/delivery_scheduler.h"
#include "sandbox/event_filter.h"
#include "sandbox/fire_report.h"
#include "sandbox/invoice_rules.h"
#include "sandbox/keys.h"
#include "sandbox/webhooks.h"
#include "suites.h"

/*
 * Check an invoice with this supplier and tax code. Returns the number of violations, or -1 if a country rule
 * is broken.
 */
static int
check_invoice(const char *supplier_tax_id, const char *tax_code)
{
        struct violations violations = {0};
        struct error error;
        char text[256];
        int len =
            snprintf(text, sizeof(text),
                     "{\"invoiceNumber\":\"1\",\"supplierTaxId\":\"%s\",\"lines\":[{\"taxCode\":\"%s\"}]}",
                     supplier_tax_id, tax_code);
        struct json_value *invoice = json_tree_parse(text, (size_t)len, &error);
        int result;

        ck_assert_ptr_nonnull(invoice);
        invoice_rules_check(invoice, &violations);
        result = (int)violations.n;
        if (result == 0)
                result = invoice_rules_check_country(invoice, &error);
        violations_clear(&violations);
        json_tree_free(invoice);
        return result;
}

static const struct {
        const char *tax_id;
        int valid;
} vat_numbers[] = {
    {"IT00743110157", 1}, {"IT12345678903", 1},  {"IT00743110158", 0}, {"IT07643110157", 0},
    {"IT0074311015", 0},  {"IT007431101570", 0}, {"IT0074311015A", 0}, {"IT", 0},
    {"IT 0743110157", 0},
};

START_TEST(test_italian_vat_number_needs_a_valid_check_digit)
{
        ck_assert_int_eq(check_invoice(vat_numbers[_i].tax_id, "S") == 0, vat_numbers[_i].valid);
}
END_TEST

START_TEST(test_only_one_check_digit_is_valid)
{
        char tax_id[] = "IT1234567890?";
        int n = 0;

        for (char last = '0'; last <= '9'; last++) {
                tax_id[12] = last;
                n += check_invoice(tax_id, "S") == 0;
        }
        ck_assert_int_eq(n, 1);
}
END_TEST

START_TEST(test_tax_codes_are_those_of_en16931)
{
        static const char *const known[] = {"AE", "B", "E", "G", "K", "L", "M", "O", "S", "Z"};
        static const char *const unknown[] = {"", "A", "s", "AA", "S ", "SS", "20"};

        /* The first one means reverse charge, which requires the buyer's tax identifier. */
        for (size_t i = 0; i < ARRAY_LEN(known); i++)
                ck_assert_int_eq(check_invoice("PL1", known[i]), i == 0 ? -1 : 0);
        for (size_t i = 0; i < ARRAY_LEN(unknown); i++)
                ck_assert_int_eq(check_invoice("PL1", unknown[i]), 1);
}
END_TEST

START_TEST(test_retry_interval_doubles)
{
        ck_assert_uint_eq(delivery_scheduler_retry_ms(5000, 1), 5000);
        for (unsigned n = 2; n < DELIVERY_SCHEDULER_MAX_ATTEMPTS; n++)
                ck_assert_uint_eq(delivery_scheduler_retry_ms(5000, n),
                                  2 * delivery_scheduler_retry_ms(5000, n - 1));
        ck_assert_uint_eq(delivery_scheduler_retry_ms(3600000, DELIVERY_SCHEDULER_MAX_ATTEMPTS - 1),
                          UINT64_C(3600000) * 256);
}
END_TEST

static const struct {
        const char *filter;
        const char *kind;
        int matches;
} filters[] = {
    {"*", "invoice.accepted", 1},
    {"*", "reporting_batch.overdue", 1},
    {"*", "something_new", 1},
    {"invoice.accepted", "invoice.accepted", 1},
    {"invoice.accepted", "invoice.accepted2", 0},
    {"invoice.accepted", "invoice", 0},
    {"invoice.accepted", "Invoice.accepted", 0},
    {"reporting_batch.*", "reporting_batch.overdue", 1},
    {"reporting_batch.*", "reporting_batch.", 0},
    {"reporting_batch.*", "reporting_batch", 0},
    {"reporting_batch.*", "invoice.accepted", 0},
    {"reporting_batch.overdue", "reporting_batch.overdue", 1},
    {"reporting_batch.overdue", "reporting_batch.ready", 0},
};

START_TEST(test_event_filter_matches_kinds)
{
        ck_assert_int_eq(event_filter_matches(filters[_i].filter, filters[_i].kind), filters[_i].matches);
        ck_assert_int_eq(event_filter_is_known(filters[_i].filter), 1);
}
END_TEST

START_TEST(test_unknown_event_filter_is_refused)
{
        static const char *const wrong[] = {"",
                                            "**",
                                            "invoice.*",
                                            "invoice",
                                            "reporting_batch.",
                                            "reporting_batch",
                                            " *",
                                            "invoice.accepted ",
                                            "reporting_batch.a b"};

        for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
                ck_assert_msg(!event_filter_is_known(wrong[i]), "%s", wrong[i]);
        ck_assert_str_eq(event_filter_suggest("invoice.recieved"), "invoice.received");
        ck_assert_ptr_null(event_filter_suggest("something else"));
}
END_TEST

static const struct {
        const char *url;
        const char *reason; /* part of the error; NULL: the URL is valid */
} urls[] = {
    {"https://gateway.example", NULL},
    {"https://gateway.example:8443/a/b?c=d", NULL},
    {"http://127.0.0.1/", NULL},
    {"http://[::1]:8080/", NULL},
    {"http://localhost/", NULL},
    {"http://gateway.example/", "https"},
    {"http://127.0.0.1.example/", "https"},
    {"http://[::2]/", "https"},
    {"http://0.0.0.0/", "https"},
    {"ftp://127.0.0.1/", "https"},
    {"//gateway.example/", "absolute"},
    {"gateway.example", "absolute"},
    {"", "absolute"},
    {"https://u@gateway.example/", "user name"},
    {"https://:p@gateway.example/", "user name"},
    {"https://gateway.example/#f", "fragment"},
    {"https://gateway.example/ ", "visible"},
    {"https://gateway.example/\n", "visible"},
};

START_TEST(test_endpoint_url_is_checked)
{
        struct error error;

        if (urls[_i].reason == NULL) {
                ck_assert_msg(webhooks_check_url(urls[_i].url, &error) == 0, "%s", error.text);
        } else {
                ck_assert_int_eq(webhooks_check_url(urls[_i].url, &error), -1);
                ck_assert_msg(strstr(error.text, urls[_i].reason) != NULL, "%s", error.text);
        }
}
END_TEST

START_TEST(test_key_restrictions)
{
        struct api_keys keys = {.n = 0};
        struct error error;
        const struct api_key *key;

        ck_assert_int_eq(keys_add(&keys, "one", &error), 0);
        ck_assert_int_eq(keys_add(&keys, "two,read-only", &error), 0);
        ck_assert_int_eq(keys_add(&keys, "three,entity=a.b,read-only", &error), 0);
        key = keys_find(&keys, "one");
        ck_assert(key != NULL && !key->read_only && keys_allow_entity(key, "a.b") &&
                  keys_allow_entity(key, "c"));
        key = keys_find(&keys, "two");
        ck_assert(key != NULL && key->read_only && keys_allow_entity(key, "c"));
        key = keys_find(&keys, "three");
        ck_assert(key != NULL && key->read_only && keys_allow_entity(key, "a.b") &&
                  !keys_allow_entity(key, "c"));
        ck_assert_ptr_null(keys_find(&keys, "on"));
        ck_assert_ptr_null(keys_find(&keys, ""));
        keys_clear(&keys);
}
END_TEST

START_TEST(test_refused_key_is_not_quoted)
{
        static const char *const wrong[] = {"",           ",read-only",
                                            "key-zq key", "key-zq,entity",
                                            "key-zq,",    "key-zq,entity=?",
                                            "key-zq,a",   "key-zq,entity=a,entity=b"};
        struct api_keys keys = {.n = 0};
        struct error error;

        for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
                ck_assert_int_eq(keys_add(&keys, wrong[i], &error), -1);
                ck_assert_ptr_null(strstr(error.text, "key-zq"));
        }
        ck_assert_uint_eq(keys.n, 0);
}
END_TEST

static const struct {
        const char *text;
        const char *field;  /* of the only violation; NULL: none */
        const char *broken; /* part of the error of the country rules; NULL: none */
} invoices[] = {
    {"{\"invoiceNumber\":\"1\",\"supplierTaxId\":\"PL1\",\"lines\":[{\"taxCode\":\"S\"}]}", NULL, NULL},
    {"{\"invoiceNumber\":\"1\",\"supplierTaxId\":\"PL1\",\"country\":null,\"lines\":[{\"taxCode\":\"S\"}]}",
     NULL, NULL},
    {"{\"invoiceNumber\":\"1\",\"supplierTaxId\":\"PL1\",\"lines\":[{\"taxCode\":\"Q\"}]}",
     "lines[0].taxCode", NULL},
    {"{\"invoiceNumber\":\"1\",\"supplierTaxId\":\"PL1\",\"lines\":[{\"taxCode\":\"S\"},{\"taxCode\":null}]}",
     "lines[1].taxCode", NULL},
    {"{\"invoiceNumber\":\"1\",\"supplierTaxId\":\"PL1\",\"lines\":[{\"taxCode\":\"S\"},[]]}", "lines[1]",
     NULL},
    {"{\"supplierTaxId\":\"PL1\",\"lines\":[{\"taxCode\":\"S\"}]}", "invoiceNumber", NULL},
    {"{\"invoiceNumber\":\"1\",\"supplierTaxId\":\"PL1\",\"lines\":[{\"taxCode\":\"AE\"}]}", NULL,
     "reverse charge"},
    {"{\"invoiceNumber\":\"1\",\"supplierTaxId\":\"PL1\",\"reverseCharge\":true,\"lines\":[{\"taxCode\":"
     "\"S\"}]}",
     NULL, "reverse charge"},
    {"{\"invoiceNumber\":\"1\",\"supplierTaxId\":\"IT12345678901\",\"lines\":[{\"taxCode\":\"S\"}]}", NULL,
     "supplierTaxId"},
    {"{\"invoiceNumber\":\"1\",\"supplierTaxId\":\"IT12345678903\",\"lines\":[{\"taxCode\":\"S\"}]}", NULL,
     NULL},
    {"{\"invoiceNumber\":\"1\",\"supplierTaxId\":\"PL1\",\"lines\":[{\"taxCode\":\"S\"}],\"\":0}", "\"\"",
     NULL},
    {"[]", "body", NULL},
};

START_TEST(test_invoice_is_checked)
{
        struct violations violations = {0};
        struct error error;
        struct json_value *invoice = json_tree_parse(invoices[_i].text, strlen(invoices[_i].text), &error);

        ck_assert_ptr_nonnull(invoice);
        invoice_rules_check(invoice, &violations);
        if (invoices[_i].field != NULL) {
                ck_assert_uint_eq(violations.n, 1);
                ck_assert_str_eq(violations.items[0].field, invoices[_i].field);
        } else {
                ck_assert_uint_eq(violations.n, 0);
                ck_assert_int_eq(invoice_rules_check_country(invoice, &error),
                                 invoices[_i].broken == NULL ? 0 : -1);
                if (invoices[_i].broken != NULL)
                        ck_assert_msg(strstr(error.text, invoices[_i].broken) != NULL, "%s", error.text);
        }
        violations_clear(&violations);
        json_tree_free(invoice);
}
END_TEST

START_TEST(test_decisions_of_the_authority)
{
        ck_assert_str_eq(invoice_rules_decision(NULL)->kind, "invoice.accepted");
        ck_assert_str_eq(invoice_rules_decision("held")->kind, "held_unmapped_decision");
        ck_assert_str_eq(invoice_rules_decision("rejected")->status, "REJECTED");
        ck_assert_ptr_null(invoice_rules_decision("submitted"));
        ck_assert_str_eq(invoice_rules_authority("IT"), "SdI");
        ck_assert_str_eq(invoice_rules_authority(NULL), "Peppol");
}
END_TEST

START_TEST(test_percentiles_use_the_nearest_rank)
{
        struct latencies latencies = {0};

        ck_assert_uint_eq(latencies_at(&latencies, 500), 0);
        latencies_add(&latencies, 200);
        ck_assert_uint_eq(latencies_at(&latencies, 500), 200);
        ck_assert_uint_eq(latencies_at(&latencies, 990), 200);
        for (uint64_t ns = 199; ns > 0; ns--)
                latencies_add(&latencies, ns);
        ck_assert_uint_eq(latencies_at(&latencies, 500), 100);
        ck_assert_uint_eq(latencies_at(&latencies, 501), 101);
        ck_assert_uint_eq(latencies_at(&latencies, 990), 198);
        ck_assert_uint_eq(latencies_at(&latencies, 1000), 200);
}
END_TEST

START_TEST(test_long_latencies_are_rounded_up_by_one_in_1024_at_most)
{
        struct latencies latencies = {0};
        const uint64_t hour_ns = UINT64_C(3600000000000);

        for (uint64_t ns = 1; ns < 9 * hour_ns; ns += ns / 3 + 1) {
                latencies = (struct latencies){0};
                latencies_add(&latencies, ns);
                latencies_add(&latencies, 9 * hour_ns);
                ck_assert_uint_ge(latencies_at(&latencies, 500), ns);
                ck_assert_uint_le(latencies_at(&latencies, 500), ns + ns / 1024);
                ck_assert_uint_eq(latencies_at(&latencies, 1000), 9 * hour_ns);
        }
}
END_TEST

static const struct {
        int status;
        int forged;
        int exit_status;
} answers[] = {
    {200, 0, 0},  {204, 0, 0},  {401, 1, 0},  {200, 1, 65}, {401, 0, 65},
    {302, 0, 65}, {503, 0, 75}, {503, 1, 75}, {0, 0, 75},   {999, 0, 75},
};

START_TEST(test_exit_status_of_fire)
{
        struct fire_report report = {0};

        fire_report_add(&report, 200, 0, 1, NULL);
        fire_report_add(&report, answers[_i].status, answers[_i].forged, 1, "away");
        ck_assert_int_eq(fire_report_exit_status(&report), answers[_i].exit_status);
}
END_TEST

Suite *
suite_sandbox_rules(void)
{
        Suite *suite = suite_create("sandbox_rules");
        TCase *tcase = tcase_create("sandbox_rules");

        tcase_add_loop_test(tcase, test_italian_vat_number_needs_a_valid_check_digit, 0,
                            ARRAY_LEN(vat_numbers));
        tcase_add_test(tcase, test_only_one_check_digit_is_valid);
        tcase_add_test(tcase, test_tax_codes_are_those_of_en16931);
        tcase_add_test(tcase, test_retry_interval_doubles);
        tcase_add_loop_test(tcase, test_event_filter_matches_kinds, 0, ARRAY_LEN(filters));
        tcase_add_test(tcase, test_unknown_event_filter_is_refused);
        tcase_add_loop_test(tcase, test_endpoint_url_is_checked, 0, ARRAY_LEN(urls));
        tcase_add_test(tcase, test_key_restrictions);
        tcase_add_test(tcase, test_refused_key_is_not_quoted);
        tcase_add_loop_test(tcase, test_invoice_is_checked, 0, ARRAY_LEN(invoices));
        tcase_add_test(tcase, test_decisions_of_the_authority);
        tcase_add_test(tcase, test_percentiles_use_the_nearest_rank);
        tcase_add_test(tcase, test_long_latencies_are_rounded_up_by_one_in_1024_at_most);
        tcase_add_loop_test(tcase, test_exit_status_of_fire, 0, ARRAY_LEN(answers));
        suite_add_tcase(suite, tcase);
        return suite;
}
