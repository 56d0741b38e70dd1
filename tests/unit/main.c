#include <stdlib.h>

#include "suites.h"

int
main(void)
{
        SRunner *runner = srunner_create(suite_base());
        int n_failed;

        srunner_add_suite(runner, suite_number());
        srunner_add_suite(runner, suite_signature());
        srunner_add_suite(runner, suite_delivery());
        srunner_add_suite(runner, suite_topic_table());
        srunner_add_suite(runner, suite_dedup());
        srunner_add_suite(runner, suite_replay());
        srunner_add_suite(runner, suite_decode());
        srunner_add_suite(runner, suite_judge());
        srunner_add_suite(runner, suite_partition());
        srunner_add_suite(runner, suite_options());
        srunner_add_suite(runner, suite_config());
        srunner_add_suite(runner, suite_ini());
        srunner_add_suite(runner, suite_config_good());
        srunner_add_suite(runner, suite_config_errors());
        srunner_add_suite(runner, suite_config_secrets());
        srunner_add_suite(runner, suite_config_kafka());
        srunner_add_suite(runner, suite_config_print());
        srunner_add_suite(runner, suite_config_sample());
        srunner_add_suite(runner, suite_framing());
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
