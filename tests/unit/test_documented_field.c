#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "model/documented_field.h"
#include "model/pointer.h"
#include "spans.h"
#include "suites.h"

static const char *const documented[] = {
    "clearanceStatus", "terminal",   "rejectedAt",    "error",
    "error.source",    "error.code", "error.message", "error.detail",
};

static size_t
index_of(const char *name)
{
        for (size_t i = 0; i < documented_field_count(); i++) {
                if (strcmp(documented_field_at(i)->name, name) == 0)
                        return i;
        }
        ck_abort_msg("no field %s", name);
        return 0;
}

START_TEST(test_documented_fields_are_known_at_the_top_and_under_data)
{
        char name[64];

        ck_assert_uint_eq(documented_field_count(), 2 * ARRAY_LEN(documented));
        for (size_t i = 0; i < ARRAY_LEN(documented); i++) {
                (void)index_of(documented[i]);
                (void)snprintf(name, sizeof(name), "data.%s", documented[i]);
                (void)index_of(name);
        }
}
END_TEST

START_TEST(test_field_name_is_its_path_joined_by_dots)
{
        for (size_t i = 0; i < documented_field_count(); i++) {
                const struct documented_field *field = documented_field_at(i);
                char name[64] = "";

                for (size_t k = 0; k < field->n_segments; k++) {
                        strcat(name, k > 0 ? "." : "");
                        strcat(name, field->segments[k]);
                }
                ck_assert_str_eq(field->name, name);
        }
}
END_TEST

START_TEST(test_watches_suffice_for_all_fields_and_three_pointers)
{
        ck_assert_uint_le(documented_field_count() + 3, POINTER_MAX_WATCHES);
}
END_TEST

/*
 * The types of value that a field accepts, as letters: n(ull), b(oolean), # (number), s(tring), o(bject),
 * a(rray).
 */
static const char *
accepted_types(const char *name, struct span text)
{
        static const char letters[] = {
            [JSON_NULL] = 'n',   [JSON_BOOLEAN] = 'b', [JSON_NUMBER] = '#',
            [JSON_STRING] = 's', [JSON_OBJECT] = 'o',  [JSON_ARRAY] = 'a',
        };
        static char accepted[8];
        size_t n = 0;

        for (int type = JSON_NULL; type <= JSON_ARRAY; type++) {
                if (documented_field_accepts(index_of(name), (enum json_type)type,
                                             type == JSON_STRING ? text : NO_SPAN))
                        accepted[n++] = letters[type];
        }
        accepted[n] = '\0';
        return accepted;
}

START_TEST(test_field_accepts_its_type_and_null_only)
{
        static const char *const prefixes[] = {"", "data."};
        static const struct {
                const char *name;
                const char *types;
        } expected[] = {
            {"clearanceStatus", "ns"}, {"terminal", "nb"},   {"rejectedAt", "ns"},    {"error", "no"},
            {"error.source", "ns"},    {"error.code", "ns"}, {"error.message", "ns"}, {"error.detail", "ns"},
        };
        char name[64];

        for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
                (void)snprintf(name, sizeof(name), "%s%s", prefixes[_i], expected[i].name);
                ck_assert_str_eq(accepted_types(name, SPAN("2026-11-21T03:04:05Z")), expected[i].types);
        }
}
END_TEST

START_TEST(test_rejection_time_must_be_a_utc_timestamp)
{
        static const char *const right[] = {
            "2026-11-21T03:04:05Z",      "2026-11-21T03:04:05.6Z",      "2026-11-21T03:04:05.123456789Z",
            "2026-11-21T03:04:05+00:00", "2026-11-21T03:04:05.6+00:00", "2024-02-29T23:59:60Z",
        };
        static const char *const wrong[] = {
            "",
            "2026-11-21",
            "2026-11-21T03:04:05",
            "2026-11-21T03:04:05+01:00",
            "2026-11-21T03:04:05-00:00",
            "2026-11-21 03:04:05Z",
            "2026-02-29T03:04:05Z",
            "2026-11-31T03:04:05Z",
            "2026-11-21T24:00:00Z",
            "2026-11-21T03:04:05.Z",
            "2026-11-21T03:04:05Zx",
            " 2026-11-21T03:04:05Z",
            "1795230245",
        };
        size_t field = index_of(_i == 0 ? "rejectedAt" : "data.rejectedAt");

        for (size_t i = 0; i < ARRAY_LEN(right); i++)
                ck_assert(
                    documented_field_accepts(field, JSON_STRING, (struct span){right[i], strlen(right[i])}));
        for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
                ck_assert(
                    !documented_field_accepts(field, JSON_STRING, (struct span){wrong[i], strlen(wrong[i])}));
}
END_TEST

START_TEST(test_other_strings_may_be_anything)
{
        size_t field = index_of("error.message");

        ck_assert(documented_field_accepts(field, JSON_STRING, SPAN("")));
        ck_assert(documented_field_accepts(field, JSON_STRING, SPAN("a\0b")));
}
END_TEST

Suite *
suite_documented_field(void)
{
        Suite *suite = suite_create("documented_field");
        TCase *tcase = tcase_create("fields");

        tcase_add_test(tcase, test_documented_fields_are_known_at_the_top_and_under_data);
        tcase_add_test(tcase, test_field_name_is_its_path_joined_by_dots);
        tcase_add_test(tcase, test_watches_suffice_for_all_fields_and_three_pointers);
        tcase_add_loop_test(tcase, test_field_accepts_its_type_and_null_only, 0, 2);
        tcase_add_loop_test(tcase, test_rejection_time_must_be_a_utc_timestamp, 0, 2);
        tcase_add_test(tcase, test_other_strings_may_be_anything);
        suite_add_tcase(suite, tcase);
        return suite;
}
