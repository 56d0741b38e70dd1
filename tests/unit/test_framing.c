#include <stdio.h>
#include <string.h>

#include "../framing/cases.h"
#include "../framing/messages.h"
#include "base/compiler.h"
#include "base/pool.h"
#include "spans.h"
#include "suites.h"

static const struct framing_limits limits = FRAMING_CASES_LIMITS;

static void
expect_outcome(const struct framing_case *row)
{
        static const size_t steps[] = {1, 2, 3, 7, 4096};
        struct messages first, messages;

        messages_read(&limits, row->bytes, row->len, 1, &first);
        for (size_t s = 0; s < ARRAY_LEN(steps); s++) {
                messages_read(&limits, row->bytes, row->len, steps[s], &messages);
                ck_assert_msg((int)messages.n == row->n_messages && messages.status == row->status,
                              "RFC 9112 %s, %zu at a time: %zu messages, status %d: %s", row->section,
                              steps[s], messages.n, messages.status, row->bytes);
                ck_assert(messages_are_equal(&first, &messages));
                messages_clear(&messages);
        }
        messages_clear(&first);
}

START_TEST(test_framing_does_not_depend_on_how_bytes_arrive)
{
        for (size_t i = 0; i < n_framing_cases; i++)
                expect_outcome(&framing_cases[i]);
}
END_TEST

START_TEST(test_there_are_enough_accepted_and_refused_cases)
{
        size_t n_refused = 0;

        for (size_t i = 0; i < n_framing_cases; i++)
                n_refused += framing_cases[i].status != 0;
        ck_assert_uint_ge(n_refused, 150);
        ck_assert_uint_ge(n_framing_cases - n_refused, 75);
}
END_TEST

#define GET "GET / HTTP/1.1\r\nHost: a\r\n"
#define CHUNKED "POST /hook HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"

/* A connection's bytes, and the body of its first message. */
static const struct {
        struct span bytes;
        struct span body;
} bodies[] = {
    {SPAN_OF(GET "\r\n"), SPAN_OF("")},
    {SPAN_OF(GET "Content-Length: 0\r\n\r\n"), SPAN_OF("")},
    {SPAN_OF(GET "Content-Length: 4\r\n\r\n\r\n\0\r\r\n\r\n"), SPAN_OF("\r\n\0\r")},
    {SPAN_OF(CHUNKED "0\r\n\r\n"), SPAN_OF("")},
    {SPAN_OF(CHUNKED "5\r\nhello\r\n0\r\n\r\n"), SPAN_OF("hello")},
    {SPAN_OF(CHUNKED "5;a=b\r\nhello\r\n0\r\n\r\n"), SPAN_OF("hello")},
    {SPAN_OF(CHUNKED "5\t;a=\"5\"\r\n;a\r\n0\r\n5;0;0\r\n\r\n;=\r\r\n00;a=0\r\n\r\n" GET "a:\tb\r\n\r\n"),
     SPAN_OF(";a\r\n0\r\n;=\r")},
    {SPAN_OF(CHUNKED "1\r\nx\r\n0;a\r\nb: 0\r\nc:\r\n\r\n"), SPAN_OF("x")},
    {SPAN_OF(CHUNKED "4\r\n\n\t \r\r\n0\r\nx: \r\n\r\n"), SPAN_OF("\n\t \r")},
};

START_TEST(test_bodies_equal_the_bytes_sent)
{
        const struct span *bytes = &bodies[_i].bytes, *body = &bodies[_i].body;
        struct messages messages;

        messages_read(&limits, bytes->data, bytes->len, 1, &messages);
        ck_assert_uint_ge(messages.n, 1);
        ck_assert_uint_eq(messages.list[0].body_len, body->len);
        ck_assert_mem_eq(messages.list[0].body, body->data, body->len);
        messages_clear(&messages);
}
END_TEST

START_TEST(test_field_names_and_values_are_trimmed_strings)
{
        static const char bytes[] = "PUT /a/b?c HTTP/1.0\r\nHost:a\r\nx-Y: \tb\tc \t\r\nEmpty:\r\n\r\n";
        static const char *const fields[][2] = {{"Host", "a"}, {"x-Y", "b\tc"}, {"Empty", ""}};
        struct messages messages;
        const struct head *head;
        const char *text;

        messages_read(&limits, bytes, sizeof(bytes) - 1, 3, &messages);
        ck_assert_uint_eq(messages.n, 1);
        head = &messages.list[0].head;
        text = messages.list[0].text;
        ck_assert_str_eq(head->method, "PUT");
        ck_assert_uint_eq(head->path_len, 4);
        ck_assert_mem_eq(text + head->path, "/a/b", 4);
        ck_assert_int_eq(head->minor, 0);
        ck_assert_uint_eq(head->n_fields, ARRAY_LEN(fields));
        for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
                ck_assert_str_eq(text + head->fields[i].name, fields[i][0]);
                ck_assert_str_eq(text + head->fields[i].value, fields[i][1]);
                ck_assert_uint_eq(head->fields[i].value_len, strlen(fields[i][1]));
        }
        messages_clear(&messages);
}
END_TEST

/* A header line and its effect on the head: closes, keeps_alive, expects_continue, chunked. */
static const struct {
        const char *line;
        int closes, keeps_alive, expects, chunked;
        uint64_t length;
} lines[] = {
    {"", 0, 0, 0, 0, 0},
    {"Connection: close\r\n", 1, 0, 0, 0, 0},
    {"connection: Keep-Alive\r\n", 0, 1, 0, 0, 0},
    {"Connection: upgrade ,\tCLOSE\r\n", 1, 0, 0, 0, 0},
    {"Connection: closed, xclose\r\nConnection: keep-alive\r\n", 0, 1, 0, 0, 0},
    {"Expect: 100-Continue\r\nContent-Length: 7\r\n", 0, 0, 1, 0, 7},
    {"Transfer-Encoding: Chunked\r\n", 0, 0, 0, 1, 0},
};

START_TEST(test_head_gives_framing_and_connection_handling)
{
        char bytes[256];
        int len = snprintf(bytes, sizeof(bytes), GET "%s\r\n", lines[_i].line);
        struct framing framing;
        struct head head;
        char *text;
        size_t used;

        framing_init(&framing, &limits);
        ck_assert_int_eq(framing_feed(&framing, bytes, (size_t)len, &used), FRAMING_HEAD);
        ck_assert_uint_eq(used, (size_t)len);
        text = framing_take_head(&framing, &head);
        ck_assert_int_eq(head.closes, lines[_i].closes);
        ck_assert_int_eq(head.keeps_alive, lines[_i].keeps_alive);
        ck_assert_int_eq(head.expects_continue, lines[_i].expects);
        ck_assert_int_eq(head.chunked, lines[_i].chunked);
        ck_assert_uint_eq(head.content_length, lines[_i].length);
        ck_assert_int_eq(head_has_body(&head), lines[_i].chunked || lines[_i].length > 0);
        head_clear(&head);
        pool_free(text);
        framing_clear(&framing);
}
END_TEST

START_TEST(test_pending_events_are_returned_without_new_bytes)
{
        static const char bytes[] = GET "Content-Length: 3\r\n\r\nabc" GET "\r\n";
        struct framing framing;
        struct head head;
        size_t used;

        framing_init(&framing, &limits);
        ck_assert_int_eq(framing_feed(&framing, bytes, sizeof(bytes) - 1, &used), FRAMING_HEAD);
        ck_assert_uint_eq(used, strlen(GET "Content-Length: 3\r\n\r\n"));
        pool_free(framing_take_head(&framing, &head));
        head_clear(&head);
        for (uint64_t left = 3; left > 0; left--) {
                ck_assert_int_eq(framing_feed(&framing, bytes, 0, &used), FRAMING_DATA);
                ck_assert_uint_eq(framing.left, left);
                framing_skip(&framing, 1);
        }
        ck_assert(framing_is_inside(&framing));
        ck_assert_int_eq(framing_feed(&framing, bytes, 0, &used), FRAMING_END);
        ck_assert(!framing_is_inside(&framing));
        ck_assert_int_eq(framing_feed(&framing, bytes, 0, &used), FRAMING_MORE);
        framing_clear(&framing);
}
END_TEST

START_TEST(test_refusal_of_a_too_large_body_includes_its_head)
{
        static const char bytes[] = GET "Content-Length: 101\r\na: b\r\n\r\n";
        struct framing framing;
        struct head head;
        char *text;
        size_t used;

        framing_init(&framing, &limits);
        ck_assert_int_eq(framing_feed(&framing, bytes, sizeof(bytes) - 1, &used), FRAMING_REFUSED);
        ck_assert_int_eq(framing.fault.status, 413);
        text = framing_take_head(&framing, &head);
        ck_assert_uint_eq(head.n_fields, 3);
        ck_assert_str_eq(text + head.fields[2].value, "b");
        ck_assert_uint_eq(head.content_length, 101);
        head_clear(&head);
        pool_free(text);
        framing_clear(&framing);
}
END_TEST

START_TEST(test_endless_lines_are_refused)
{
        static const struct {
                struct span start;
                char then;
                int status;
        } rows[] = {
            {SPAN_OF("GET /"), 'a', 414},           {SPAN_OF(GET "a:"), ' ', 400},
            {SPAN_OF(CHUNKED), '0', 400},           {SPAN_OF(CHUNKED "5"), ' ', 400},
            {SPAN_OF(CHUNKED "0;a="), 'a', 400},    {SPAN_OF(CHUNKED "0\r\n"), 'a', 400},
            {SPAN_OF(CHUNKED "0\r\na:"), ' ', 400},
        };
        char bytes[4096];
        struct messages messages;

        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                memset(bytes, rows[i].then, sizeof(bytes));
                memcpy(bytes, rows[i].start.data, rows[i].start.len);
                messages_read(&limits, bytes, sizeof(bytes), sizeof(bytes), &messages);
                ck_assert_int_eq(messages.status, rows[i].status);
                ck_assert_uint_le(messages.used, strlen(CHUNKED) + limits.max_header_bytes + 8);
                messages_clear(&messages);
        }
}
END_TEST

/*
 * Append a message with this many bytes of extensions and trailer fields, at least 12, with the last line
 * end.
 */
static char *
put_besides(char *end, size_t n)
{
        end = stpcpy(end, CHUNKED);
        for (; n >= 22; n -= 10)
                end = stpcpy(end, "1;a=4567890\r\nx\r\n");
        end = stpcpy(end, "0\r\na:");
        for (; n > 6; n--)
                end = stpcpy(end, "b");
        return stpcpy(end, "\r\n\r\n");
}

START_TEST(test_extensions_and_trailers_share_one_limit_per_message)
{
        char bytes[8192], *end = bytes;
        struct messages messages;

        for (int i = 0; i < 3; i++)
                end = put_besides(end, limits.max_header_bytes);
        end = put_besides(end, limits.max_header_bytes + 1);
        messages_read(&limits, bytes, (size_t)(end - bytes), sizeof(bytes), &messages);
        ck_assert_uint_eq(messages.n, 3);
        ck_assert_int_eq(messages.status, 400);
        messages_clear(&messages);
}
END_TEST

Suite *
suite_framing(void)
{
        Suite *suite = suite_create("framing");
        TCase *all = tcase_create("all");

        tcase_add_test(all, test_framing_does_not_depend_on_how_bytes_arrive);
        tcase_add_test(all, test_there_are_enough_accepted_and_refused_cases);
        tcase_add_loop_test(all, test_bodies_equal_the_bytes_sent, 0, (int)ARRAY_LEN(bodies));
        tcase_add_test(all, test_field_names_and_values_are_trimmed_strings);
        tcase_add_loop_test(all, test_head_gives_framing_and_connection_handling, 0, (int)ARRAY_LEN(lines));
        tcase_add_test(all, test_pending_events_are_returned_without_new_bytes);
        tcase_add_test(all, test_refusal_of_a_too_large_body_includes_its_head);
        tcase_add_test(all, test_endless_lines_are_refused);
        tcase_add_test(all, test_extensions_and_trailers_share_one_limit_per_message);
        suite_add_tcase(suite, all);
        return suite;
}
