#include <check.h>
#include <fcntl.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/log_flood.h"
#include "base/mem.h"
#include "base/text.h"
#include "logged.h"
#include "router/decision_log.h"
#include "spans.h"
#include "suites.h"

#define TIME "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z "

static void
expect(const char *text, const char *pattern)
{
        regex_t regex;

        ck_assert_int_eq(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
        ck_assert_msg(regexec(&regex, text, 0, NULL, 0) == 0, "'%s' is not like '%s'", text, pattern);
        regfree(&regex);
}

static size_t
count_lines(const char *text)
{
        size_t n = 0;

        for (; (text = strchr(text, '\n')) != NULL; text++)
                n++;
        return n;
}

START_TEST(test_line_begins_with_time_and_level)
{
        log_notice("something happened n=%d", 7);
        expect(logged_read(), TIME "notice something happened n=7\n$");
        log_error("worse");
        expect(logged_read(), TIME "error worse\n$");
}
END_TEST

/* Set JOURNAL_STREAM as systemd does for the pipe, with this difference to its inode. */
static void
name_journal(ino_t off)
{
        struct stat st;
        char *stream;

        ck_assert_int_eq(fstat(STDERR_FILENO, &st), 0);
        stream =
            mem_printf("%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)(st.st_ino + off));
        ck_assert_int_eq(setenv("JOURNAL_STREAM", stream, 1), 0);
        free(stream);
        log_init();
}

START_TEST(test_journal_lines_begin_with_a_priority)
{
        log_set_level(LOG_LEVEL_DEBUG);
        name_journal(0);
        log_error("a");
        log_warning("b");
        log_notice("c");
        log_info("d");
        log_debug("e");
        ck_assert_str_eq(logged_read(), "<3>a\n<4>b\n<5>c\n<6>d\n<7>e\n");
}
END_TEST

START_TEST(test_other_stream_than_stderr_is_not_treated_as_the_journal)
{
        name_journal(1);
        log_error("a");
        expect(logged_read(), TIME "error a\n$");
}
END_TEST

START_TEST(test_messages_below_the_level_are_not_written)
{
        log_debug("not this");
        ck_assert_str_eq(logged_read(), "");
        log_set_level(LOG_LEVEL_ERROR);
        log_warning("nor this");
        ck_assert_str_eq(logged_read(), "");
        ck_assert(!log_is_on(LOG_LEVEL_WARNING) && log_is_on(LOG_LEVEL_ERROR));
}
END_TEST

START_TEST(test_levels_are_parsed_by_name)
{
        enum log_level level = LOG_LEVEL_INFO;

        ck_assert_int_eq(log_parse_level("debug", &level), 0);
        ck_assert_int_eq(level, LOG_LEVEL_DEBUG);
        ck_assert_int_eq(log_parse_level("error", &level), 0);
        ck_assert_int_eq(level, LOG_LEVEL_ERROR);
        ck_assert_int_eq(log_parse_level("Error", &level), -1);
        ck_assert_int_eq(log_parse_level("", &level), -1);
}
END_TEST

START_TEST(test_message_stays_on_one_line_of_limited_length)
{
        char long_text[5000];

        log_info("two\nlines");
        expect(logged_read(), "info two\\?lines\n$");
        memset(long_text, 'x', sizeof(long_text) - 1);
        long_text[sizeof(long_text) - 1] = '\0';
        log_info("%s", long_text);
        ck_assert_uint_eq(strlen(logged_read()), 4095);
}
END_TEST

START_TEST(test_quoted_values_stay_on_one_line)
{
        char quoted[LOG_QUOTED_SIZE], longer[1000];

        ck_assert_str_eq(log_quote("a\nb\"c\\", quoted), "\"a\\x0ab\\\"c\\\\\"");
        ck_assert_str_eq(log_quote_bytes("ab\0c", 4, quoted), "\"ab\\x00c\"");
        memset(longer, '\x01', sizeof(longer) - 1);
        longer[sizeof(longer) - 1] = '\0';
        ck_assert_int_lt((int)strlen(log_quote(longer, quoted)), LOG_QUOTED_SIZE);
}
END_TEST

START_TEST(test_quoted_values_are_utf_8)
{
        char quoted[LOG_QUOTED_SIZE], longer[1001];

        ck_assert_str_eq(log_quote("Z\xc3\xbcrich \xf0\x9f\x98\x80", quoted),
                         "\"Z\xc3\xbcrich \xf0\x9f\x98\x80\"");
        ck_assert_str_eq(log_quote("\xff\xc3 \xc0\xaf", quoted), "\"\\xff\\xc3 \\xc0\\xaf\"");
        ck_assert_str_eq(log_quote("\xc2\x85\x7f", quoted), "\"\\xc2\\x85\\x7f\""); /* U+0085 ends a line */
        for (size_t first = 0; first < 4; first++) { /* wherever the cut falls */
                memset(longer, 'x', first);
                for (size_t i = first; i + 4 < sizeof(longer); i += 4)
                        memcpy(longer + i, "\xf0\x9f\x98\x80", 5);
                (void)log_quote(longer, quoted);
                ck_assert_uint_gt(strlen(quoted), 500);
                ck_assert(text_is_utf8(quoted, strlen(quoted)));
        }
}
END_TEST

START_TEST(test_values_are_quoted_only_if_necessary)
{
        char value[LOG_QUOTED_SIZE], longer[LOG_QUOTED_SIZE + 1];

        ck_assert_str_eq(log_value("a-1_/x.y:z", 10, value), "a-1_/x.y:z");
        ck_assert_str_eq(log_value("", 0, value), "-");
        ck_assert_str_eq(log_value(NULL, 0, value), "-");
        ck_assert_str_eq(log_value("a b", 3, value), "\"a b\"");
        ck_assert_str_eq(log_value("a=b", 3, value), "\"a=b\"");
        ck_assert_str_eq(log_value("a\0b", 3, value), "\"a\\x00b\"");
        memset(longer, 'x', sizeof(longer));
        ck_assert_uint_lt(strlen(log_value(longer, sizeof(longer), value)), LOG_QUOTED_SIZE);
}
END_TEST

START_TEST(test_lines_lost_to_a_full_pipe_are_counted)
{
        size_t n;

        for (int i = 0; i < 5000; i++)
                log_info("line i=%d", i);
        n = count_lines(logged_read());
        ck_assert_uint_gt(n, 100);
        ck_assert_uint_lt(n, 5000);
        log_report_lost();
        expect(logged_read(), TIME "warning log lines were lost: they could not be written n=[0-9]+\n$");
        log_info("the next");
        expect(logged_read(), TIME "info the next\n$");
}
END_TEST

START_TEST(test_blocking_pipe_is_not_waited_for)
{
        ck_assert_int_eq(fcntl(logged[1], F_SETFL, 0), 0);
        for (int i = 0; i < 5000; i++)
                log_info("line i=%d", i);
        (void)logged_read();
        log_info("the next");
        expect(logged_read(), "warning log lines were lost.* n=[0-9]+\n.*info the next\n$");
}
END_TEST

START_TEST(test_closed_pipe_is_survived_and_lost_lines_are_counted)
{
        int other[2];

        (void)close(logged[0]);
        for (int i = 0; i < 5; i++)
                log_info("nobody reads this");
        ck_assert_int_eq(pipe2(other, O_NONBLOCK), 0);
        ck_assert_int_ge(dup2(other[1], STDERR_FILENO), 0);
        logged[0] = other[0];
        log_info("somebody reads this");
        expect(logged_read(), "log lines were lost.* n=5\n.*info somebody reads this\n$");
        (void)close(other[1]);
}
END_TEST

START_TEST(test_flood_is_limited_to_one_line_per_second)
{
        struct log_flood flood = {.last_ms = 0};

        for (int i = 0; i < 100; i++)
                log_flood(&flood, LOG_LEVEL_INFO, "event i=%d", i);
        expect(logged_read(), "info event i=0\n$");
        flood.last_ms -= 1000; /* a second later */
        log_flood(&flood, LOG_LEVEL_INFO, "event i=%d", 100);
        expect(logged_read(), "info event i=100 n=100\n$");
}
END_TEST

START_TEST(test_suppressed_lines_are_reported_when_a_flood_is_over)
{
        struct log_flood flood = {.last_ms = 0}, calm = {.last_ms = 0};

        for (int i = 0; i < 100; i++)
                log_flood(&flood, LOG_LEVEL_INFO, "event i=%d", i);
        log_flood(&calm, LOG_LEVEL_INFO, "alone");
        (void)logged_read();
        log_flood_report();
        ck_assert_str_eq(logged_read(), ""); /* the second is not over */
        flood.last_ms -= 1000;
        calm.last_ms -= 1000;
        log_flood_report();
        expect(logged_read(), TIME "info event i=99 n=99\n$");
        flood.last_ms -= 1000;
        log_flood_report();
        ck_assert_str_eq(logged_read(), "");
}
END_TEST

START_TEST(test_ended_flood_reports_its_suppressed_lines)
{
        struct log_flood one = {.last_ms = 0}, other = {.last_ms = 0};

        for (int i = 0; i < 3; i++) {
                log_flood(&one, LOG_LEVEL_INFO, "one");
                log_flood(&other, LOG_LEVEL_WARNING, "other");
        }
        (void)logged_read();
        log_flood_end(&one);
        expect(logged_read(), "info one n=2\n$");
        log_flood_end(&one);
        log_flood_end_all();
        expect(logged_read(), TIME "warning other n=2\n$");
}
END_TEST

START_TEST(test_suppressed_quarantine_lines_are_written_when_the_router_ends)
{
        const struct record record = {.source = SPAN("invoicing"), .offset = 17};
        const struct verdict verdict = {.action = VERDICT_QUARANTINE, .reason = QUARANTINE_UNKNOWN_KIND};
        struct recent recent;
        struct decision_log decisions = {.recent = &recent};

        recent_init(&recent);
        for (int i = 0; i < 3; i++)
                decision_log_add(&decisions, "invoicing", &record, &verdict);
        expect(logged_read(), "notice quarantined reason=unknown-kind source=invoicing .* detail=\"\"\n$");
        decision_log_clear(&decisions);
        expect(logged_read(), TIME "notice quarantined .* offset=17 .* n=2\n$");
        log_flood_end_all();
        ck_assert_str_eq(logged_read(), "");
}
END_TEST

Suite *
suite_log(void)
{
        Suite *suite = suite_create("log");
        TCase *all = tcase_create("all");

        tcase_add_checked_fixture(all, logged_setup, logged_teardown);
        tcase_add_test(all, test_line_begins_with_time_and_level);
        tcase_add_test(all, test_journal_lines_begin_with_a_priority);
        tcase_add_test(all, test_other_stream_than_stderr_is_not_treated_as_the_journal);
        tcase_add_test(all, test_messages_below_the_level_are_not_written);
        tcase_add_test(all, test_levels_are_parsed_by_name);
        tcase_add_test(all, test_message_stays_on_one_line_of_limited_length);
        tcase_add_test(all, test_quoted_values_stay_on_one_line);
        tcase_add_test(all, test_quoted_values_are_utf_8);
        tcase_add_test(all, test_values_are_quoted_only_if_necessary);
        tcase_add_test(all, test_lines_lost_to_a_full_pipe_are_counted);
        tcase_add_test(all, test_blocking_pipe_is_not_waited_for);
        tcase_add_test(all, test_closed_pipe_is_survived_and_lost_lines_are_counted);
        tcase_add_test(all, test_flood_is_limited_to_one_line_per_second);
        tcase_add_test(all, test_suppressed_lines_are_reported_when_a_flood_is_over);
        tcase_add_test(all, test_ended_flood_reports_its_suppressed_lines);
        tcase_add_test(all, test_suppressed_quarantine_lines_are_written_when_the_router_ends);
        suite_add_tcase(suite, all);
        return suite;
}
