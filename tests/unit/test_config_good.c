#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "config/config.h"
#include "scratch.h"
#include "suites.h"

static struct loaded loaded;

/* Load the minimal configuration with more lines; it must be accepted without messages. */
static const struct config *
load_good(const char *more)
{
        loaded = scratch_load_more(more);
        ck_assert_str_eq(loaded.messages, "");
        ck_assert_ptr_nonnull(loaded.config);
        return loaded.config;
}

static void
teardown(void)
{
        scratch_release(&loaded);
        memset(&loaded, 0, sizeof(loaded));
        scratch_teardown();
}

START_TEST(test_minimal_file_gets_the_documented_defaults)
{
        const struct config *config = load_good("");
        char host[256] = "";

        (void)gethostname(host, sizeof(host) - 1);
        ck_assert_uint_eq(config->roles, CONFIG_RECEIVER | CONFIG_ROUTER);
        ck_assert_str_eq(config->instance, host);
        ck_assert_uint_eq(config->threads, 1);
        ck_assert_uint_eq(config->max_body, 1 << 20);
        ck_assert_uint_eq(config->max_in_flight, 64 << 20);
        ck_assert_uint_eq(config->max_connections, 4096);
        ck_assert_uint_eq(config->header_timeout_ms, 10000);
        ck_assert_uint_eq(config->request_timeout_ms, 30000);
        ck_assert_uint_eq(config->idle_timeout_ms, 60000);
        ck_assert_uint_eq(config->ack_timeout_ms, 8000);
        ck_assert_uint_eq(config->dedup_window_ms, UINT64_C(259200000));
        ck_assert_uint_eq(config->max_batch, 30000);
        ck_assert_uint_eq(config->max_batch_bytes, 32 << 20);
        ck_assert_str_eq(config->topics_prefix, "gatepost");
        ck_assert_str_eq(config->deliveries_topic, "gatepost.deliveries");
        ck_assert_str_eq(config->quarantine_topic, "gatepost.quarantine");
        ck_assert_str_eq(config->group, "gatepost.router");
        ck_assert_str_eq(config->admin->text, "127.0.0.1:9464");
        ck_assert_int_eq(config->embedded, 0);
        ck_assert_ptr_null(config->service_base_url);
        ck_assert_ptr_null(config->service_api_key_file);
}
END_TEST

START_TEST(test_source_gets_its_defaults)
{
        const struct config_source *source = load_good("")->sources;

        ck_assert_uint_eq(loaded.config->n_sources, 1);
        ck_assert_str_eq(source->name, "invoicing");
        ck_assert_ptr_eq(source->rules.source, source->name);
        ck_assert_str_eq(source->path, "/webhooks/invoicing");
        ck_assert_str_eq(source->header_prefix, "x-invoicing");
        ck_assert_uint_eq(source->n_keys, 1);
        ck_assert_uint_eq(source->n_webhook_ids, 0);
        ck_assert_uint_eq(source->tolerance_ms, 300000);
        ck_assert_int_eq(source->replay_guard, 1);
        ck_assert_str_eq(source->rules.kind.text, "/event");
        ck_assert_int_eq(source->rules.key_from, EVENT_KEY_KIND);
        ck_assert_uint_eq(source->rules.subject.n_segments, 0);
        ck_assert_str_eq(source->rules.ce_source, "/invoicing");
        ck_assert_ptr_null(source->rules.ce_type_prefix);
        ck_assert_ptr_null(source->rules.ce_dataschema_base);
}
END_TEST

START_TEST(test_source_may_have_names_for_its_events)
{
        const struct config_source *second =
            &load_good("[source two]\nsecret = another secret of 16 bytes\npath = /two\n"
                       "ce_source = https://invoicing.example/eu\nce_type_prefix = com.example.\n"
                       "ce_dataschema_base = https://schemas.example/gatepost/\n")
                 ->sources[1];

        ck_assert_str_eq(second->rules.ce_source, "https://invoicing.example/eu");
        ck_assert_str_eq(second->rules.ce_type_prefix, "com.example.");
        ck_assert_str_eq(second->rules.ce_dataschema_base, "https://schemas.example/gatepost/");
}
END_TEST

START_TEST(test_options_of_every_type_are_accepted)
{
        const struct config *config =
            load_good("[gatepost]\nroles = router , receiver\ninstance = gw-1.a_b\n"
                      "[receiver]\nthreads = 4\nmax_body = 2MiB\nack_timeout = 1500ms\n"
                      "[router]\ndedup_window = 36h\n[topics]\nprefix = acme.eu\n"
                      "[service]\nbase_url = https://api.example/v1\n");

        ck_assert_uint_eq(config->roles, CONFIG_RECEIVER | CONFIG_ROUTER);
        ck_assert_str_eq(config->instance, "gw-1.a_b");
        ck_assert_uint_eq(config->threads, 4);
        ck_assert_uint_eq(config->max_body, 2 << 20);
        ck_assert_uint_eq(config->ack_timeout_ms, 1500);
        ck_assert_uint_eq(config->dedup_window_ms, 129600000);
        ck_assert_str_eq(config->deliveries_topic, "acme.eu.deliveries");
        ck_assert_str_eq(config->service_base_url, "https://api.example/v1");
}
END_TEST

START_TEST(test_router_alone_needs_no_listen_address)
{
        loaded =
            scratch_load("[gatepost]\nroles = router\n[source s]\npath = /s\nsecret = sixteen bytes or so\n"
                         "[kafka]\nbootstrap.servers = k:9092\n");
        ck_assert_str_eq(loaded.messages, "");
        ck_assert_uint_eq(loaded.config->roles, CONFIG_ROUTER);
        ck_assert_uint_eq(loaded.config->n_listen, 0);
}
END_TEST

START_TEST(test_every_source_has_its_own_settings)
{
        const struct config *config = load_good(
            "[source Second_1]\npath = /second\nheader_prefix = x-two\nsecret = another sixteen bytes\n"
            "secret = and one more of sixteen\ntolerance = 10s\nreplay_guard = off\nwebhook_id = id-1\n"
            "webhook_id = id-2\nkind = /data/type\nkey = delivery-id\nsubject = /invoice~1id\n"
            "[source third]\npath = /third\nsecret = another sixteen bytes\nkey = /a/b\n");
        const struct config_source *second = &config->sources[1], *third = &config->sources[2];

        ck_assert_uint_eq(config->n_sources, 3);
        ck_assert_str_eq(second->header_prefix, "x-two");
        ck_assert_uint_eq(second->n_keys, 2);
        ck_assert_uint_eq(second->tolerance_ms, 10000);
        ck_assert_int_eq(second->replay_guard, 0);
        ck_assert_uint_eq(second->n_webhook_ids, 2);
        ck_assert_str_eq(second->webhook_ids[1], "id-2");
        ck_assert_uint_eq(second->rules.kind.n_segments, 2);
        ck_assert_int_eq(second->rules.key_from, EVENT_KEY_DELIVERY_ID);
        ck_assert_str_eq(second->rules.subject.segments[0], "invoice/id");
        ck_assert_str_eq(third->header_prefix, "x-third");
        ck_assert_int_eq(third->rules.key_from, EVENT_KEY_POINTER);
        ck_assert_str_eq(third->rules.key.segments[1], "b");
        ck_assert_str_eq(third->rules.kind.text, "/event");
        ck_assert_ptr_eq(config_find_source(config, "third", 5), third);
        ck_assert_ptr_null(config_find_source(config, "thirdly", 7));
        ck_assert_ptr_null(config_find_source(config, "thi", 3));
}
END_TEST

START_TEST(test_default_header_prefix_is_lowercase)
{
        (void)load_good("[source ACME]\npath = /acme\nsecret = another sixteen bytes\n");
        ck_assert_str_eq(loaded.config->sources[1].header_prefix, "x-acme");
}
END_TEST

START_TEST(test_addresses_of_every_family_are_parsed)
{
        const struct config *config = load_good("[receiver]\nlisten = [::1]:8443\nlisten = *:81\n"
                                                "listen = unix:/run/gatepost.sock\nlisten = 127.0.0.1:0\n"
                                                "listen = 127.0.0.1:0\n");
        const struct sockaddr_in *first = (const struct sockaddr_in *)&config->listen[0].address;
        const struct sockaddr_in6 *second = (const struct sockaddr_in6 *)&config->listen[1].address;
        const struct sockaddr_in *third = (const struct sockaddr_in *)&config->listen[2].address;
        const struct sockaddr_un *fourth = (const struct sockaddr_un *)&config->listen[3].address;

        ck_assert_uint_eq(config->n_listen, 6);
        ck_assert(first->sin_family == AF_INET && ntohs(first->sin_port) == 8080);
        ck_assert_uint_eq(ntohl(first->sin_addr.s_addr), INADDR_LOOPBACK);
        ck_assert_uint_eq(config->listen[0].address_len, sizeof(*first));
        ck_assert(second->sin6_family == AF_INET6 && ntohs(second->sin6_port) == 8443);
        ck_assert(IN6_IS_ADDR_LOOPBACK(&second->sin6_addr));
        ck_assert_uint_eq(config->listen[1].address_len, sizeof(*second));
        ck_assert(ntohl(third->sin_addr.s_addr) == INADDR_ANY && ntohs(third->sin_port) == 81);
        ck_assert_int_eq(fourth->sun_family, AF_UNIX);
        ck_assert_str_eq(fourth->sun_path, "/run/gatepost.sock");
}
END_TEST

START_TEST(test_admin_endpoint_is_local_or_off)
{
        static const char *const texts[] = {"off", "127.0.0.9:1", "[::1]:0", "unix:/run/admin.sock"};
        char more[64];

        (void)snprintf(more, sizeof(more), "[admin]\nlisten = %s\n", texts[_i]);
        (void)load_good(more);
        if (_i == 0)
                ck_assert_ptr_null(loaded.config->admin);
        else
                ck_assert_str_eq(loaded.config->admin->text, texts[_i]);
}
END_TEST

START_TEST(test_admin_endpoint_is_remote_with_allow_remote)
{
        ck_assert_str_eq(load_good("[admin]\nallow_remote = on\nlisten = [2001:db8::1]:9464\n")->admin->text,
                         "[2001:db8::1]:9464");
}
END_TEST

START_TEST(test_documented_kinds_have_topics_by_default)
{
        const struct topic_table *topics = load_good("[topics]\nprefix = t\n")->topics;

        ck_assert_str_eq(topic_table_find(topics, "invoice.accepted", 16)->topic, "t.invoice.accepted");
        ck_assert_str_eq(topic_table_find(topics, "reporting_batch.due", 19)->topic, "t.reporting_batch");
}
END_TEST

START_TEST(test_events_add_to_the_default_table)
{
        const struct topic_table *topics = load_good("[events]\ninvoice.* = t.invoices\na = t.a\n")->topics;

        ck_assert_uint_eq(topic_table_size(topics), 4);
        ck_assert_str_eq(topic_table_find(topics, "invoice.accepted", 16)->topic, "t.invoices");
        ck_assert_str_eq(topic_table_find(topics, "reporting_batch.due", 19)->topic,
                         "gatepost.reporting_batch");
}
END_TEST

START_TEST(test_section_may_be_split)
{
        const struct config *config =
            load_good("[receiver]\nthreads = 2\n[topics]\n[receiver]\nmax_body = 3MiB\n");

        ck_assert_uint_eq(config->threads, 2);
        ck_assert_uint_eq(config->max_body, 3 << 20);
        ck_assert_uint_eq(config->n_listen, 1);
}
END_TEST

START_TEST(test_limits_may_be_equal)
{
        const struct config *config = load_good("[receiver]\nheader_timeout = 30s\nmax_body = 64MiB\n"
                                                "[router]\nmax_batch_bytes = 64MiB\n");

        ck_assert_uint_eq(config->header_timeout_ms, config->request_timeout_ms);
        ck_assert_uint_eq(config->max_body, config->max_in_flight);
}
END_TEST

START_TEST(test_config_free_accepts_null)
{
        config_free(NULL);
}
END_TEST

Suite *
suite_config_good(void)
{
        Suite *suite = suite_create("config_good");
        TCase *tests = tcase_create("good files");

        tcase_add_checked_fixture(tests, scratch_setup, teardown);
        tcase_add_test(tests, test_minimal_file_gets_the_documented_defaults);
        tcase_add_test(tests, test_source_gets_its_defaults);
        tcase_add_test(tests, test_source_may_have_names_for_its_events);
        tcase_add_test(tests, test_options_of_every_type_are_accepted);
        tcase_add_test(tests, test_router_alone_needs_no_listen_address);
        tcase_add_test(tests, test_every_source_has_its_own_settings);
        tcase_add_test(tests, test_default_header_prefix_is_lowercase);
        tcase_add_test(tests, test_addresses_of_every_family_are_parsed);
        tcase_add_loop_test(tests, test_admin_endpoint_is_local_or_off, 0, 4);
        tcase_add_test(tests, test_admin_endpoint_is_remote_with_allow_remote);
        tcase_add_test(tests, test_documented_kinds_have_topics_by_default);
        tcase_add_test(tests, test_events_add_to_the_default_table);
        tcase_add_test(tests, test_section_may_be_split);
        tcase_add_test(tests, test_limits_may_be_equal);
        tcase_add_test(tests, test_config_free_accepts_null);
        suite_add_tcase(suite, tests);
        return suite;
}
