#include <stdio.h>
#include <stdlib.h>

#include "suites.h"

int
main(void)
{
        SRunner *runner = srunner_create(NULL);
        int n_failed;

#define X(name) srunner_add_suite(runner, suite_##name());
#include "unit_suites.inc"
#undef X
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        if (srunner_ntests_run(runner) == 0)
                n_failed = fprintf(stderr, "unit: no suite has the name in CK_RUN_SUITE\n");
        srunner_free(runner);
        return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
