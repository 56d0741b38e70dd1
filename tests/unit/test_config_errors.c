#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "scratch.h"
#include "suites.h"

START_TEST(test_ten_mistakes_are_reported_at_their_lines)
{
        static const char text[] = "# ten mistakes\n"
                                   "[gatepost]\n"
                                   "roles = receiver, rooter\n" /* 3 */
                                   "[receiver]\n"
                                   "listen = 127.0.0.1:99999\n" /* 5 */
                                   "threads = two\n"            /* 6 */
                                   "max_body = 1048576\n"       /* 7 */
                                   "ack_timout = 8s\n"          /* 8 */
                                   "[rooter]\n"                 /* 9 */
                                   "max_batch = 0\n"
                                   "[source invoicing]\n"
                                   "path = webhooks/invoicing\n" /* 12 */
                                   "secret = too short\n"        /* 13 */
                                   "tolerance = 300\n"           /* 14 */
                                   "[kafka]\n"
                                   "bootstrap.servers = 127.0.0.1:9092\n"
                                   "acks = 1\n"; /* 17 */
        struct loaded loaded = scratch_load(text);

        ck_assert_ptr_null(loaded.config);
        ck_assert_uint_eq(scratch_count(&loaded), 10);
        (void)scratch_expect(&loaded, 3, "router");
        (void)scratch_expect(&loaded, 5, "listen");
        (void)scratch_expect(&loaded, 6, "threads");
        (void)scratch_expect(&loaded, 7, "unit");
        (void)scratch_expect(&loaded, 8, "ack_timeout");
        (void)scratch_expect(&loaded, 9, "[router]");
        (void)scratch_expect(&loaded, 12, "not the path of a URL");
        (void)scratch_expect(&loaded, 13, "16 bytes");
        (void)scratch_expect(&loaded, 14, "unit");
        (void)scratch_expect(&loaded, 17, "acks");
        scratch_release(&loaded);
}
END_TEST

START_TEST(test_messages_are_in_line_order)
{
        struct loaded loaded =
            scratch_load("[source a]\n[source b]\npath = /\n[kafka]\nacks = 1\n[nonsense]\n");
        unsigned last = 0, line;

        for (const char *at = loaded.messages; *at != '\0'; at = strchr(at, '\n') + 1) {
                if (sscanf(at, "%u: ", &line) == 1) {
                        ck_assert_uint_ge(line, last);
                        last = line;
                }
        }
        ck_assert_uint_eq(last, 6);
        scratch_release(&loaded);
}
END_TEST

START_TEST(test_misspelt_name_gets_a_suggestion)
{
        static const char *const cases[][2] = {
            {"[receivr]\n", "did you mean [receiver]?"},
            {"[sorce x]\n", "did you mean [source]?"},
            {"[router]\ndedup_windw = 3d\n", "did you mean dedup_window?"},
            {"[receiver]\nmaxbody = 1MiB\n", "did you mean max_body?"},
            {"[source s]\npath = /s\nsecret = sixteen bytes or more\nsecretfile = /x\n",
             "did you mean secret_file?"},
            {"[gatepost]\nroles = reciever\n", "is not a role"},
        };

        scratch_expect_refused(cases[_i][0], cases[_i][1]);
}
END_TEST

START_TEST(test_option_in_the_wrong_section_is_reported_with_the_right_one)
{
        scratch_expect_refused("[router]\nthreads = 2\n", "belongs in [receiver]");
}
END_TEST

START_TEST(test_invalid_value_is_refused_at_its_line)
{
        static const char *const cases[][2] = {
            {"[gatepost]\nroles =\n", "value is missing"},
            {"[gatepost]\nroles = nothing\n", "role"},
            {"[gatepost]\nroles = receiver,\n", "role"},
            {"[gatepost]\ninstance = a b\n", "instance"},
            {"[gatepost]\ninstance = \"\"\n", "instance"},
            {"[receiver]\nthreads = 0\n", "between 1 and 64"},
            {"[receiver]\nthreads = 65\n", "between 1 and 64"},
            {"[receiver]\nthreads = -1\n", "threads"},
            {"[receiver]\nmax_body = 65MiB\n", "64MiB"},
            {"[receiver]\nmax_body = 1023B\n", "1KiB"},
            {"[receiver]\nmax_body = 1MB\n", "KiB, MiB, GiB"},
            {"[receiver]\nack_timeout = 99ms\n", "100ms"},
            {"[receiver]\nack_timeout = 6min\n", "5min"},
            {"[receiver]\nack_timeout = 8 s\n", "unit"},
            {"[router]\ndedup_window = 91d\n", "90d"},
            {"[router]\ndedup_window = forever\n", "dedup_window"},
            {"[router]\nmax_batch = 0\n", "1000000"},
            {"[topics]\nprefix = a b\n", "prefix"},
            {"[topics]\nprefix = a/b\n", "prefix"},
            {"[service]\nbase_url = http://api.example/v1\n", "https"},
            {"[source s]\npath = /s\nsecret = sixteen bytes or more\ntolerance = 500ms\n", "1s"},
            {"[source s]\npath = /s\nsecret = sixteen bytes or more\ntolerance = 169h\n", "7d"},
            {"[source s]\npath = /s\nsecret = sixteen bytes or more\nreplay_guard = yes\n", "on nor off"},
            {"[source s]\npath = /s\nsecret = sixteen bytes or more\nkind = event\n", "slash"},
            {"[source s]\npath = /s\nsecret = sixteen bytes or more\nkind = /a~2\n", "~"},
            {"[source s]\npath = /s\nsecret = sixteen bytes or more\nkey = deliveryid\n", "delivery-id"},
            {"[source s]\npath = /s\nsecret = sixteen bytes or more\nheader_prefix = x-s-\n", "header"},
            {"[source s]\npath = /s\nsecret = sixteen bytes or more\nheader_prefix = x s\n", "header"},
            {"[source s]\npath = /s\nsecret = sixteen bytes or more\nwebhook_id = a_b\n", "webhook"},
            {"[source s]\nsecret = sixteen bytes or more\npath = /s?a=b\n", "path"},
            {"[source s]\nsecret = sixteen bytes or more\npath = /s s\n", "path"},
            {"[source s]\nsecret = sixteen bytes or more\npath = /s\xc3\xa9\n", "path"},
        };

        scratch_expect_refused(cases[_i][0], cases[_i][1]);
}
END_TEST

START_TEST(test_invalid_listen_address_is_refused)
{
        static const char *const texts[] = {
            "nowhere",    "127.0.0.1",    "localhost:80", "1.2.3.4.5:80",    "1.2.3:80",
            "127.0.0.1:", "127.0.0.1:-1", "[::1:80",      "::1:80",          "[::1]",
            "[]:80",      "unix:",        "unix:x.sock",  "127.0.0.1:65536", "127.0.0.1:8080 x"};
        char more[128];

        (void)snprintf(more, sizeof(more), "[receiver]\nlisten = %s\n", texts[_i]);
        scratch_expect_refused(more, "listen");
}
END_TEST

START_TEST(test_too_long_socket_path_is_refused)
{
        char more[256];

        (void)snprintf(more, sizeof(more), "[receiver]\nlisten = unix:/%0108d\n", 0);
        scratch_expect_refused(more, "107");
}
END_TEST

START_TEST(test_duplicate_address_is_refused)
{
        scratch_expect_refused("[receiver]\nlisten = 127.0.0.1:8080\n", "in conflict");
        scratch_expect_refused("[receiver]\nlisten = *:81\nlisten = 0.0.0.0:81\n", "in conflict");
        scratch_expect_refused("[admin]\nlisten = 127.0.0.1:8080\n", "[receiver]");
}
END_TEST

START_TEST(test_non_loopback_admin_endpoint_is_refused)
{
        static const char *const texts[] = {"0.0.0.0:9464", "*:9464", "[::]:9464", "192.0.2.1:9464"};
        char more[64];

        (void)snprintf(more, sizeof(more), "[admin]\nlisten = %s\n", texts[_i]);
        scratch_expect_refused(more, "allow_remote = on");
}
END_TEST

START_TEST(test_incomplete_tls_options_are_refused)
{
        scratch_expect_refused("[receiver]\ntls_certificate_file = /x\n", "tls_key_file");
        scratch_expect_refused("[receiver]\ntls_key_file = /x\n", "tls_certificate_file");
        scratch_expect_refused("[receiver]\ntls_client_ca_file = /x\n", "tls_certificate_file");
        scratch_expect_refused("[receiver]\ntls_key_file = /x\ntls_certificate_file = /nonexistent\n",
                               "cannot open ");
}
END_TEST

START_TEST(test_option_given_twice_names_the_earlier_line)
{
        scratch_expect_refused("[receiver]\nthreads = 2\nmax_body = 2MiB\n[receiver]\nthreads = 2\n",
                               "line 9");
        scratch_expect_refused("[events]\na = t.a\na = t.b\n", "line 9");
        scratch_expect_refused("[kafka]\nlinger.ms = 5\nlinger.ms = 5\n", "line 9");
}
END_TEST

START_TEST(test_incomplete_source_is_reported_at_its_heading)
{
        struct loaded loaded = scratch_load_more("[source s]\ntolerance = 1s\n");

        ck_assert_uint_eq(scratch_count(&loaded), 2);
        (void)scratch_expect(&loaded, SCRATCH_MINIMAL_LINES + 1, "needs a path");
        (void)scratch_expect(&loaded, SCRATCH_MINIMAL_LINES + 1, "needs a secret");
        scratch_release(&loaded);
}
END_TEST

START_TEST(test_sources_must_have_different_names_and_paths)
{
        struct loaded loaded =
            scratch_load_more("[source invoicing]\npath = /other\nsecret = sixteen bytes or more\n");

        ck_assert_uint_eq(scratch_count(&loaded), 1);
        (void)scratch_expect(&loaded, SCRATCH_MINIMAL_LINES + 1, "line 3");
        scratch_release(&loaded);
        scratch_expect_refused("[source s]\nsecret = sixteen bytes or more\npath = /webhooks/invoicing\n",
                               "[source invoicing]");
}
END_TEST

START_TEST(test_invalid_heading_gives_one_message)
{
        static const char *const cases[][2] = {{"[source]\npath = /s\n", "name"},
                                               {"[receiver two]\nthreads = 99\n", "name"},
                                               {"[admin x]\nlisten = off\n", "name"},
                                               {"[nonsense]\na = b\n", "nonsense"}};
        struct loaded loaded = scratch_load_more(cases[_i][0]);

        ck_assert_ptr_null(loaded.config);
        ck_assert_uint_eq(scratch_count(&loaded), 1);
        (void)scratch_expect(&loaded, SCRATCH_MINIMAL_LINES + 1, cases[_i][1]);
        scratch_release(&loaded);
}
END_TEST

START_TEST(test_invalid_source_name_is_refused)
{
        static const char *const names[] = {
            "a.b", "a/b", "a b", "caf\xc3\xa9",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" /* 65 */};
        char more[256];
        struct loaded loaded;

        (void)snprintf(more, sizeof(more), "[source %s]\npath = /s\nsecret = sixteen bytes or more\n",
                       names[_i]);
        loaded = scratch_load_more(more);
        ck_assert_uint_eq(scratch_count(&loaded), 1);
        (void)scratch_expect(&loaded, SCRATCH_MINIMAL_LINES + 1, "name");
        scratch_release(&loaded);
}
END_TEST

START_TEST(test_empty_file_is_refused)
{
        static const char *const texts[] = {"", "\n", "# nothing\n; at all\n"};
        struct loaded loaded = scratch_load(texts[_i]);

        ck_assert_ptr_null(loaded.config);
        ck_assert_uint_eq(scratch_count(&loaded), 1);
        ck_assert_ptr_nonnull(strstr(loaded.messages, "empty"));
        scratch_release(&loaded);
}
END_TEST

START_TEST(test_all_missing_options_are_reported)
{
        struct loaded loaded = scratch_load("[gatepost]\n");

        ck_assert_ptr_null(loaded.config);
        ck_assert_uint_eq(scratch_count(&loaded), 3);
        ck_assert_ptr_nonnull(strstr(loaded.messages, "[source"));
        ck_assert_ptr_nonnull(strstr(loaded.messages, "listen"));
        ck_assert_ptr_nonnull(strstr(loaded.messages, "bootstrap.servers"));
        scratch_release(&loaded);
}
END_TEST

static void
load_missing(void *arg)
{
        ck_assert_ptr_null(config_load(arg));
}

START_TEST(test_unreadable_file_is_named)
{
        const char *missing = scratch_path("missing.conf");
        char *written = scratch_capture(load_missing, (void *)(uintptr_t)missing);

        ck_assert_ptr_nonnull(strstr(written, missing));
        ck_assert_ptr_nonnull(strstr(written, "No such file"));
        free(written);
        written = scratch_capture(load_missing, (void *)(uintptr_t) "/tmp");
        ck_assert_ptr_nonnull(strstr(written, "/tmp: is not a regular file"));
        free(written);
        ck_assert_int_eq(mkfifo(scratch_path("fifo"), 0600), 0);
        written = scratch_capture(load_missing, (void *)(uintptr_t)scratch_path("fifo"));
        ck_assert_ptr_nonnull(strstr(written, "fifo: is not a regular file"));
        free(written);
}
END_TEST

/* A reload must end in time, whatever the content of the file. */
START_TEST(test_file_with_too_many_options_is_refused)
{
        const size_t n = 12000;
        char *text = malloc(n * 24), *at = text;
        struct loaded loaded;

        ck_assert_ptr_nonnull(text);
        at += sprintf(at, "[events]\n");
        for (size_t i = 0; i < n; i++)
                at += sprintf(at, "kind%zu.* = topic\n", i);
        loaded = scratch_load(text);
        ck_assert_ptr_null(loaded.config);
        ck_assert_uint_eq(scratch_count(&loaded), 1);
        ck_assert_ptr_nonnull(strstr(loaded.messages, "more than 10000"));
        scratch_release(&loaded);
        free(text);
}
END_TEST

START_TEST(test_contradictory_limits_are_refused_at_the_later_line)
{
        static const char *const cases[][2] = {
            {"[receiver]\nmax_in_flight = 1000KiB\n", "max_body"},
            {"[receiver]\nmax_in_flight = 3MiB\nmax_body = 4MiB\n", "max_in_flight"},
            {"[receiver]\nmax_body = 33MiB\n", "max_batch_bytes"},
            {"[router]\nmax_batch_bytes = 1000KiB\n", "max_body"},
            {"[router]\ndedup_window = 599s\n", "dedup_window is shorter than twice the tolerance"},
            {"[receiver]\nmax_body = 2MiB\n[kafka]\nreceive.message.max.bytes = 3211263\n", "max_body"},
            {"[kafka]\nfetch.max.bytes = 0x400000\nreceive.message.max.bytes = 5242879\n", "fetch.max.bytes"},
        };

        scratch_expect_refused(cases[_i][0], cases[_i][1]);
}
END_TEST

START_TEST(test_invalid_event_topics_are_refused)
{
        scratch_expect_refused("[events]\ninvoice.accepted = gatepost.deliveries\n", "gatepost.deliveries");
        scratch_expect_refused("[events]\ninvoice.accepted = gatepost.quarantine\n", "gatepost.quarantine");
        scratch_expect_refused("[topics]\nprefix = x\n[events]\ninvoice.accepted = x.deliveries\n",
                               "x.deliveries");
        scratch_expect_refused("[events]\ninvoice* = t.a\n", ".*");
        scratch_expect_refused("[events]\ninvoice.accepted = t/a\n", "t/a");
}
END_TEST

static TCase *
texts_and_names(void)
{
        TCase *tests = tcase_create("texts and names");

        tcase_add_checked_fixture(tests, scratch_setup, scratch_teardown);
        tcase_add_test(tests, test_ten_mistakes_are_reported_at_their_lines);
        tcase_add_test(tests, test_messages_are_in_line_order);
        tcase_add_loop_test(tests, test_misspelt_name_gets_a_suggestion, 0, 6);
        tcase_add_test(tests, test_option_in_the_wrong_section_is_reported_with_the_right_one);
        tcase_add_test(tests, test_option_given_twice_names_the_earlier_line);
        tcase_add_loop_test(tests, test_invalid_heading_gives_one_message, 0, 4);
        tcase_add_loop_test(tests, test_invalid_source_name_is_refused, 0, 5);
        tcase_add_loop_test(tests, test_empty_file_is_refused, 0, 3);
        tcase_add_test(tests, test_all_missing_options_are_reported);
        tcase_add_test(tests, test_unreadable_file_is_named);
        tcase_add_test(tests, test_file_with_too_many_options_is_refused);
        return tests;
}

static TCase *
values(void)
{
        TCase *tests = tcase_create("values");

        tcase_add_checked_fixture(tests, scratch_setup, scratch_teardown);
        tcase_add_loop_test(tests, test_invalid_value_is_refused_at_its_line, 0, 32);
        tcase_add_loop_test(tests, test_invalid_listen_address_is_refused, 0, 15);
        tcase_add_test(tests, test_too_long_socket_path_is_refused);
        tcase_add_test(tests, test_duplicate_address_is_refused);
        tcase_add_loop_test(tests, test_non_loopback_admin_endpoint_is_refused, 0, 4);
        tcase_add_test(tests, test_incomplete_tls_options_are_refused);
        tcase_add_test(tests, test_incomplete_source_is_reported_at_its_heading);
        tcase_add_test(tests, test_sources_must_have_different_names_and_paths);
        tcase_add_loop_test(tests, test_contradictory_limits_are_refused_at_the_later_line, 0, 7);
        tcase_add_test(tests, test_invalid_event_topics_are_refused);
        return tests;
}

Suite *
suite_config_errors(void)
{
        Suite *suite = suite_create("config_errors");

        suite_add_tcase(suite, texts_and_names());
        suite_add_tcase(suite, values());
        return suite;
}
