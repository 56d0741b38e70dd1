#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/findings.h"
#include "config/ini.h"
#include "suites.h"

static struct ini ini;
static struct findings findings;

static void
read_bytes(const char *text, size_t len)
{
        ini_parse(text, len, &ini, &findings);
}

static void
read_text(const char *text)
{
        read_bytes(text, strlen(text));
}

static void
setup(void)
{
        memset(&findings, 0, sizeof(findings));
}

static void
teardown(void)
{
        ini_clear(&ini);
        findings_clear(&findings);
}

static void
expect_entry(size_t index, size_t line, const char *section, const char *argument, const char *name,
             const char *value)
{
        const struct ini_entry *entry = &ini.entries[index];

        ck_assert_uint_lt(index, ini.n);
        ck_assert_uint_eq(entry->line, line);
        ck_assert_str_eq(entry->section, section);
        ck_assert_str_eq(entry->argument, argument);
        ck_assert_pstr_eq(entry->name, name);
        ck_assert_pstr_eq(entry->value, value);
}

/* The value parsed from one line. */
static const char *
value_of(const char *line)
{
        char text[256];

        (void)snprintf(text, sizeof(text), "[s]\n%s\n", line);
        read_text(text);
        ck_assert_uint_eq(findings.n, 0);
        ck_assert_uint_eq(ini.n, 2);
        return ini.entries[1].value;
}

/* Fail unless the text has one problem, on that line. */
static void
expect_problem(const char *text, size_t len, size_t line, const char *words)
{
        read_bytes(text, len);
        ck_assert_uint_eq(findings.n, 1);
        ck_assert_uint_eq(findings.items[0].line, line);
        ck_assert_msg(strstr(findings.items[0].text, words) != NULL, "'%s' is not in: %s", words,
                      findings.items[0].text);
}

START_TEST(test_sections_and_options_have_line_numbers)
{
        read_text("# a comment\n\n[receiver]\nlisten = 127.0.0.1:1\n\n[source invoicing]\n  path=/x\n");
        ck_assert_uint_eq(findings.n, 0);
        ck_assert_uint_eq(ini.n, 4);
        expect_entry(0, 3, "receiver", "", NULL, NULL);
        expect_entry(1, 4, "receiver", "", "listen", "127.0.0.1:1");
        expect_entry(2, 6, "source", "invoicing", NULL, NULL);
        expect_entry(3, 7, "source", "invoicing", "path", "/x");
}
END_TEST

START_TEST(test_spaces_in_a_heading_are_ignored)
{
        read_text(" [ source   invoicing ]  ; a comment\n");
        ck_assert_uint_eq(findings.n, 0);
        expect_entry(0, 1, "source", "invoicing", NULL, NULL);
}
END_TEST

START_TEST(test_values_are_parsed)
{
        static const struct {
                const char *line, *value;
        } cases[] = {
            {"a = b", "b"},
            {"a=b", "b"},
            {"a =\tb c\t", "b c"},
            {"a = b=c", "b=c"},
            {"a = b;c", "b;c"},
            {"a = b#c", "b#c"},
            {"a = \"b\"", "b"},
            {"a = \" b ; c \"", " b ; c "},
            {"a = \"b\" ; a comment", "b"},
            {"a = \"b # c\" # a comment", "b # c"},
            {"a = \"b\"c\"", "b\"c"},
            {"a = \"\"", ""},
            {"a = b \"c\"", "b \"c\""},
            {"a = caf\xc3\xa9", "caf\xc3\xa9"},
        };

        ck_assert_str_eq(value_of(cases[_i].line), cases[_i].value);
}
END_TEST

START_TEST(test_value_that_may_be_misread_is_faulty)
{
        static const struct {
                const char *value, *words;
        } cases[] = {
            {"b ; c", "line of its own"}, {"b\t# c", "line of its own"}, {"; c", "line of its own"},
            {"# c", "line of its own"},   {"\"b", "closing quote"},      {"\"b\" c", "closing quote"},
            {"'b c'", "double quotes"},
        };
        char text[64];

        (void)snprintf(text, sizeof(text), "[s]\na = %s\n", cases[_i].value);
        read_text(text);
        ck_assert_uint_eq(findings.n, 0);
        ck_assert_ptr_nonnull(ini.entries[1].fault);
        ck_assert_msg(strstr(ini.entries[1].fault, cases[_i].words) != NULL, "%s", ini.entries[1].fault);
}
END_TEST

START_TEST(test_windows_line_ends_are_tolerated)
{
        read_text("[s]\r\na = b\r\n# c\r\n\r\nd = e\r");
        ck_assert_uint_eq(findings.n, 0);
        ck_assert_uint_eq(ini.n, 3);
        expect_entry(1, 2, "s", "", "a", "b");
        expect_entry(2, 5, "s", "", "d", "e");
}
END_TEST

START_TEST(test_last_line_needs_no_newline)
{
        read_text("[s]\na = b");
        ck_assert_uint_eq(ini.n, 2);
        expect_entry(1, 2, "s", "", "a", "b");
}
END_TEST

START_TEST(test_empty_text_has_no_entries)
{
        read_text("");
        ck_assert_uint_eq(ini.n + findings.n, 0);
        teardown();
        read_text("\n\n ; nothing\n");
        ck_assert_uint_eq(ini.n + findings.n, 0);
}
END_TEST

START_TEST(test_line_that_cannot_be_read_is_reported)
{
        static const struct {
                const char *text;
                size_t line;
                const char *words;
        } cases[] = {
            {"[s]\nnonsense\n", 2, "="},
            {"[s]\n= b\n", 2, "="},
            {"a = b\n[s]\n", 1, "before the first"},
            {"[s\na = b\n", 1, "]"},
            {"[s] a = b\n", 1, "]"},
            {"[]\na = b\n", 1, "name"},
            {"[s]\na = \xff\n", 2, "UTF-8"},
            {"[s]\na = b\x1b[31m\n", 2, "control character"},
            {"[s]\na = b\rc = d\n", 2, "control character"},
        };

        expect_problem(cases[_i].text, strlen(cases[_i].text), cases[_i].line, cases[_i].words);
}
END_TEST

START_TEST(test_nul_byte_is_reported)
{
        expect_problem("[s]\na = b\0c\nd = e\n", 18, 2, "NUL");
        expect_entry(1, 3, "s", "", "d", "e");
}
END_TEST

START_TEST(test_line_of_4096_bytes_is_the_longest)
{
        char text[5 + INI_LINE_MAX + 2];
        size_t len;

        memset(text, 'x', sizeof(text));
        memcpy(text, "[s]\na=", 6);
        len = 4 + INI_LINE_MAX;
        text[len] = '\n';
        read_bytes(text, len + 1);
        ck_assert_uint_eq(findings.n, 0);
        ck_assert_uint_eq(strlen(ini.entries[1].value), INI_LINE_MAX - 2);
        teardown();
        text[len] = 'x';
        text[len + 1] = '\n';
        expect_problem(text, len + 2, 2, "4096");
}
END_TEST

START_TEST(test_options_of_an_unreadable_section_are_skipped)
{
        read_text("[good]\na = b\n[bad\nc = d\ne = f\n[good]\ng = h\n");
        ck_assert_uint_eq(findings.n, 1);
        ck_assert_uint_eq(ini.n, 4);
        expect_entry(3, 7, "good", "", "g", "h");
}
END_TEST

START_TEST(test_all_problems_are_collected)
{
        read_text("a = b\n[s]\nx\ny\n= z\n[t\n");
        ck_assert_uint_eq(findings.n, 5);
        for (size_t i = 1; i < findings.n; i++)
                ck_assert_uint_lt(findings.items[i - 1].line, findings.items[i].line);
}
END_TEST

Suite *
suite_ini(void)
{
        Suite *suite = suite_create("ini");
        TCase *tests = tcase_create("reader");

        tcase_add_checked_fixture(tests, setup, teardown);
        tcase_add_test(tests, test_sections_and_options_have_line_numbers);
        tcase_add_test(tests, test_spaces_in_a_heading_are_ignored);
        tcase_add_loop_test(tests, test_values_are_parsed, 0, 14);
        tcase_add_loop_test(tests, test_value_that_may_be_misread_is_faulty, 0, 7);
        tcase_add_test(tests, test_windows_line_ends_are_tolerated);
        tcase_add_test(tests, test_last_line_needs_no_newline);
        tcase_add_test(tests, test_empty_text_has_no_entries);
        tcase_add_loop_test(tests, test_line_that_cannot_be_read_is_reported, 0, 9);
        tcase_add_test(tests, test_nul_byte_is_reported);
        tcase_add_test(tests, test_line_of_4096_bytes_is_the_longest);
        tcase_add_test(tests, test_options_of_an_unreadable_section_are_skipped);
        tcase_add_test(tests, test_all_problems_are_collected);
        suite_add_tcase(suite, tests);
        return suite;
}
