#include <stdlib.h>

#include "base/compiler.h"
#include "suites.h"

static Suite *(*const suites[])(void) = {
    suite_activation,    suite_address,        suite_answer,         suite_base,
    suite_certificate,   suite_client,         suite_clients,        suite_cloudevents,
    suite_config,        suite_config_errors,  suite_config_good,    suite_config_kafka,
    suite_config_print,  suite_config_sample,  suite_config_secrets, suite_consumer,
    suite_decode,        suite_decode_fields,  suite_decode_json,    suite_dedup,
    suite_dedup_log,     suite_delivery,       suite_digest,         suite_fields,
    suite_forwarded,     suite_framing,        suite_guess,          suite_histogram,
    suite_ini,           suite_json,           suite_json_memory,    suite_json_tree,
    suite_judge,         suite_judge_repeats,  suite_judge_verify,   suite_kind_filter,
    suite_log,           suite_begin_delay,    suite_memory_budget,  suite_notify,
    suite_number,        suite_options,        suite_page,           suite_partition,
    suite_pointer,       suite_pool,           suite_prometheus,     suite_published,
    suite_record,        suite_release,        suite_replay,         suite_restart,
    suite_sandbox_rules, suite_service_answer, suite_service_url,    suite_signature,
    suite_slice,         suite_statistics,     suite_tally,          suite_target,
    suite_topic_table,   suite_trace,          suite_transaction,    suite_walk,
};

int
main(void)
{
        SRunner *runner = srunner_create(NULL);
        int n_failed;

        for (size_t i = 0; i < ARRAY_LEN(suites); i++)
                srunner_add_suite(runner, suites[i]());
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
