#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree.h"
#include "scratch.h"
#include "suites.h"

/* The configuration in a file as config_print() writes it. The caller frees the text. */
static char *
print(const char *path, int json)
{
        char *text = NULL;
        size_t len = 0;
        FILE *out = open_memstream(&text, &len);

        ck_assert_ptr_nonnull(out);
        ck_assert_int_eq(config_print(path, json, out), 0);
        (void)fclose(out);
        return text;
}

static const char *
write_more(const char *more)
{
        char text[2048];

        (void)snprintf(text, sizeof(text), "%s%s", scratch_minimal, more);
        return scratch_file("gatepost.conf", text, strlen(text), 0600);
}

/* Fail unless a line of the text begins with one part and ends with another. */
static void
expect_line(const char *text, const char *begin, const char *end)
{
        size_t begin_len = strlen(begin), end_len = strlen(end);

        for (const char *at = text; *at != '\0';) {
                size_t len = strcspn(at, "\n");

                if (len >= begin_len + end_len && strncmp(at, begin, begin_len) == 0 &&
                    strncmp(at + len - end_len, end, end_len) == 0)
                        return;
                at += len + (at[len] == '\n');
        }
        ck_abort_msg("no line '%s ... %s' in:\n%s", begin, end, text);
}

START_TEST(test_values_are_printed_with_line_or_default)
{
        char *text = print(write_more("[receiver]\nmax_body = 2MiB\n"), 0);

        expect_line(text, "max_body = \"2MiB\" ", "; line 9");
        expect_line(text, "listen = \"127.0.0.1:8080\" ", "; line 2");
        expect_line(text, "ack_timeout = \"8s\" ", "; default");
        expect_line(text, "header_prefix = \"x-invoicing\" ", "; default");
        expect_line(text, "bootstrap.servers = \"kafka1:9092\" ", "; line 7");
        expect_line(text, "invoice.accepted = \"gatepost.invoice.accepted\" ", "; default");
        expect_line(text, "[source invoicing]", "");
        free(text);
}
END_TEST

START_TEST(test_secrets_are_masked)
{
        for (int json = 0; json < 2; json++) {
                char *text =
                    print(write_more(
                              "security.protocol = SASL_SSL\nsasl.mechanism = PLAIN\nsasl.username = u\n"
                              "sasl.password = hidden\nssl.key.pem = hidden too\n"
                              "[service]\napi_key = hidden-as-well\n"),
                          json);

                ck_assert_ptr_null(strstr(text, "hidden"));
                ck_assert_ptr_null(strstr(text, "sixteen"));
                ck_assert_ptr_nonnull(strstr(text, "sasl.password"));
                ck_assert_ptr_nonnull(strstr(text, "api_key"));
                free(text);
        }
}
END_TEST

START_TEST(test_printed_configuration_can_be_loaded)
{
        char *first = print(write_more("[gatepost]\ninstance = gw\n[events]\na.* = t.a\n"
                                       "[kafka]\nclient.rack = \" spaces ; and comments \"\n"
                                       "sasl.kerberos.principal = a;b \"c\"\n"),
                            0);
        struct loaded loaded;

        for (char *at = strstr(first, "(secret)"); at != NULL; at = strstr(at, "(secret)"))
                memcpy(at, "12345678", 8);
        ck_assert_ptr_nonnull(strstr(first, "secret = \"12345678\""));
        memcpy(strstr(first, "secret = \"12345678\"") + 18, "12345678\"", 9); /* over the quote and blanks */
        loaded = scratch_load(first);
        ck_assert_str_eq(loaded.messages, "");
        ck_assert_str_eq(loaded.config->kafka[1].value, " spaces ; and comments ");
        ck_assert_str_eq(loaded.config->kafka[2].value, "a;b \"c\"");
        ck_assert_uint_eq(topic_table_size(loaded.config->topics), 10);
        scratch_release(&loaded);
        free(first);
}
END_TEST

START_TEST(test_long_value_is_not_truncated)
{
        char more[1024] = "client.rack = ", *text;
        size_t len = strlen(more);

        memset(more + len, 'x', 600);
        memcpy(more + len + 600, "end\n", 5);
        text = print(write_more(more), 0);
        ck_assert_ptr_nonnull(strstr(text, "xxend\" ; line 8"));
        free(text);
}
END_TEST

START_TEST(test_json_has_every_value_with_its_line)
{
        char *text = print(write_more("[receiver]\nmax_body = 2MiB\n"), 1);
        struct error error = {""};
        struct json_value *rows = json_tree_parse(text, strlen(text), &error);
        int found = 0;

        ck_assert_msg(rows != NULL && rows->type == JSON_ARRAY, "%s", error.text);
        for (const struct json_value *row = rows->first; row != NULL; row = row->next) {
                const char *name = json_tree_text(row, "name");
                const struct json_value *line = json_tree_get(row, "line");

                ck_assert_ptr_nonnull(name);
                if (strcmp(name, "max_body") == 0) {
                        ck_assert_str_eq(line->text, "9");
                        found++;
                } else if (strcmp(name, "threads") == 0) {
                        ck_assert_int_eq(line->type, JSON_NULL);
                        found++;
                }
        }
        ck_assert_int_eq(found, 2);
        json_tree_free(rows);
        free(text);
}
END_TEST

static void
print_bad(void *arg)
{
        char *text = NULL;
        size_t len = 0;
        FILE *out = open_memstream(&text, &len);

        ck_assert_int_eq(config_print(arg, 0, out), -1);
        (void)fclose(out);
        ck_assert_uint_eq(len, 0);
        free(text);
}

START_TEST(test_file_with_errors_prints_errors_only)
{
        const char *path = write_more("[receiver]\nthreads = 0\n");
        char *written = scratch_capture(print_bad, (void *)(uintptr_t)path);

        ck_assert_ptr_nonnull(strstr(written, ":9: threads"));
        free(written);
}
END_TEST

Suite *
suite_config_print(void)
{
        Suite *suite = suite_create("config_print");
        TCase *tests = tcase_create("dump");

        tcase_add_checked_fixture(tests, scratch_setup, scratch_teardown);
        tcase_add_test(tests, test_values_are_printed_with_line_or_default);
        tcase_add_test(tests, test_secrets_are_masked);
        tcase_add_test(tests, test_printed_configuration_can_be_loaded);
        tcase_add_test(tests, test_long_value_is_not_truncated);
        tcase_add_test(tests, test_json_has_every_value_with_its_line);
        tcase_add_test(tests, test_file_with_errors_prints_errors_only);
        suite_add_tcase(suite, tests);
        return suite;
}
