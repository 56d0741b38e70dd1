#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/number.h"
#include "config/findings.h"
#include "config/ini.h"
#include "config/options.h"
#include "scratch.h"
#include "suites.h"

#ifndef SRCDIR
#define SRCDIR "."
#endif

static const char sample_path[] = SRCDIR "/etc/gatepost.conf";
static const char manual_path[] = SRCDIR "/man/gatepost.conf.5";

static char *
read_file(const char *path)
{
        FILE *in = fopen(path, "re");
        char *text = calloc(1, 65536);

        ck_assert_msg(in != NULL, "%s cannot be opened", path);
        ck_assert_uint_lt(fread(text, 1, 65535, in), 65535);
        (void)fclose(in);
        return text;
}

/* Uncomment every option and section, `;name = value` or `;[section]`. Prose begins with a number sign. */
static void
uncomment(char *text)
{
        for (char *line = text; line != NULL && *line != '\0';) {
                if (*line == ';')
                        memmove(line, line + 1, strlen(line));
                line = strchr(line, '\n');
                line = line == NULL ? NULL : line + 1;
        }
}

/* The sample with all options uncommented. */
static void
read_whole_sample(struct ini *ini)
{
        struct findings findings = {0};
        char *text = read_file(sample_path);

        uncomment(text);
        ini_parse(text, strlen(text), ini, &findings);
        ck_assert_uint_eq(findings.n, 0);
        findings_clear(&findings);
        free(text);
}

START_TEST(test_every_option_is_in_the_sample)
{
        struct ini ini;

        read_whole_sample(&ini);
        for (size_t i = 0; i < options_count(); i++) {
                const struct option_row *option = options_at(i);
                int found = 0;

                for (size_t k = 0; k < ini.n && !found; k++)
                        found = ini.entries[k].name != NULL &&
                                strcmp(ini.entries[k].section, option->section) == 0 &&
                                strcmp(ini.entries[k].name, option->name) == 0;
                ck_assert_msg(found, "[%s] %s is not in the sample", option->section, option->name);
        }
        ini_clear(&ini);
}
END_TEST

START_TEST(test_sample_has_only_known_options_with_their_defaults)
{
        struct ini ini;

        read_whole_sample(&ini);
        for (size_t i = 0; i < ini.n; i++) {
                const struct ini_entry *entry = &ini.entries[i];
                const struct option_row *option;

                ck_assert_msg(options_is_section(entry->section), "[%s] is not in the table", entry->section);
                if (entry->name == NULL || options_is_free_form(entry->section))
                        continue;
                option = options_find(entry->section, entry->name);
                ck_assert_msg(option != NULL, "[%s] %s is not in the table", entry->section, entry->name);
                if (option->fallback != NULL)
                        ck_assert_str_eq(entry->value, option->fallback);
        }
        ini_clear(&ini);
}
END_TEST

/* Replace one part of a text by another. The caller frees the result. */
static char *
replace(const char *text, const char *part, const char *other)
{
        const char *at = strstr(text, part);
        char *result = calloc(1, strlen(text) + strlen(other) + 1);

        ck_assert_msg(at != NULL, "'%s' is not in the sample", part);
        (void)sprintf(result, "%.*s%s%s", (int)(at - text), text, other, at + strlen(part));
        return result;
}

START_TEST(test_sample_loads_with_a_secret)
{
        char *text = read_file(sample_path);
        char *sample = replace(text, "/etc/gatepost/secrets/invoicing",
                               scratch_file("invoicing", "sixteen bytes or more", 21, 0600));
        struct loaded loaded = scratch_load_mode(sample, 0644);

        ck_assert_str_eq(loaded.messages, "");
        ck_assert_uint_eq(loaded.config->n_sources, 1);
        ck_assert_str_eq(loaded.config->sources[0].name, "invoicing");
        scratch_release(&loaded);
        free(sample);
        free(text);
}
END_TEST

START_TEST(test_every_option_is_in_the_manual_under_its_section)
{
        char *manual = read_file(manual_path), heading[64], item[64];

        for (size_t i = 0; i < options_count(); i++) {
                const struct option_row *option = options_at(i);
                char *section, *end;

                (void)snprintf(heading, sizeof(heading), ".Ss [%s%s]\n", option->section,
                               strcmp(option->section, "source") == 0 ? " NAME" : "");
                (void)snprintf(item, sizeof(item), "\n.It Cm %s\n", option->name);
                section = strstr(manual, heading);
                ck_assert_msg(section != NULL, "no %s in the manual", heading);
                end = strstr(section + 1, "\n.Ss ");
                section = strstr(section, item);
                ck_assert_msg(section != NULL && (end == NULL || section < end),
                              "[%s] %s is not in the manual", option->section, option->name);
        }
        free(manual);
}
END_TEST

START_TEST(test_manual_has_the_defaults_of_the_table)
{
        char *manual = read_file(manual_path), item[64], sentence[64];

        for (size_t i = 0; i < options_count(); i++) {
                const struct option_row *option = options_at(i);
                char *start, *end, *found;

                if (option->fallback == NULL || option->type == OPTION_ROLES)
                        continue;
                (void)snprintf(item, sizeof(item), "\n.Ss [%s", option->section);
                start = strstr(manual, item);
                (void)snprintf(item, sizeof(item), "\n.It Cm %s\n", option->name);
                start = start == NULL ? NULL : strstr(start, item);
                ck_assert_ptr_nonnull(start);
                end = strstr(start + 1, "\n.It");
                (void)snprintf(sentence, sizeof(sentence), "default is %s.", option->fallback);
                found = strstr(start, sentence);
                ck_assert_msg(found != NULL && (end == NULL || found < end), "%s: not in the manual: %s",
                              option->name, sentence);
        }
        free(manual);
}
END_TEST

/* The beginning and end of an option's description in the manual. */
static const char *
find_item(const char *manual, const struct option_row *option, const char **end)
{
        char item[64];
        const char *start;

        (void)snprintf(item, sizeof(item), "\n.Ss [%s", option->section);
        start = strstr(manual, item);
        (void)snprintf(item, sizeof(item), "\n.It Cm %s\n", option->name);
        start = start == NULL ? NULL : strstr(start, item);
        ck_assert_ptr_nonnull(start);
        *end = strstr(start + 1, "\n.It");
        if (*end == NULL || (strstr(start, "\n.El") != NULL && strstr(start, "\n.El") < *end))
                *end = strstr(start, "\n.El");
        return start;
}

START_TEST(test_manual_names_options_that_need_a_restart)
{
        static const char sentence[] = "\nA change needs a restart.\n";
        char *manual = read_file(manual_path);

        for (size_t i = 0; i < options_count(); i++) {
                const struct option_row *option = options_at(i);
                const char *end, *start = find_item(manual, option, &end), *found = strstr(start, sentence);

                ck_assert_msg((found != NULL && found < end) == ((option->flags & OPTION_RESTART) != 0),
                              "[%s] %s: the manual and the table differ", option->section, option->name);
        }
        free(manual);
}
END_TEST

static const char *
format_size(uint64_t bytes, char text[NUMBER_TEXT_SIZE])
{
        static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
        size_t unit = 0;

        for (; unit + 1 < ARRAY_LEN(units) && bytes % 1024 == 0; unit++)
                bytes /= 1024;
        (void)snprintf(text, NUMBER_TEXT_SIZE, "%" PRIu64 "%s", bytes, units[unit]);
        return text;
}

/* Write a limit as the manual does. Return NULL for an option without a range. */
static const char *
format_limit(const struct option_row *option, uint64_t limit, char text[NUMBER_TEXT_SIZE])
{
        switch (option->type) {
        case OPTION_NUMBER:
                (void)snprintf(text, NUMBER_TEXT_SIZE, "%" PRIu64, limit);
                return text;
        case OPTION_SIZE:
                return format_size(limit, text);
        case OPTION_DURATION:
                return number_format_duration(limit, text);
        default:
                return NULL;
        }
}

START_TEST(test_manual_has_the_ranges_of_the_table)
{
        char *manual = read_file(manual_path);

        for (size_t i = 0; i < options_count(); i++) {
                const struct option_row *option = options_at(i);
                char low[NUMBER_TEXT_SIZE], high[NUMBER_TEXT_SIZE], sentence[96];
                const char *end, *start = find_item(manual, option, &end), *found;

                if (format_limit(option, option->min, low) == NULL)
                        continue;
                (void)snprintf(sentence, sizeof(sentence), "\nRange: %s to %s.\n", low,
                               format_limit(option, option->max, high));
                found = strstr(start, sentence);
                ck_assert_msg(found != NULL && found < end, "[%s] %s: not in the manual: %s", option->section,
                              option->name, sentence + 1);
        }
        free(manual);
}
END_TEST

START_TEST(test_every_option_has_help)
{
        for (size_t i = 0; i < options_count(); i++)
                ck_assert_uint_gt(strlen(options_at(i)->help), 10);
}
END_TEST

Suite *
suite_config_sample(void)
{
        Suite *suite = suite_create("config_sample");
        TCase *tests = tcase_create("sample and manual");

        tcase_add_checked_fixture(tests, scratch_setup, scratch_teardown);
        tcase_add_test(tests, test_every_option_is_in_the_sample);
        tcase_add_test(tests, test_sample_has_only_known_options_with_their_defaults);
        tcase_add_test(tests, test_sample_loads_with_a_secret);
        tcase_add_test(tests, test_every_option_is_in_the_manual_under_its_section);
        tcase_add_test(tests, test_manual_has_the_defaults_of_the_table);
        tcase_add_test(tests, test_manual_names_options_that_need_a_restart);
        tcase_add_test(tests, test_manual_has_the_ranges_of_the_table);
        tcase_add_test(tests, test_every_option_has_help);
        suite_add_tcase(suite, tests);
        return suite;
}
