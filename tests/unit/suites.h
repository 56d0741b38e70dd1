#ifndef UNIT_SUITES_H
#define UNIT_SUITES_H

#include <check.h>

/* All suites: X(name) for suite_name(), which is in test_name.c or in the file of its subject. */
#define SUITES(X) \
        X(activation) \
        X(address) \
        X(answer) \
        X(arguments) \
        X(base) \
        X(begin_delay) \
        X(certificate) \
        X(client) \
        X(clients) \
        X(cloudevents) \
        X(config) \
        X(config_errors) \
        X(config_good) \
        X(config_kafka) \
        X(config_print) \
        X(config_sample) \
        X(config_secrets) \
        X(consumer) \
        X(decode) \
        X(decode_fields) \
        X(decode_json) \
        X(dedup) \
        X(dedup_log) \
        X(delivery) \
        X(digest) \
        X(endpoint) \
        X(forwarded) \
        X(framing) \
        X(histogram) \
        X(ini) \
        X(json) \
        X(json_reader) \
        X(json_style) \
        X(json_tree) \
        X(judge) \
        X(judge_repeats) \
        X(judge_verify) \
        X(log) \
        X(memory_budget) \
        X(notify) \
        X(number) \
        X(options) \
        X(output) \
        X(page) \
        X(partition) \
        X(pointer) \
        X(pointer_walk) \
        X(pool) \
        X(record) \
        X(release) \
        X(replay) \
        X(restart) \
        X(sandbox_rules) \
        X(service_answer) \
        X(signature) \
        X(slice) \
        X(statistics) \
        X(tally) \
        X(target) \
        X(topic_table) \
        X(trace) \
        X(transaction)

#define DECLARE_SUITE(name) Suite *suite_##name(void);
SUITES(DECLARE_SUITE)
#undef DECLARE_SUITE

#endif
