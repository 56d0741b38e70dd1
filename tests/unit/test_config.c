#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "config/config.h"
#include "suites.h"

#define SECRET "0123456789abcdef0123456789abcdef"

static char directory[] = "/tmp/gatepost-unit-XXXXXX";
static char *conf, *secret, *messages;

static void
write_file(const char *path, const char *text, mode_t mode)
{
        FILE *out = fopen(path, "w");

        ck_assert_ptr_nonnull(out);
        ck_assert_int_ge(fputs(text, out), 0);
        ck_assert_int_eq(fclose(out), 0);
        ck_assert_int_eq(chmod(path, mode), 0);
}

static void
set_up(void)
{
        memcpy(directory + strlen(directory) - 6, "XXXXXX", 6);
        ck_assert_ptr_nonnull(mkdtemp(directory));
        conf = mem_printf("%s/conf", directory);
        secret = mem_printf("%s/secret", directory);
        messages = mem_printf("%s/messages", directory);
        write_file(secret, SECRET "\n", 0600);
}

static void
tear_down(void)
{
        (void)unlink(conf);
        (void)unlink(secret);
        (void)unlink(messages);
        ck_assert_int_eq(rmdir(directory), 0);
        free(conf);
        free(secret);
        free(messages);
}

/* Load a configuration; `output` receives the text on stderr. */
static struct config *
load(const char *text, mode_t mode, char output[4096])
{
        struct config *config;
        int saved = dup(STDERR_FILENO);
        FILE *in;

        write_file(conf, text, mode);
        ck_assert_ptr_nonnull(freopen(messages, "w", stderr));
        config = config_load(conf);
        (void)fflush(stderr);
        ck_assert_int_ge(dup2(saved, STDERR_FILENO), 0);
        (void)close(saved);
        in = fopen(messages, "r");
        output[fread(output, 1, 4095, in)] = '\0';
        (void)fclose(in);
        return config;
}

/* A valid configuration with more lines at the end of its source. */
static char *
right(const char *more)
{
        return mem_printf("[receiver]\nlisten = 127.0.0.1:8080\n[kafka]\nbootstrap.servers = localhost:9092\n"
                          "[source invoicing]\npath = /hook\nsecret_file = %s\n%s",
                          secret, more);
}

static void
assert_refused(const char *more, const char *message)
{
        char *text = right(more), output[4096];
        struct config *config = load(text, 0600, output);

        ck_assert_msg(config == NULL, "%s was taken", more);
        ck_assert_msg(strstr(output, message) != NULL, "%s: %s", more, output);
        free(text);
}

START_TEST(test_defaults_are_filled_in)
{
        char *text = right(""), output[4096];
        struct config *config = load(text, 0644, output);

        ck_assert_msg(config != NULL, "%s", output);
        ck_assert_uint_eq(config->roles, CONFIG_RECEIVER | CONFIG_ROUTER);
        ck_assert_uint_eq(config->max_body, 1048576);
        ck_assert_uint_eq(config->dedup_window_ms, UINT64_C(259200000));
        ck_assert_str_eq(config->sources[0].header_prefix, "x-invoicing");
        ck_assert_str_eq(config->deliveries_topic, "gatepost.deliveries");
        ck_assert_uint_eq(topic_table_size(config->topics), 9);
        ck_assert_str_eq(config->admin->text, "127.0.0.1:9464");
        ck_assert_int_eq(config->sources[0].replay_guard, 1);
        config_free(config);
        free(text);
}
END_TEST

START_TEST(test_newline_at_the_end_of_a_secret_file_is_ignored)
{
        char *text = right(""), output[4096];
        uint8_t expected[SIGNATURE_SIZE], signature[SIGNATURE_SIZE];
        struct signature_key *key = signature_key_new(SECRET, strlen(SECRET));
        struct config *config = load(text, 0600, output);

        ck_assert_msg(config != NULL, "%s", output);
        ck_assert_int_eq(signature_compute(key, "1", "b", 1, expected), 0);
        ck_assert_int_eq(signature_compute(config->sources[0].keys[0], "1", "b", 1, signature), 0);
        ck_assert_mem_eq(expected, signature, SIGNATURE_SIZE);
        signature_key_free(key);
        config_free(config);
        free(text);
}
END_TEST

START_TEST(test_ten_mistakes_give_ten_messages_with_line_numbers)
{
        static const size_t lines[10] = {2, 4, 5, 6, 8, 9, 11, 12, 14, 16};
        char output[4096], *at = output, *expected;
        struct config *config = load("[gatepost]\n"
                                     "roles = reciever\n"
                                     "[receiver]\n"
                                     "threads = 0\n"
                                     "listen = somewhere\n"
                                     "ack_timeout = 8\n"
                                     "[source invoicing]\n"
                                     "path = hook\n"
                                     "secret = short\n"
                                     "[kafka]\n"
                                     "acks = 1\n"
                                     "bootstrap.server = localhost\n"
                                     "bootstrap.servers = localhost:9092\n"
                                     "[recevier]\n"
                                     "[topics]\n"
                                     "prefix\n",
                                     0600, output);

        ck_assert_ptr_null(config);
        for (size_t i = 0; i < 10; i++) {
                expected = mem_printf("%s:%zu: ", conf, lines[i]);
                ck_assert_msg(strncmp(at, expected, strlen(expected)) == 0, "line %zu is not next in: %s",
                              lines[i], at);
                at = strchr(at, '\n') + 1;
                free(expected);
        }
        ck_assert_msg(*at == '\0', "more than ten: %s", at);
        ck_assert_ptr_nonnull(strstr(output, "is not a role"));
        ck_assert_ptr_nonnull(strstr(output, "did you mean bootstrap.servers?"));
        ck_assert_ptr_nonnull(strstr(output, "did you mean [receiver]?"));
        ck_assert_ptr_null(strstr(output, "short\n"));
}
END_TEST

START_TEST(test_world_readable_secrets_are_refused)
{
        char *text = right(""), output[4096];

        ck_assert_int_eq(chmod(secret, 0644), 0);
        ck_assert_ptr_null(load(text, 0600, output));
        ck_assert_ptr_nonnull(strstr(output, "mode 0644"));
        ck_assert_ptr_nonnull(strstr(output, "chmod o= "));
        free(text);
        ck_assert_int_eq(chmod(secret, 0640), 0);
        text = right("secret = " SECRET "\n");
        ck_assert_ptr_null(load(text, 0644, output));
        ck_assert_ptr_nonnull(strstr(output, ":8: "));
        ck_assert_ptr_null(strstr(output, SECRET));
        free(text);
}
END_TEST

static const struct {
        const char *more;
        const char *message;
} refusals[] = {
    {"secret_file = /nonexistent\n", ":8: secret_file: cannot open /nonexistent"},
    {"secret = tooshort\n", "shorter than 16 bytes"},
    {"tolerence = 3s\n", "did you mean tolerance?"},
    {"tolerance = 300\n", "needs a unit"},
    {"tolerance = 3s\ntolerance = 4s\n", "already set on line 8"},
    {"key = invoiceId\n", "JSON pointer"},
    {"kind = event\n", "begins with a slash"},
    {"replay_guard = yes\n", "neither on nor off"},
    {"webhook_id = a b\n", "webhook-id"},
    {"header_prefix = X-Foo\n", "lowercase"},
    {"[source invoicing]\npath = /x\n", "duplicate [source invoicing]"},
    {"[source other]\npath = /hook\nsecret = " SECRET "\n", "already has this path"},
    {"[source other]\nsecret = " SECRET "\n", "needs a path"},
    {"[source other]\npath = /y\n", "needs a secret_file"},
    {"[source]\npath = /y\n", "a source needs a name"},
    {"[receiver]\ntls_key_file = /k\n", "also needs tls_certificate_file"},
    {"[receiver]\nmax_in_flight = 2KiB\n", "smaller than max_body"},
    {"[receiver]\nheader_timeout = 50s\n", "longer than request_timeout"},
    {"[receiver]\nlisten = 127.0.0.1:8080\n", "duplicate 127.0.0.1:8080"},
    {"[receiver]\nlisten = [::1:80\n", "no numeric address"},
    {"[receiver]\nlisten = unix:relative\n", "begins with a slash"},
    {"[admin]\nlisten = 0.0.0.0:9464\n", "can be reached from other machines"},
    {"[events]\ninvoice.* = gatepost.deliveries\n", "Gatepost's own"},
    {"[events]\nin*voice = x\n", "none for all kinds"},
    {"[topics]\nprefix = a b\n", "is not a name"},
    {"[kafka]\ntransactional.id = x\n", "may not be set"},
    {"[kafka]\nrequest.required.acks = 1\n", "may not be set"},
    {"[kafka]\ntest.mock.num.brokers = 1\n", "may not be set"},
    {"[kafka]\nlinger.ms = soon\n", "linger.ms"},
    {"[kafka]\nsasl.password_file = /nonexistent\n", "cannot open"},
    {"[service]\nbase_url = http://api\n", "https"},
    {"[router]\ndedup_window = 99999d\n", "is not between"},
    {"[router]\ndedup_window = 599s\n", ":9: dedup_window is shorter than twice the tolerance"},
};

START_TEST(test_invalid_configuration_is_refused_with_a_reason)
{
        assert_refused(refusals[_i].more, refusals[_i].message);
}
END_TEST

START_TEST(test_empty_or_incomplete_file_is_refused)
{
        char output[4096];

        ck_assert_ptr_null(load("", 0600, output));
        ck_assert_ptr_nonnull(strstr(output, "is empty"));
        ck_assert_ptr_null(load("# nothing\n", 0600, output));
        ck_assert_ptr_nonnull(strstr(output, "is empty"));
        ck_assert_ptr_null(load("[kafka]\nbootstrap.servers = b\n", 0600, output));
        ck_assert_ptr_nonnull(strstr(output, "there is no source"));
        ck_assert_ptr_nonnull(strstr(output, "needs a `listen`"));
}
END_TEST

START_TEST(test_ini_dialect_is_parsed)
{
        char output[4096], *text;
        struct config *config;

        text = right("  webhook_id=a   \r\nwebhook_id = \"b\" ; another\n; webhook_id = c\n# "
                     "webhook_id = d\n"
                     "subject = \"/a ;b\"\n");
        config = load(text, 0600, output);
        ck_assert_msg(config != NULL, "%s", output);
        ck_assert_uint_eq(config->sources[0].n_webhook_ids, 2);
        ck_assert_str_eq(config->sources[0].webhook_ids[0], "a");
        ck_assert_str_eq(config->sources[0].webhook_ids[1], "b");
        ck_assert_str_eq(config->sources[0].rules.subject.text, "/a ;b");
        config_free(config);
        free(text);
}
END_TEST

Suite *
suite_config(void)
{
        Suite *suite = suite_create("config");
        TCase *all = tcase_create("all");

        tcase_add_checked_fixture(all, set_up, tear_down);
        tcase_add_test(all, test_defaults_are_filled_in);
        tcase_add_test(all, test_newline_at_the_end_of_a_secret_file_is_ignored);
        tcase_add_test(all, test_ten_mistakes_give_ten_messages_with_line_numbers);
        tcase_add_test(all, test_world_readable_secrets_are_refused);
        tcase_add_loop_test(all, test_invalid_configuration_is_refused_with_a_reason, 0,
                            (int)ARRAY_LEN(refusals));
        tcase_add_test(all, test_empty_or_incomplete_file_is_refused);
        tcase_add_test(all, test_ini_dialect_is_parsed);
        suite_add_tcase(suite, all);
        return suite;
}
