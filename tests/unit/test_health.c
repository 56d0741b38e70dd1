#include <check.h>
#include <stdint.h>
#include <stdio.h>

#include "metrics/health.h"
#include "suites.h"

static int
is_ready(void *arg, char reason[HEALTH_REASON_SIZE])
{
        if (arg != NULL)
                (void)snprintf(reason, HEALTH_REASON_SIZE, "%s", (const char *)arg);
        return arg == NULL;
}

static const struct {
        const char *router, *receiver;
        const char *line;
} lines[] = {
    {NULL, NULL, "router, receiver: ready"},
    {"no partition", NULL, "router: no partition; receiver: ready"},
    {"no partition", "its spool has failed", "router: no partition; receiver: its spool has failed"},
    {"Kafka is not reachable: timed out", "Kafka is not reachable: timed out",
     "router, receiver: Kafka is not reachable: timed out"},
};

START_TEST(test_reason_of_several_parts_is_said_once)
{
        struct health health = {0};
        char line[256], little[12];

        health_add(&health, "router", is_ready, (void *)(uintptr_t)lines[_i].router);
        health_add(&health, "receiver", is_ready, (void *)(uintptr_t)lines[_i].receiver);
        ck_assert_int_eq(health_check_line(&health, line, sizeof(line)), _i == 0);
        ck_assert_str_eq(line, lines[_i].line);
        (void)health_check_line(&health, little, sizeof(little));
        line[sizeof(little) - 1] = '\0';
        ck_assert_str_eq(little, line);
}
END_TEST

Suite *
suite_health(void)
{
        Suite *suite = suite_create("health");
        TCase *tests = tcase_create("line");

        tcase_add_loop_test(tests, test_reason_of_several_parts_is_said_once, 0,
                            sizeof(lines) / sizeof(*lines));
        suite_add_tcase(suite, tests);
        return suite;
}
