#include "config/findings.h"

#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "suites.h"

/* Return what finding_print() writes, to be freed. */
static char *
printed(const struct finding *finding)
{
        char *text = NULL;
        size_t len;
        FILE *out = open_memstream(&text, &len);

        ck_assert_ptr_nonnull(out);
        finding_print(out, finding);
        (void)fclose(out);
        return text;
}

static void
expect_printed(const struct finding *finding, const char *expected)
{
        char *text = printed(finding);

        ck_assert_str_eq(text, expected);
        free(text);
}

START_TEST(test_remedy_is_a_line_of_its_own)
{
        struct findings findings = {0};
        struct finding *finding = findings_add(&findings, FINDING_WARNING, "a.conf", "it is %s", "odd");

        finding->line = 12;
        finding_set_remedy(finding, "mend line %d", 12);
        expect_printed(finding, "a.conf:12: warning: it is odd\n  remedy: mend line 12\n");
        findings_clear(&findings);
}
END_TEST

START_TEST(test_step_begins_with_a_mark)
{
        struct findings findings = {0};
        struct finding *finding = findings_add(&findings, FINDING_ERROR, "deliveries", "it is missing");

        (void)setenv("LC_ALL", "C", 1);
        finding->step = "topics";
        expect_printed(finding, "FAIL topics deliveries: it is missing\n");
        (void)setenv("LC_ALL", "C.UTF-8", 1);
        expect_printed(finding, "\xe2\x9c\x97 topics deliveries: it is missing\n");
        findings_clear(&findings);
}
END_TEST

START_TEST(test_bytes_unsafe_on_a_terminal_are_escaped)
{
        struct findings findings = {0};

        expect_printed(findings_add(&findings, FINDING_ERROR, NULL, "a\x1b[31mb"), "a\\x1b[31mb\n");
        findings_clear(&findings);
}
END_TEST

START_TEST(test_status_is_that_of_the_first_error)
{
        struct findings findings = {0};

        ck_assert_int_eq(findings_status(&findings), 0);
        (void)findings_add(&findings, FINDING_WARNING, NULL, "no error");
        ck_assert_int_eq(findings_status(&findings), 0);
        findings_add(&findings, FINDING_ERROR, NULL, "first")->status = EX_UNAVAILABLE;
        (void)findings_add(&findings, FINDING_ERROR, NULL, "second");
        ck_assert_int_eq(findings_status(&findings), EX_UNAVAILABLE);
        ck_assert_uint_eq(findings_count(&findings, FINDING_ERROR), 2);
        findings_clear(&findings);
}
END_TEST

START_TEST(test_findings_are_sorted_by_line)
{
        static const size_t lines[] = {7, 0, 3, 7};
        struct findings findings = {0};

        for (int i = 0; i < 4; i++)
                findings_add(&findings, FINDING_ERROR, NULL, "%d", i)->line = lines[i];
        findings_sort_by_line(&findings);
        for (int i = 0; i < 4; i++)
                ck_assert_int_eq(findings.items[i].text[0], "1203"[i]);
        findings_clear(&findings);
}
END_TEST

START_TEST(test_finding_in_json_has_its_remedy_apart)
{
        struct findings findings = {0};
        struct json_writer *json = json_new(0);
        struct finding *finding = findings_add(&findings, FINDING_ERROR, "t", "it is missing");
        char *text;
        size_t len;

        finding_set_remedy(finding, "create it");
        finding_put_json(json, finding);
        text = json_take(json, &len);
        ck_assert_str_eq(text,
                         "{\"level\":\"error\",\"subject\":\"t\",\"line\":null,\"text\":\"it is missing\","
                         "\"remedy\":\"create it\",\"status\":78}");
        free(text);
        findings_clear(&findings);
}
END_TEST

Suite *
suite_findings(void)
{
        Suite *suite = suite_create("findings");
        TCase *tests = tcase_create("findings");

        tcase_add_test(tests, test_remedy_is_a_line_of_its_own);
        tcase_add_test(tests, test_step_begins_with_a_mark);
        tcase_add_test(tests, test_bytes_unsafe_on_a_terminal_are_escaped);
        tcase_add_test(tests, test_status_is_that_of_the_first_error);
        tcase_add_test(tests, test_findings_are_sorted_by_line);
        tcase_add_test(tests, test_finding_in_json_has_its_remedy_apart);
        suite_add_tcase(suite, tests);
        return suite;
}
