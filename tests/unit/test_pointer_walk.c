#include <check.h>
#include <string.h>

#include "base/compiler.h"
#include "model/pointer.h"
#include "spans.h"
#include "suites.h"

enum { EVENT = 1, DATA_ID = 2, LINE_TAX = 4, DATA = 8 };

static const char *const event[] = {"event"};
static const char *const data_id[] = {"data", "id"};
static const char *const line_tax[] = {"lines", "1", "tax"};
static const char *const data[] = {"data"};

static const struct pointer_watch watches[] = {
    {event, 1}, {data_id, 2}, {line_tax, 3}, {data, 1}, {event, 0}};
static struct pointer_level levels[8];
static struct pointer_walk walk;

static void
set_up(void)
{
        memset(levels, 0xff, sizeof(levels)); /* the previous content must not matter */
        walk = (struct pointer_walk){watches, ARRAY_LEN(watches), 0, levels};
        ck_assert_uint_eq(pointer_walk_value(&walk), 0);
        pointer_walk_enter(&walk, 0);
}

static uint32_t
name(const char *text)
{
        return pointer_walk_name(&walk, (struct span){text, strlen(text)});
}

START_TEST(test_member_matches_the_watch_of_its_name)
{
        ck_assert_uint_eq(name("event"), 0);
        ck_assert_uint_eq(pointer_walk_value(&walk), EVENT);
        ck_assert_uint_eq(name("events"), 0);
        ck_assert_uint_eq(pointer_walk_value(&walk), 0);
        ck_assert_uint_eq(name("even"), 0);
        ck_assert_uint_eq(pointer_walk_value(&walk), 0);
        ck_assert_uint_eq(name(""), 0);
        ck_assert_uint_eq(pointer_walk_value(&walk), 0);
        ck_assert_uint_eq(name("id"), 0);
        ck_assert_uint_eq(pointer_walk_value(&walk), 0);
}
END_TEST

START_TEST(test_name_with_a_nul_does_not_match)
{
        ck_assert_uint_eq(pointer_walk_name(&walk, SPAN("event\0")), 0);
        ck_assert_uint_eq(pointer_walk_value(&walk), 0);
        /* Long enough to read beyond the segment's memory if it were compared as a string. */
        ck_assert_uint_eq(pointer_walk_name(&walk,
                                            SPAN("event\0event\0event\0event\0event\0event\0event\0event")),
                          0);
        ck_assert_uint_eq(pointer_walk_value(&walk), 0);
        ck_assert_uint_eq(name("event"), 0);
        ck_assert_uint_eq(pointer_walk_value(&walk), EVENT);
}
END_TEST

START_TEST(test_path_is_followed_into_objects_and_back)
{
        (void)name("data");
        ck_assert_uint_eq(pointer_walk_value(&walk), DATA);
        pointer_walk_enter(&walk, 0);
        (void)name("event"); /* not at the top */
        ck_assert_uint_eq(pointer_walk_value(&walk), 0);
        (void)name("data");
        ck_assert_uint_eq(pointer_walk_value(&walk), 0);
        pointer_walk_enter(&walk, 0);
        (void)name("id"); /* at /data/data/id */
        ck_assert_uint_eq(pointer_walk_value(&walk), 0);
        pointer_walk_leave(&walk);
        (void)name("id");
        ck_assert_uint_eq(pointer_walk_value(&walk), DATA_ID);
        pointer_walk_leave(&walk);
        ck_assert_uint_eq(walk.depth, 1);
        (void)name("event");
        ck_assert_uint_eq(pointer_walk_value(&walk), EVENT);
}
END_TEST

START_TEST(test_path_is_followed_into_arrays_by_index)
{
        (void)name("lines");
        ck_assert_uint_eq(pointer_walk_value(&walk), 0);
        pointer_walk_enter(&walk, 1);
        for (int i = 0; i < 12; i++) { /* "1" is not the beginning of "10" */
                ck_assert_uint_eq(pointer_walk_value(&walk), 0);
                pointer_walk_enter(&walk, 0);
                (void)name("tax");
                ck_assert_uint_eq(pointer_walk_value(&walk), i == 1 ? LINE_TAX : 0);
                pointer_walk_leave(&walk);
        }
        pointer_walk_leave(&walk);
        (void)name("tax");
        ck_assert_uint_eq(pointer_walk_value(&walk), 0);
}
END_TEST

START_TEST(test_index_matches_an_object_member_of_that_name)
{
        (void)name("lines");
        (void)pointer_walk_value(&walk);
        pointer_walk_enter(&walk, 0);
        (void)name("1");
        (void)pointer_walk_value(&walk);
        pointer_walk_enter(&walk, 0);
        (void)name("tax");
        ck_assert_uint_eq(pointer_walk_value(&walk), LINE_TAX);
}
END_TEST

START_TEST(test_duplicate_member_returns_all_watches_on_its_path)
{
        ck_assert_uint_eq(name("event"), 0);
        (void)pointer_walk_value(&walk);
        ck_assert_uint_eq(name("data"), 0);
        (void)pointer_walk_value(&walk);
        pointer_walk_enter(&walk, 0);
        ck_assert_uint_eq(name("id"), 0);
        (void)pointer_walk_value(&walk);
        ck_assert_uint_eq(name("id"), DATA_ID);
        (void)pointer_walk_value(&walk);
        pointer_walk_leave(&walk);
        ck_assert_uint_eq(name("event"), EVENT);
        (void)pointer_walk_value(&walk);
        ck_assert_uint_eq(name("data"), DATA | DATA_ID);
        (void)pointer_walk_value(&walk);
        pointer_walk_enter(&walk, 0);
        ck_assert_uint_eq(name("id"), 0); /* the first in this object */
        (void)pointer_walk_value(&walk);
        pointer_walk_leave(&walk);
        ck_assert_uint_eq(name("lines"), 0);
        (void)pointer_walk_value(&walk);
        ck_assert_uint_eq(name("other"), 0);
        (void)pointer_walk_value(&walk);
        ck_assert_uint_eq(name("other"), 0);
}
END_TEST

START_TEST(test_same_name_in_two_elements_is_no_duplicate)
{
        static const char *const every[] = {"0", "a"};
        static const struct pointer_watch first = {every, 2};

        walk = (struct pointer_walk){&first, 1, 0, levels};
        (void)pointer_walk_value(&walk);
        pointer_walk_enter(&walk, 1);
        for (int i = 0; i < 3; i++) {
                (void)pointer_walk_value(&walk);
                pointer_walk_enter(&walk, 0);
                ck_assert_uint_eq(name("a"), 0);
                ck_assert_uint_eq(pointer_walk_value(&walk), i == 0 ? 1 : 0);
                pointer_walk_leave(&walk);
        }
}
END_TEST

START_TEST(test_all_32_watches_are_distinguished)
{
        static const char *const letters[POINTER_MAX_WATCHES] = {"a", "b", "c", "d", "e", "f", "g", "h",
                                                                 "i", "j", "k", "l", "m", "n", "o", "p",
                                                                 "q", "r", "s", "t", "u", "v", "w", "x",
                                                                 "y", "z", "A", "B", "C", "D", "E", "F"};
        struct pointer_watch all[POINTER_MAX_WATCHES];

        for (size_t i = 0; i < POINTER_MAX_WATCHES; i++)
                all[i] = (struct pointer_watch){&letters[i], 1};
        walk = (struct pointer_walk){all, POINTER_MAX_WATCHES, 0, levels};
        (void)pointer_walk_value(&walk);
        pointer_walk_enter(&walk, 0);
        for (size_t i = 0; i < POINTER_MAX_WATCHES; i++) {
                ck_assert_uint_eq(name(letters[i]), 0);
                ck_assert_uint_eq(pointer_walk_value(&walk), UINT32_C(1) << i);
                ck_assert_uint_eq(name(letters[i]), UINT32_C(1) << i);
        }
}
END_TEST

Suite *
suite_pointer_walk(void)
{
        Suite *suite = suite_create("pointer_walk");
        TCase *tcase = tcase_create("walk");

        tcase_add_checked_fixture(tcase, set_up, NULL);
        tcase_add_test(tcase, test_member_matches_the_watch_of_its_name);
        tcase_add_test(tcase, test_name_with_a_nul_does_not_match);
        tcase_add_test(tcase, test_path_is_followed_into_objects_and_back);
        tcase_add_test(tcase, test_path_is_followed_into_arrays_by_index);
        tcase_add_test(tcase, test_index_matches_an_object_member_of_that_name);
        tcase_add_test(tcase, test_duplicate_member_returns_all_watches_on_its_path);
        tcase_add_test(tcase, test_same_name_in_two_elements_is_no_duplicate);
        tcase_add_test(tcase, test_all_32_watches_are_distinguished);
        suite_add_tcase(suite, tcase);
        return suite;
}
