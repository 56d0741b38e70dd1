#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/test_delivery.h"
#include "spans.h"
#include "suites.h"

#define ID "\"01234567-89ab-cdef-0123-456789abcdef\""

START_TEST(test_own_bodies_are_recognised_wherever_the_kind_is)
{
        static const char *const pointers[] = {"/event",
                                               "/meta/type",
                                               "/gatepost.doctor",
                                               "/gatepost.doctor/kind",
                                               "/gatepost.doctor.id",
                                               "/a~1b/\"quoted\"/\\/\xc3\xa9/ ",
                                               "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16"};
        struct pointer kind;
        struct error error;
        char *body;

        for (size_t i = 0; i < ARRAY_LEN(pointers); i++) {
                ck_assert_int_eq(pointer_parse(pointers[i], &kind, &error), 0);
                body = test_delivery_body(&kind);
                ck_assert_msg(test_delivery_recognises((struct span){body, strlen(body)}), "%s", body);
                free(body);
                pointer_clear(&kind);
        }
}
END_TEST

/* Bodies that the service, or a foreign program, may send. */
static const struct span others[] = {
    {NULL, 0},
    SPAN_OF(""),
    SPAN_OF("{}"),
    SPAN_OF("{\"event\":\"invoice.accepted\"}"),
    SPAN_OF("{\"event\":\"gatepost.doctor\"}"),
    SPAN_OF("{\"event\":\"gatepost.doctor\",\"gatepost.doctor\":" ID "}"),
    SPAN_OF("{\"gatepost.doctor\":" ID "}"),
    SPAN_OF("{\"gatepost.doctor\":\"gatepost.doctor\"}"),
    SPAN_OF("{\"gatepost.doctor\":\"1\",\"event\":\"gatepost.doctor\"}"),
    SPAN_OF("{\"gatepost.doctor\":1,\"event\":\"gatepost.doctor\"}"),
    SPAN_OF("{\"gatepost.doctor\":" ID ",\"event\":\"gatepost.doctors\"}"),
    SPAN_OF("{\"gatepost.doctor\":" ID ",\"event\":\"invoice.accepted\"}"),
    SPAN_OF("{\"gatepost.doctor\":" ID ",\"event\":[\"gatepost.doctor\"]}"),
    SPAN_OF("{\"gatepost.doctor\":" ID ",\"event\":{}}"),
    SPAN_OF("{\"gatepost.doctor\":" ID ",\"event\":\"gatepost.doctor\",\"more\":1}"),
    SPAN_OF("{\"gatepost.doctor\":" ID ",\"event\":\"invoice.accepted\",\"more\":\"gatepost.doctor\"}"),
    SPAN_OF("{\"gatepost.doctor\":" ID ",\"meta\":{\"type\":\"gatepost.doctor\",\"more\":1}}"),
    SPAN_OF("{\"gatepost.doctor\":" ID ",\"gatepost.doctor\":\"gatepost.doctor\"}"),
    SPAN_OF("{\"gatepost.doctor.id\":" ID ",\"event\":\"gatepost.doctor\"}"),
    SPAN_OF("{\"gatepost.doctors\":" ID ",\"event\":\"gatepost.doctor\"}"),
    SPAN_OF("{\"gatepost.doctor\":" ID ",\"event\":\"gatepost.doctor\"} {}"),
    SPAN_OF("{\"gatepost.doctor\":" ID ",\"event\":\"gatepost.doctor\""),
    SPAN_OF("[{\"gatepost.doctor\":" ID ",\"event\":\"gatepost.doctor\"}]"),
};

START_TEST(test_other_body_is_not_recognised)
{
        ck_assert_msg(!test_delivery_recognises(others[_i]), "%.*s", (int)others[_i].len, others[_i].data);
}
END_TEST

Suite *
suite_test_delivery(void)
{
        Suite *suite = suite_create("test_delivery");
        TCase *tcase = tcase_create("bodies");

        tcase_add_test(tcase, test_own_bodies_are_recognised_wherever_the_kind_is);
        tcase_add_loop_test(tcase, test_other_body_is_not_recognised, 0, ARRAY_LEN(others));
        suite_add_tcase(suite, tcase);
        return suite;
}
