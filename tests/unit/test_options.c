#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/options.h"
#include "suites.h"

/* A file of the source tree; the caller frees it. */
static char *
read_source(const char *name)
{
        char *path = mem_printf("%s/%s", SRCDIR, name), *text = mem_alloc(200000);
        FILE *in = fopen(path, "r");

        ck_assert_msg(in != NULL, "%s", path);
        ck_assert_uint_lt(fread(text, 1, 199999, in), 199999);
        (void)fclose(in);
        free(path);
        return text;
}

START_TEST(test_table_has_every_option_once)
{
        for (size_t i = 0; i < options_count(); i++) {
                const struct option_row *option = options_at(i);

                ck_assert_ptr_eq(options_find(option->section, option->name), option);
                ck_assert(options_is_section(option->section));
                ck_assert_msg(strlen(option->help) > 10, "%s", option->name);
        }
}
END_TEST

/* Whether the sample has the option in its section, commented out or not, with its default if it has one. */
static int
sample_has(const char *sample, const struct option_row *option)
{
        char *header = mem_printf("[%s", option->section), *plain, *after;
        const char *section = strstr(sample, header), *end;
        int has = 0;

        ck_assert_msg(section != NULL, "the sample has no %s]", header);
        end = strstr(section + 1, "\n[");
        after = mem_strndup(section, end == NULL ? strlen(section) : (size_t)(end - section));
        for (int commented = 0; commented < 2 && !has; commented++) {
                plain = mem_printf("\n%s%s = %s", commented ? ";" : "", option->name,
                                   commented && option->fallback != NULL ? option->fallback : "");
                has = strstr(after, plain) != NULL;
                free(plain);
        }
        free(after);
        free(header);
        return has;
}

START_TEST(test_sample_shows_every_option_with_its_default)
{
        char *sample = read_source("etc/gatepost.conf");

        for (size_t i = 0; i < options_count(); i++) {
                ck_assert_msg(sample_has(sample, options_at(i)), "[%s] %s", options_at(i)->section,
                              options_at(i)->name);
        }
        free(sample);
}
END_TEST

START_TEST(test_sample_shows_only_known_options)
{
        char *sample = read_source("etc/gatepost.conf"), *rest = sample, *line, section[64] = "", name[64];

        while ((line = strsep(&rest, "\n")) != NULL) {
                line += *line == ';';
                if (sscanf(line, "[%63[a-z]", section) == 1 || *line == '#' || !islower((unsigned char)*line))
                        continue;
                ck_assert_msg(sscanf(line, "%63s =", name) == 1, "%s", line);
                ck_assert_msg(options_is_free_form(section) || options_find(section, name) != NULL, "[%s] %s",
                              section, name);
        }
        free(sample);
}
END_TEST

START_TEST(test_man_page_describes_every_option)
{
        char *page = read_source("man/gatepost.conf.5");

        for (size_t i = 0; i < options_count(); i++) {
                const struct option_row *option = options_at(i);
                char *item = mem_printf("\n.It Cm %s", option->name);

                ck_assert_msg(strstr(page, item) != NULL, "%s", option->name);
                if (option->fallback != NULL)
                        ck_assert_msg(strstr(page, option->fallback) != NULL || option->type == OPTION_ROLES,
                                      "the default of %s", option->name);
                free(item);
        }
        free(page);
}
END_TEST

Suite *
suite_options(void)
{
        Suite *suite = suite_create("options");
        TCase *all = tcase_create("all");

        tcase_add_test(all, test_table_has_every_option_once);
        tcase_add_test(all, test_sample_shows_every_option_with_its_default);
        tcase_add_test(all, test_sample_shows_only_known_options);
        tcase_add_test(all, test_man_page_describes_every_option);
        suite_add_tcase(suite, all);
        return suite;
}
