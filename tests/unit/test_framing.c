#include <stdio.h>
#include <string.h>

#include "http/framing.h"
#include "suites.h"

#define MAX_HEADER 512
#define MAX_BODY 100

#define GET "GET / HTTP/1.1\r\nHost: a\r\n"
#define POST "POST /hook HTTP/1.1\r\nHost: a\r\n"

/* One connection's bytes, what is to come of them, and the section of RFC 9112 (or 9110) that says so. */
static const struct {
        const char *section;
        const char *bytes;
        int n_messages; /* complete ones before the end, or the refusal */
        int status;     /* of the refusal; 0: none */
} cases[] = {
    {"2.1", GET "\r\n", 1, 0},
    {"2.1", GET "\r\n" GET "\r\n", 2, 0},
    {"2.1", "GET / HTTP/1.0\r\n\r\n", 1, 0},
    {"2.2 (refused: evhttp)", "\r\n" GET "\r\n", 0, 400},
    {"2.2", "GET / HTTP/1.1\nHost: a\n\n", 0, 400},
    {"2.2", "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", 0, 400},
    {"2.3", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", 0, 400},
    {"2.3", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", 0, 400},
    {"2.3", "GET / http/1.1\r\nHost: a\r\n\r\n", 0, 400},
    {"2.3", "GET /\r\n\r\n", 0, 400},
    {"3", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 0, 400},
    {"3", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 0, 400},
    {"3", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", 0, 400},
    {"3", " GET / HTTP/1.1\r\nHost: a\r\n\r\n", 0, 400},
    {"3.1", "G\"T / HTTP/1.1\r\nHost: a\r\n\r\n", 0, 400},
    {"3.1", "BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 0, 501},
    {"3.1", "get / HTTP/1.1\r\nHost: a\r\n\r\n", 0, 501},
    {"3.2", "GET http://a/hook HTTP/1.1\r\nHost: a\r\n\r\n", 1, 0},
    {"3.2", "GET hook HTTP/1.1\r\nHost: a\r\n\r\n", 0, 400},
    {"3.2", "GET /\x80 HTTP/1.1\r\nHost: a\r\n\r\n", 0, 400},
    {"3.2", "GET / HTTP/1.1\r\n\r\n", 0, 400},
    {"3.2", GET "Host: a\r\n\r\n", 0, 400},
    {"3.2", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 0, 400},
    {"5", GET "a: b\r\nC:d\r\ne:\r\nf:\t g \t\r\n\r\n", 1, 0},
    {"5", GET "no colon\r\n\r\n", 0, 400},
    {"5", GET ": no name\r\n\r\n", 0, 400},
    {"5.1", GET "a : b\r\n\r\n", 0, 400},
    {"5.1", GET "a\t: b\r\n\r\n", 0, 400},
    {"5.2", GET "a: b\r\n c\r\n\r\n", 0, 400},
    {"5.2", GET "a: b\r\n\tc\r\n\r\n", 0, 400},
    {"9110 5.5", GET "a: b\x01\r\n\r\n", 0, 400},
    {"9110 5.5", GET "a: b\x7f\r\n\r\n", 0, 400},
    {"9110 5.5", GET "a: \xc5\xbc\r\n\r\n", 1, 0},
    {"9110 5.1", GET "a(b): c\r\n\r\n", 0, 400},
    {"9110 10.1.1", POST "Expect: 100-Continue\r\nContent-Length: 5\r\n\r\nhello", 1, 0},
    {"9110 10.1.1", POST "Expect: more\r\nContent-Length: 5\r\n\r\nhello", 0, 417},
    {"9110 10.1.1", POST "Expect:\r\nContent-Length: 5\r\n\r\nhello", 0, 417},
    {"9110 10.1.1", "GET / HTTP/1.0\r\nExpect: more\r\n\r\n", 1, 0},
    {"6.2", POST "Content-Length: 5\r\n\r\nhello" GET "\r\n", 2, 0},
    {"6.2", POST "Content-Length: 0\r\n\r\n" GET "\r\n", 2, 0},
    {"6.2", POST "content-LENGTH: 005\r\n\r\nhello", 1, 0},
    {"6.2", POST "Content-Length : 5\r\n\r\nhello", 0, 400},
    {"6.2", POST "Content-Length: +5\r\n\r\nhello", 0, 400},
    {"6.2", POST "Content-Length: -5\r\n\r\nhello", 0, 400},
    {"6.2", POST "Content-Length: 0x5\r\n\r\nhello", 0, 400},
    {"6.2", POST "Content-Length: 5 5\r\n\r\nhello", 0, 400},
    {"6.2", POST "Content-Length:\r\n\r\nhello", 0, 400},
    {"6.2", POST "Content-Length: 18446744073709551621\r\n\r\nhello", 0, 400},
    {"6.3", POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 0, 400},
    {"6.3", POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 0, 400},
    {"6.3", POST "Content-Length: 5, 5\r\n\r\nhello", 0, 400},
    {"6.3", POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0, 400},
    {"6.1", POST "Transfer-Encoding: Chunked\r\n\r\n0\r\n\r\n", 1, 0},
    {"6.1", POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 0, 400},
    {"6.1", POST "Transfer-Encoding: identity\r\n\r\n", 0, 400},
    {"6.1", POST "Transfer-Encoding: identity, xchunked\r\n\r\n", 0, 400},
    {"6.1", POST "Transfer-Encoding: chunked, chunked\r\n\r\n", 0, 400},
    {"6.1", POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 0, 400},
    {"6.1", POST "Transfer-Encoding:\r\n\r\n", 0, 400},
    {"6.1", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0, 400},
    {"7.1", POST "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA\r\n0123456789\r\n0\r\n\r\n" GET "\r\n", 2,
     0},
    {"7.1", POST "Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n", 0, 400},
    {"7.1", POST "Transfer-Encoding: chunked\r\n\r\n-5\r\n", 0, 400},
    {"7.1", POST "Transfer-Encoding: chunked\r\n\r\n\r\n", 0, 400},
    {"7.1", POST "Transfer-Encoding: chunked\r\n\r\n 5\r\nhello\r\n", 0, 400},
    {"7.1", POST "Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n", 0, 400},
    {"7.1", POST "Transfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n", 0, 400},
    {"7.1", POST "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\n0\r\n\r\n", 0, 400},
    {"7.1", POST "Transfer-Encoding: chunked\r\n\r\n10000000000000005\r\nhello", 0, 400},
    {"7.1", POST "Transfer-Encoding: chunked\r\n\r\n000000000000000000000000000005\r\nhello", 0, 400},
    {"7.1.1 (refused: evhttp)", POST "Transfer-Encoding: chunked\r\n\r\n5;ext=1\r\nhello\r\n0\r\n\r\n", 0,
     400},
    {"7.1.2 (refused: evhttp)",
     POST "Transfer-Encoding: chunked\r\n\r\n0\r\nx-invoicing-signature: a\r\n\r\n", 0, 400},
    {"max_body", POST "Content-Length: 100\r\n\r\n", 0, 0},
    {"max_body", POST "Content-Length: 101\r\n\r\n", 0, 413},
    {"max_body", POST "Transfer-Encoding: chunked\r\n\r\n64\r\n", 0, 0},
    {"max_body", POST "Transfer-Encoding: chunked\r\n\r\n65\r\n", 0, 413},
    {"max_body", POST "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n60\r\n", 0, 413},
    {"max_body", POST "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nffffffffffffffff\r\n", 0, 413},
};

/* Feed the bytes, `step` at a time. Returns the number of complete messages; *status is that of a refusal, or 0. */
static int
run(const char *bytes, size_t len, size_t step, int *status)
{
        struct framing framing;
        int n_messages = 0;

        *status = 0;
        ck_assert_int_eq(framing_init(&framing, MAX_HEADER, MAX_BODY), 0);
        for (size_t i = 0; i < len && *status == 0;) {
                size_t left = len - i < step ? len - i : step, used;
                enum framing_verdict verdict = framing_feed(&framing, bytes + i, left, &used);

                ck_assert(used <= left && (used > 0 || verdict == FRAMING_REFUSED));
                i += used;
                n_messages += verdict == FRAMING_MESSAGE;
                if (verdict == FRAMING_REFUSED)
                        *status = framing.fault.status;
        }
        framing_clear(&framing);
        return n_messages;
}

START_TEST(test_bytes_are_framed_alike_however_they_come)
{
        static const size_t steps[] = {1, 2, 3, 7, 4096};

        for (size_t s = 0; s < ARRAY_LEN(steps); s++) {
                int status, n = run(cases[_i].bytes, strlen(cases[_i].bytes), steps[s], &status);

                ck_assert_msg(n == cases[_i].n_messages && status == cases[_i].status,
                              "RFC 9112 %s, %zu at a time: %d messages, status %d: %s", cases[_i].section,
                              steps[s], n, status, cases[_i].bytes);
        }
}
END_TEST

START_TEST(test_nul_bytes_are_refused)
{
        static const char bytes[] = GET "a: b\0c\r\n\r\n";
        int status;

        ck_assert_int_eq(run(bytes, sizeof(bytes) - 1, 4096, &status), 0);
        ck_assert_int_eq(status, 400);
}
END_TEST

START_TEST(test_endless_lines_are_cut_off)
{
        char bytes[2 * MAX_HEADER];
        int status;

        memset(bytes, 'a', sizeof(bytes));
        memcpy(bytes, "GET /", 5);
        ck_assert_int_eq(run(bytes, sizeof(bytes), 4096, &status), 0);
        ck_assert_int_eq(status, 400);
        memset(bytes, '0', sizeof(bytes));
        memcpy(bytes, POST "Transfer-Encoding: chunked\r\n\r\n", strlen(POST) + 30);
        ck_assert_int_eq(run(bytes, sizeof(bytes), 4096, &status), 0);
        ck_assert_int_eq(status, 400);
}
END_TEST

START_TEST(test_the_path_is_what_stands_before_the_query)
{
        static const char *const targets[][2] = {
            {"/hook", "/hook"},
            {"/hook?a=b?c", "/hook"},
            {"http://h:1/hook?x", "/hook"},
            {"https://h/a%20b", "/a%20b"},
            {"http://h", ""},
            {"/a?b=http://c/d", "/a"},
            {"*", "*"},
            {"/", "/"},
        };
        size_t len;

        for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
                const char *path = head_target_path(targets[i][0], strlen(targets[i][0]), &len);

                ck_assert_uint_eq(len, strlen(targets[i][1]));
                ck_assert_mem_eq(path, targets[i][1], len);
        }
}
END_TEST

Suite *
suite_framing(void)
{
        Suite *suite = suite_create("framing");
        TCase *all = tcase_create("all");

        tcase_add_loop_test(all, test_bytes_are_framed_alike_however_they_come, 0, (int)ARRAY_LEN(cases));
        tcase_add_test(all, test_nul_bytes_are_refused);
        tcase_add_test(all, test_endless_lines_are_cut_off);
        tcase_add_test(all, test_the_path_is_what_stands_before_the_query);
        suite_add_tcase(suite, all);
        return suite;
}
