#ifndef UNIT_SUITES_H
#define UNIT_SUITES_H

#include <check.h>

/* One suite a subject; main.c runs them all. */
Suite *suite_address(void);
Suite *suite_base(void);
Suite *suite_brokers(void);
Suite *suite_clients(void);
Suite *suite_cloudevents(void);
Suite *suite_config(void);
Suite *suite_config_errors(void);
Suite *suite_config_good(void);
Suite *suite_config_kafka(void);
Suite *suite_config_print(void);
Suite *suite_config_sample(void);
Suite *suite_config_secrets(void);
Suite *suite_consumer(void);
Suite *suite_decode(void);
Suite *suite_decode_fields(void);
Suite *suite_decode_json(void);
Suite *suite_dedup(void);
Suite *suite_dedup_log(void);
Suite *suite_delivery(void);
Suite *suite_digest(void);
Suite *suite_fields(void);
Suite *suite_forwarded(void);
Suite *suite_framing(void);
Suite *suite_guess(void);
Suite *suite_ini(void);
Suite *suite_json(void);
Suite *suite_json_memory(void);
Suite *suite_json_tree(void);
Suite *suite_judge(void);
Suite *suite_kind_filter(void);
Suite *suite_number(void);
Suite *suite_options(void);
Suite *suite_partition(void);
Suite *suite_pointer(void);
Suite *suite_prometheus(void);
Suite *suite_published(void);
Suite *suite_record(void);
Suite *suite_release(void);
Suite *suite_replay(void);
Suite *suite_sandbox_rules(void);
Suite *suite_service_answer(void);
Suite *suite_service_url(void);
Suite *suite_signature(void);
Suite *suite_slice(void);
Suite *suite_tally(void);
Suite *suite_target(void);
Suite *suite_topic_table(void);
Suite *suite_trace(void);
Suite *suite_transaction(void);
Suite *suite_walk(void);

#endif
