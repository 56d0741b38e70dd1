#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/signature.h"
#include "scratch.h"
#include "suites.h"

static const char secret[] = "a secret that must not be shown";

/* A configuration whose only secret is in that file; the option is on line 5. */
static struct loaded
load_with(const char *path, mode_t mode)
{
        char text[1024];

        (void)snprintf(text, sizeof(text),
                       "[receiver]\nlisten = 127.0.0.1:0\n[source s]\npath = /s\nsecret_file = %s\n"
                       "[kafka]\nbootstrap.servers = k:9092\n",
                       path);
        return scratch_load_mode(text, mode);
}

/* Fail unless the source's key number index is that secret. */
static void
expect_key(const struct loaded *loaded, size_t index, const char *text)
{
        uint8_t got[SIGNATURE_SIZE], wanted[SIGNATURE_SIZE];
        struct signature_key *key = signature_key_new(text, strlen(text));

        ck_assert_msg(loaded->config != NULL, "%s", loaded->messages);
        ck_assert_int_eq(signature_compute(key, "1795230245", "x", 1, wanted), 0);
        ck_assert_int_eq(signature_compute(loaded->config->sources[0].keys[index], "1795230245", "x", 1, got),
                         0);
        ck_assert_mem_eq(got, wanted, sizeof(got));
        signature_key_free(key);
}

START_TEST(test_newline_at_the_end_of_a_secret_file_is_dropped)
{
        static const char *const endings[][2] = {
            {"", ""}, {"\n", ""}, {"\r\n", ""}, {" \n", " "}, {"\t", "\t"}};
        char content[64], expected[64];
        struct loaded loaded;

        (void)snprintf(content, sizeof(content), "%s%s", secret, endings[_i][0]);
        (void)snprintf(expected, sizeof(expected), "%s%s", secret, endings[_i][1]);
        loaded = load_with(scratch_file("secret", content, strlen(content), 0600), 0644);
        expect_key(&loaded, 0, expected);
        scratch_release(&loaded);
}
END_TEST

START_TEST(test_secret_of_several_lines_is_refused)
{
        static const char *const contents[][2] = {
            {"a secret that must not be shown\n\n", "more than one line"},
            {"a secret that must not be shown\r", "more than one line"},
            {"\na secret that must not be shown\n", "more than one line"},
            {"a secret that must not be shown\nand the one before it\n", "more than one line"},
        };
        struct loaded loaded =
            load_with(scratch_file("secret", contents[_i][0], strlen(contents[_i][0]), 0600), 0600);

        ck_assert_ptr_null(loaded.config);
        (void)scratch_expect(&loaded, 5, contents[_i][1]);
        ck_assert_ptr_null(strstr(loaded.messages, "must not be shown"));
        scratch_release(&loaded);
}
END_TEST

START_TEST(test_duplicate_secret_file_is_refused)
{
        const char *path = scratch_file("secret", secret, strlen(secret), 0600);
        char text[1024];
        struct loaded loaded;

        (void)snprintf(text, sizeof(text),
                       "[receiver]\nlisten = 127.0.0.1:0\n[source s]\npath = /s\nsecret_file = %s\n"
                       "secret_file = %s\n[kafka]\nbootstrap.servers = k:9092\n",
                       path, path);
        loaded = scratch_load(text);
        ck_assert_ptr_null(loaded.config);
        (void)scratch_expect(&loaded, 6, "duplicate");
        scratch_release(&loaded);
}
END_TEST

/* In YAML syntax, continued on a second line, in place of a file name, or without its heading. */
START_TEST(test_secret_in_a_wrong_place_is_not_shown)
{
        static const char *const lines[] = {
            "[source t]\npath = /t\nsecret_file = x\nsecret: bXVzdCBub3QgYmUgc2hvd24gdG8gYW55Ym9keQ==",
            "[source t]\nsecret =\n  bXVzdCBub3QgYmUgc2hvd24gdG8gYW55Ym9keQ==",
            "[source t]\nsecret_file = bXVzdCBub3QgYmUgc2hvd24gdG8gYW55Ym9keQ==",
            "[source t]\nsecret bXVzdCBub3QgYmUgc2hvd24gdG8gYW55Ym9keQ==",
            "[service]\napi_key: bXVzdCBub3QgYmUgc2hvd24gdG8gYW55Ym9keQ==",
            "[service]\napi_key_file = bXVzdCBub3QgYmUgc2hvd24gdG8gYW55Ym9keQ==",
            "[kafka]\nsasl.password: bXVzdCBub3QgYmUgc2hvd24gdG8gYW55Ym9keQ==",
            "[kafka]\nsasl.password: bXVzd=\nsasl.password: bXVzd=",
            "[kafka]\nsasl.password_file = bXVzdCBub3QgYmUgc2hvd24gdG8gYW55Ym9keQ==",
            "[events]\ninvoice.* = t\nsecret = bXVzdCBub3QgYmUgc2hvd24gdG8gYW55Ym9keQ==",
            "[events]\ninvoice.* = t\nsecret: bXVzdCBub3QgYmUgc2hvd24gdG8gYW55Ym9keQ==",
        };
        struct loaded loaded = scratch_load_more(lines[_i]);

        ck_assert_ptr_null(loaded.config);
        ck_assert_uint_ge(scratch_count(&loaded), 1);
        ck_assert_msg(strstr(loaded.messages, "bXVzd") == NULL, "%s", loaded.messages);
        scratch_release(&loaded);
}
END_TEST

START_TEST(test_inline_secret_may_be_quoted)
{
        struct loaded loaded =
            scratch_load("[receiver]\nlisten = 127.0.0.1:0\n[source s]\npath = /s\n"
                         "secret = \" sixteen bytes ; and more \"\nsecret = sixteen bytes or so\n"
                         "[kafka]\nbootstrap.servers = k:9092\n");

        expect_key(&loaded, 0, " sixteen bytes ; and more ");
        expect_key(&loaded, 1, "sixteen bytes or so");
        scratch_release(&loaded);
}
END_TEST

START_TEST(test_world_accessible_secret_file_is_refused_with_the_remedy)
{
        static const mode_t modes[] = {0604, 0644, 0602, 0606, 0666};
        const char *path = scratch_file("secret", secret, strlen(secret), modes[_i]);
        struct loaded loaded = load_with(path, 0600);
        char remedy[256];

        ck_assert_ptr_null(loaded.config);
        ck_assert_uint_eq(scratch_count(&loaded), 1);
        (void)snprintf(remedy, sizeof(remedy), "(mode %04o);  remedy: chmod o= %s", (unsigned)modes[_i],
                       path);
        (void)scratch_expect(&loaded, 5, remedy);
        scratch_release(&loaded);
}
END_TEST

START_TEST(test_secret_file_for_owner_and_group_is_accepted)
{
        static const mode_t modes[] = {0400, 0600, 0640, 0660, 0601};
        struct loaded loaded = load_with(scratch_file("secret", secret, strlen(secret), modes[_i]), 0644);

        expect_key(&loaded, 0, secret);
        scratch_release(&loaded);
}
END_TEST

START_TEST(test_secret_is_at_least_16_bytes)
{
        struct loaded loaded = load_with(scratch_file("short", "123456789012345\n", 16, 0600), 0600);

        ck_assert_ptr_null(loaded.config);
        (void)scratch_expect(&loaded, 5, "16 bytes");
        ck_assert_ptr_null(strstr(loaded.messages, "12345678901234"));
        scratch_release(&loaded);
        loaded = load_with(scratch_file("long enough", "1234567890123456\n", 17, 0600), 0600);
        expect_key(&loaded, 0, "1234567890123456");
        scratch_release(&loaded);
}
END_TEST

START_TEST(test_file_without_a_secret_is_refused)
{
        struct loaded loaded = load_with(scratch_file("empty", "", 0, 0600), 0600);

        (void)scratch_expect(&loaded, 5, "is empty");
        scratch_release(&loaded);
        loaded = load_with(scratch_path("missing"), 0600);
        (void)scratch_expect(&loaded, 5, "No such file");
        scratch_release(&loaded);
        loaded = load_with("/tmp", 0600);
        (void)scratch_expect(&loaded, 5, "/tmp");
        scratch_release(&loaded);
        loaded = load_with("/dev/zero", 0600);
        (void)scratch_expect(&loaded, 5, "regular file");
        scratch_release(&loaded);
}
END_TEST

START_TEST(test_fifo_is_refused_as_a_secret_file)
{
        const char *path = scratch_path("fifo");
        struct loaded loaded;

        ck_assert_int_eq(mkfifo(path, 0600), 0);
        loaded = load_with(path, 0600);
        (void)scratch_expect(&loaded, 5, "regular file");
        scratch_release(&loaded);
}
END_TEST

START_TEST(test_endless_secret_is_refused)
{
        size_t len = 65537;
        char *content = calloc(1, len);
        struct loaded loaded;

        memset(content, 'x', len);
        loaded = load_with(scratch_file("large", content, len, 0600), 0600);
        (void)scratch_expect(&loaded, 5, "65536");
        scratch_release(&loaded);
        free(content);
}
END_TEST

START_TEST(test_configuration_with_a_secret_must_be_private)
{
        static const mode_t modes[] = {0644, 0604, 0602};
        struct loaded loaded = scratch_load_mode(scratch_minimal, modes[_i]);

        ck_assert_ptr_null(loaded.config);
        ck_assert_uint_eq(scratch_count(&loaded), 1);
        (void)scratch_expect(&loaded, 5, "chmod o= ");
        scratch_release(&loaded);
}
END_TEST

START_TEST(test_configuration_with_a_password_must_be_private)
{
        const char *path = scratch_file("secret", secret, strlen(secret), 0600);
        char text[1024];
        struct loaded loaded;

        (void)snprintf(text, sizeof(text),
                       "[receiver]\nlisten = 127.0.0.1:0\n[source s]\npath = /s\nsecret_file = %s\n"
                       "[kafka]\nbootstrap.servers = k:9092\nsasl.password = hidden\n"
                       "security.protocol = SASL_SSL\nsasl.mechanism = PLAIN\nsasl.username = u\n",
                       path);
        loaded = scratch_load_mode(text, 0644);
        ck_assert_ptr_null(loaded.config);
        (void)scratch_expect(&loaded, 8, "chmod o= ");
        ck_assert_ptr_null(strstr(loaded.messages, "hidden"));
        scratch_release(&loaded);
        loaded = scratch_load_mode(text, 0640);
        ck_assert_str_eq(loaded.messages, "");
        scratch_release(&loaded);
}
END_TEST

START_TEST(test_api_key_file_must_be_private_but_need_not_be_readable)
{
        char more[256];
        const char *path = scratch_file("key", "k", 1, 0644);
        struct loaded loaded;

        (void)snprintf(more, sizeof(more), "[service]\napi_key_file = %s\n", path);
        scratch_expect_refused(more, "chmod o= ");
        ck_assert_int_eq(chmod(path, 0), 0);
        loaded = scratch_load_more(more);
        ck_assert_str_eq(loaded.messages, "");
        ck_assert_str_eq(loaded.config->service_api_key_file, path);
        scratch_release(&loaded);
        (void)snprintf(more, sizeof(more), "[service]\napi_key_file = %s\n", scratch_path("missing"));
        scratch_expect_refused(more, "No such file");
}
END_TEST

START_TEST(test_configuration_with_an_api_key_must_be_private)
{
        const char *path = scratch_file("secret", secret, strlen(secret), 0600);
        char text[1024];
        struct loaded loaded;

        (void)snprintf(text, sizeof(text),
                       "[receiver]\nlisten = 127.0.0.1:0\n[source s]\npath = /s\nsecret_file = %s\n"
                       "[kafka]\nbootstrap.servers = k:9092\n[service]\napi_key = hidden\n",
                       path);
        loaded = scratch_load_mode(text, 0644);
        ck_assert_ptr_null(loaded.config);
        (void)scratch_expect(&loaded, 9, "chmod o= ");
        ck_assert_ptr_null(strstr(loaded.messages, "hidden"));
        scratch_release(&loaded);
        loaded = scratch_load_mode(text, 0640);
        ck_assert_str_eq(loaded.messages, "");
        ck_assert_str_eq(loaded.config->service_api_key, "hidden");
        scratch_release(&loaded);
}
END_TEST

START_TEST(test_api_key_and_api_key_file_are_exclusive)
{
        char more[256];

        (void)snprintf(more, sizeof(more), "[service]\napi_key_file = %s\napi_key = the-key\n",
                       scratch_file("key", "k", 1, 0600));
        scratch_expect_refused(more, "either api_key or api_key_file");
}
END_TEST

Suite *
suite_config_secrets(void)
{
        Suite *suite = suite_create("config_secrets");
        TCase *tests = tcase_create("secrets");

        tcase_add_checked_fixture(tests, scratch_setup, scratch_teardown);
        tcase_add_loop_test(tests, test_newline_at_the_end_of_a_secret_file_is_dropped, 0, 5);
        tcase_add_loop_test(tests, test_secret_of_several_lines_is_refused, 0, 4);
        tcase_add_test(tests, test_duplicate_secret_file_is_refused);
        tcase_add_loop_test(tests, test_secret_in_a_wrong_place_is_not_shown, 0, 11);
        tcase_add_test(tests, test_inline_secret_may_be_quoted);
        tcase_add_loop_test(tests, test_world_accessible_secret_file_is_refused_with_the_remedy, 0, 5);
        tcase_add_loop_test(tests, test_secret_file_for_owner_and_group_is_accepted, 0, 5);
        tcase_add_test(tests, test_secret_is_at_least_16_bytes);
        tcase_add_test(tests, test_file_without_a_secret_is_refused);
        tcase_add_test(tests, test_fifo_is_refused_as_a_secret_file);
        tcase_add_test(tests, test_endless_secret_is_refused);
        tcase_add_loop_test(tests, test_configuration_with_a_secret_must_be_private, 0, 3);
        tcase_add_test(tests, test_configuration_with_a_password_must_be_private);
        tcase_add_test(tests, test_api_key_file_must_be_private_but_need_not_be_readable);
        tcase_add_test(tests, test_configuration_with_an_api_key_must_be_private);
        tcase_add_test(tests, test_api_key_and_api_key_file_are_exclusive);
        suite_add_tcase(suite, tests);
        return suite;
}
