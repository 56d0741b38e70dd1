#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "base/pool.h"
#include "http/answer.h"
#include "suites.h"

#define ID "0123456789abcdef"

/* Convert a text from the pool to a string. The caller frees it with free(). */
static char *
as_string(char *text, size_t len)
{
        char *string;

        ck_assert_ptr_nonnull(text);
        string = strndup(text, len);
        ck_assert_uint_eq(strlen(string), len);
        pool_free(text);
        return string;
}

static char *
envelope(const struct http_error *error)
{
        size_t len = 0;
        char *text = answer_envelope(error, ID, &len);

        return as_string(text, len);
}

static char *
answer(const struct http_error *error, const char *id, enum answer_connection connection)
{
        size_t len = 0;
        char *text = answer_error(error, id, connection, 0, &len);

        return as_string(text, len);
}

/*
 * The value of a header of a complete answer, or NULL; valid until the next call. Fails if the header is
 * repeated.
 */
static const char *
header(const char *answer, const char *name)
{
        static char value[128];
        char wanted[64];
        const char *end = strstr(answer, "\r\n\r\n"), *found;
        size_t n = (size_t)snprintf(wanted, sizeof(wanted), "\r\n%s: ", name);

        ck_assert_ptr_nonnull(end);
        found = strstr(answer, wanted);
        if (found == NULL || found >= end)
                return NULL;
        ck_assert(strstr(found + n, wanted) == NULL || strstr(found + n, wanted) > end);
        (void)snprintf(value, sizeof(value), "%.*s", (int)strcspn(found + n, "\r"), found + n);
        return value;
}

START_TEST(test_answer_to_head_has_the_same_headers_without_body)
{
        const struct http_error error = {.status = 404, .code = "NOT_FOUND", .message = "nothing"};
        size_t whole_len, len;
        char *whole = answer_error(&error, ID, ANSWER_KEEPS, 0, &whole_len);
        char *head = answer_error(&error, ID, ANSWER_KEEPS, 1, &len);

        ck_assert(whole != NULL && head != NULL);
        ck_assert_mem_eq(head + len - 4, "\r\n\r\n", 4);
        ck_assert_uint_lt(len, whole_len);
        ck_assert_mem_eq(head, whole, len);
        pool_free(whole);
        pool_free(head);
}
END_TEST

START_TEST(test_envelope_has_code_message_and_request_id)
{
        const struct http_error error = {.status = 400, .code = "BAD_REQUEST", .message = "no good"};
        char *text = envelope(&error);

        ck_assert_str_eq(text, "{\"ok\":false,\"error\":{\"code\":\"BAD_REQUEST\",\"message\":\"no good\","
                               "\"requestId\":\"" ID "\"}}");
        free(text);
}
END_TEST

START_TEST(test_envelope_lists_violations_in_order)
{
        static const struct http_violation violations[] = {{"url", "must be https"},
                                                           {"events[0]", "unknown"}};
        const struct http_error error = {422, "VALIDATION_ERROR", "no good", violations, 2};
        char *text = envelope(&error);

        ck_assert_str_eq(text,
                         "{\"ok\":false,\"error\":{\"code\":\"VALIDATION_ERROR\",\"message\":\"no good\","
                         "\"violations\":[{\"field\":\"url\",\"message\":\"must be https\"},"
                         "{\"field\":\"events[0]\",\"message\":\"unknown\"}],\"requestId\":\"" ID "\"}}");
        free(text);
}
END_TEST

/* Characters that a JSON string must escape (RFC 8259 section 7). */
static const char *const awkward[][2] = {
    {"say \"no\"", "say \\\"no\\\""},
    {"a\\b", "a\\\\b"},
    {"\"", "\\\""},
    {"\\\"\\", "\\\\\\\"\\\\"},
    {"a\nb\r\tc", "a\\u000ab\\u000d\\u0009c"},
    {"\x01\x1f\x7f", "\\u0001\\u001f\x7f"},
    {"za\xc5\xbc\xc3\xb3\xc5\x82\xc4\x87", "za\xc5\xbc\xc3\xb3\xc5\x82\xc4\x87"},
    {"", ""},
};

START_TEST(test_strings_in_an_envelope_are_escaped)
{
        const struct http_violation violation = {awkward[_i][0], awkward[_i][0]};
        const struct http_error error = {400, awkward[_i][0], awkward[_i][0], &violation, 1};
        char *text = envelope(&error), expected[512];

        (void)snprintf(expected, sizeof(expected),
                       "{\"ok\":false,\"error\":{\"code\":\"%s\",\"message\":\"%s\","
                       "\"violations\":[{\"field\":\"%s\",\"message\":\"%s\"}],\"requestId\":\"" ID "\"}}",
                       awkward[_i][1], awkward[_i][1], awkward[_i][1], awkward[_i][1]);
        ck_assert_str_eq(text, expected);
        free(text);
}
END_TEST

START_TEST(test_long_messages_are_not_truncated)
{
        char message[5000];
        struct http_error error = {.status = 400, .code = "BAD_REQUEST", .message = message};

        for (size_t n = 0; n < sizeof(message); n += 97) {
                char *text, *found;

                memset(message, 'm', n);
                message[n] = '\0';
                text = envelope(&error);
                found = strstr(text, "\"message\":\"");
                ck_assert_ptr_nonnull(found);
                ck_assert_uint_eq(strspn(found + strlen("\"message\":\""), "m"), n);
                ck_assert_str_eq(text + strlen(text) - 2, "}}");
                free(text);
        }
}
END_TEST

START_TEST(test_answer_has_headers_and_envelope)
{
        const struct http_error error = {.status = 400, .code = "BAD_REQUEST", .message = "no good"};
        char *text = answer(&error, ID, ANSWER_KEEPS), *body = envelope(&error), length[32];

        (void)snprintf(length, sizeof(length), "%zu", strlen(body));
        ck_assert(strncmp(text, "HTTP/1.1 400 Bad Request\r\n", 26) == 0);
        ck_assert_str_eq(strstr(text, "\r\n\r\n") + 4, body);
        ck_assert_str_eq(header(text, "Content-Length"), length);
        ck_assert_str_eq(header(text, "Content-Type"), "application/json");
        ck_assert_str_eq(header(text, "x-request-id"), ID);
        ck_assert_ptr_nonnull(header(text, "Date"));
        free(body);
        free(text);
}
END_TEST

START_TEST(test_answer_has_the_matching_connection_header)
{
        static const char *const values[] = {
            [ANSWER_KEEPS] = NULL, [ANSWER_KEEPS_1_0] = "keep-alive", [ANSWER_CLOSES] = "close"};
        const struct http_error error = {.status = 404, .code = "NOT_FOUND", .message = "no"};
        char *text = answer(&error, ID, (enum answer_connection)_i);

        if (values[_i] == NULL) {
                ck_assert_ptr_null(header(text, "Connection"));
                ck_assert_ptr_null(answer_connection_value((enum answer_connection)_i));
        } else {
                ck_assert_str_eq(header(text, "Connection"), values[_i]);
                ck_assert_str_eq(answer_connection_value((enum answer_connection)_i), values[_i]);
        }
        free(text);
}
END_TEST

START_TEST(test_405_answer_has_an_allow_header)
{
        const struct http_error error = {.status = 405, .code = "METHOD_NOT_ALLOWED", .message = "no"};
        char *text = answer(&error, ID, ANSWER_KEEPS);

        ck_assert_str_eq(header(text, "Allow"), "POST");
        ck_assert_ptr_null(header(text, "Retry-After"));
        free(text);
}
END_TEST

START_TEST(test_429_and_503_answers_have_a_retry_after_header)
{
        struct http_error error = {.status = 429, .code = "TOO_MANY_REQUESTS", .message = "wait"};
        char *text = answer(&error, ID, ANSWER_KEEPS);
        unsigned seen = 0;

        ck_assert_str_eq(header(text, "Retry-After"), "1");
        ck_assert_ptr_null(header(text, "Allow"));
        free(text);
        error.status = 503;
        for (size_t i = 0; i < 16; i++) {
                char id[] = "000000000000000?";
                int seconds;

                id[15] = "0123456789abcdef"[i];
                text = answer(&error, id, ANSWER_CLOSES);
                seconds = atoi(header(text, "Retry-After"));
                ck_assert(seconds >= 1 && seconds <= 5);
                seen |= 1u << seconds;
                free(text);
        }
        ck_assert_uint_eq(seen,
                          0x3e); /* senders that are refused at the same time retry at different times */
}
END_TEST

START_TEST(test_close_can_be_inserted_later)
{
        static const struct http_violation violation = {"a\nb", "c"};
        const struct http_error error = {422, "VALIDATION_ERROR", "no good", &violation, 1};
        char *kept = answer(&error, ID, ANSWER_KEEPS), *body = strstr(kept, "\r\n\r\n") + 4, *text;
        char length[32];
        size_t len = 0, before;

        text = answer_error(&error, ID, ANSWER_KEEPS, 0, &len);
        before = len;
        text = answer_insert_close(text, &len);
        ck_assert_uint_eq(len, before + strlen("Connection: close\r\n"));
        text = as_string(text, len);
        ck_assert(strncmp(text, "HTTP/1.1 422 Unprocessable Content\r\n", 36) == 0);
        ck_assert_str_eq(header(text, "Connection"), "close");
        ck_assert_str_eq(header(text, "x-request-id"), ID);
        (void)snprintf(length, sizeof(length), "%zu", strlen(body));
        ck_assert_str_eq(header(text, "Content-Length"), length);
        ck_assert_str_eq(strstr(text, "\r\n\r\n") + 4, body);
        free(text);
        free(kept);
}
END_TEST

START_TEST(test_refusals_have_codes_and_reason_phrases)
{
        static const struct {
                int status;
                const char *code, *phrase;
        } rows[] = {
            {400, "BAD_REQUEST", "Bad Request"},
            {408, "REQUEST_TIMEOUT", "Request Timeout"},
            {413, "PAYLOAD_TOO_LARGE", "Content Too Large"},
            {414, "URI_TOO_LONG", "URI Too Long"},
            {417, "EXPECTATION_FAILED", "Expectation Failed"},
            {501, "NOT_IMPLEMENTED", "Not Implemented"},
            {503, "UNAVAILABLE", "Service Unavailable"},
        };

        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct http_error error = answer_refusal(rows[i].status, "a reason");

                ck_assert_int_eq(error.status, rows[i].status);
                ck_assert_str_eq(error.code, rows[i].code);
                ck_assert_str_eq(error.message, "a reason");
                ck_assert_uint_eq(error.n_violations, 0);
                ck_assert_str_eq(answer_phrase(rows[i].status), rows[i].phrase);
        }
        ck_assert_ptr_nonnull(answer_phrase(299));
}
END_TEST

START_TEST(test_date_header_is_current)
{
        const char *text = answer_date();
        struct tm tm = {.tm_sec = 0};
        const char *end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm);

        ck_assert_uint_eq(strlen(text), 29);
        ck_assert(end != NULL && *end == '\0');
        ck_assert_int_le(labs((long)(time(NULL) - timegm(&tm))), 2);
}
END_TEST

Suite *
suite_answer(void)
{
        Suite *suite = suite_create("answer");
        TCase *cases = tcase_create("cases");

        tcase_add_test(cases, test_answer_to_head_has_the_same_headers_without_body);
        tcase_add_test(cases, test_envelope_has_code_message_and_request_id);
        tcase_add_test(cases, test_envelope_lists_violations_in_order);
        tcase_add_loop_test(cases, test_strings_in_an_envelope_are_escaped, 0, (int)ARRAY_LEN(awkward));
        tcase_add_test(cases, test_long_messages_are_not_truncated);
        tcase_add_test(cases, test_answer_has_headers_and_envelope);
        tcase_add_loop_test(cases, test_answer_has_the_matching_connection_header, ANSWER_KEEPS,
                            ANSWER_CLOSES + 1);
        tcase_add_test(cases, test_405_answer_has_an_allow_header);
        tcase_add_test(cases, test_429_and_503_answers_have_a_retry_after_header);
        tcase_add_test(cases, test_close_can_be_inserted_later);
        tcase_add_test(cases, test_refusals_have_codes_and_reason_phrases);
        tcase_add_test(cases, test_date_header_is_current);
        suite_add_tcase(suite, cases);
        return suite;
}
