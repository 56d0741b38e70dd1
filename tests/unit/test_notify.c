#include <check.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/notify.h"
#include "scratch.h"
#include "suites.h"

/* A manager's socket, bound to a path or, if the name begins with @, to an abstract name. */
static int
manager_socket(const char *name)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        size_t len = strlen(name);
        int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

        memcpy(address.sun_path, name, len);
        if (name[0] == '@')
                address.sun_path[0] = '\0';
        ck_assert_int_eq(bind(fd, (struct sockaddr *)&address,
                              (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
                         0);
        return fd;
}

static void
expect(int fd, const char *message)
{
        char text[1200];
        ssize_t n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);

        ck_assert_msg(n >= 0, "no message: %s", strerror(errno));
        text[n] = '\0';
        ck_assert_str_eq(text, message);
}

static void
assert_notified(const char *name)
{
        int fd = manager_socket(name);
        struct notify notify;

        ck_assert_int_eq(setenv("NOTIFY_SOCKET", name, 1), 0);
        notify_open(&notify);
        ck_assert_int_ge(notify.fd, 0);
        notify_send(&notify, "STATUS=%d accepted", 7);
        notify_send(&notify, "READY=1\nSTATUS=receiving");
        expect(fd, "STATUS=7 accepted");
        expect(fd, "READY=1\nSTATUS=receiving");
        notify_close(&notify);
        (void)close(fd);
}

START_TEST(test_manager_at_a_path_is_notified)
{
        assert_notified(scratch_path("notify"));
}
END_TEST

START_TEST(test_manager_at_an_abstract_name_is_notified)
{
        char name[64];

        (void)snprintf(name, sizeof(name), "@gatepost-test-%d", (int)getpid());
        assert_notified(name);
}
END_TEST

START_TEST(test_nothing_is_sent_without_a_manager)
{
        struct notify notify;

        (void)unsetenv("NOTIFY_SOCKET");
        (void)setenv("WATCHDOG_USEC", "1000", 1);
        notify_open(&notify);
        ck_assert_int_eq(notify.fd, -1);
        ck_assert_int_eq(notify.watchdog_us, 0);
        notify_send(&notify, "READY=1");
        notify_close(&notify);
}
END_TEST

static void
open_and_close(void *arg)
{
        struct notify notify;

        (void)arg;
        notify_open(&notify);
        ck_assert_int_eq(notify.fd, -1);
        notify_close(&notify);
}

START_TEST(test_unsupported_address_is_logged_and_ignored)
{
        static const char *const values[] = {"", "@", "/", "vsock:2:1234", "relative", NULL};
        char *log;

        for (const char *const *value = values; *value != NULL; value++) {
                (void)setenv("NOTIFY_SOCKET", *value, 1);
                log = scratch_capture(open_and_close, NULL);
                ck_assert_msg(strstr(log, "NOTIFY_SOCKET") != NULL, "'%s': %s", *value, log);
                free(log);
        }
}
END_TEST

/* A manager's socket, named in the environment. */
static int
announce_manager(void)
{
        const char *name = scratch_path("notify");
        int fd = manager_socket(name);

        (void)setenv("NOTIFY_SOCKET", name, 1);
        return fd;
}

START_TEST(test_notify_variables_are_removed_from_the_environment)
{
        int fd = announce_manager();
        struct notify notify;

        (void)setenv("WATCHDOG_USEC", "30000000", 1);
        (void)setenv("WATCHDOG_PID", "1", 1);
        notify_open(&notify);
        ck_assert_ptr_null(getenv("NOTIFY_SOCKET"));
        ck_assert_ptr_null(getenv("WATCHDOG_USEC"));
        ck_assert_ptr_null(getenv("WATCHDOG_PID"));
        notify_close(&notify);
        (void)close(fd);
}
END_TEST

static int64_t
watchdog_us(const char *us, const char *pid)
{
        int fd = announce_manager();
        struct notify notify;

        (void)setenv("WATCHDOG_USEC", us, 1);
        if (pid != NULL)
                (void)setenv("WATCHDOG_PID", pid, 1);
        notify_open(&notify);
        notify_close(&notify);
        (void)close(fd);
        (void)unlink(scratch_path("notify"));
        return notify.watchdog_us;
}

START_TEST(test_watchdog_interval_is_used_only_for_this_process)
{
        char own[24];

        (void)snprintf(own, sizeof(own), "%d", (int)getpid());
        ck_assert_int_eq(watchdog_us("30000000", NULL), 30000000);
        ck_assert_int_eq(watchdog_us("30000000", own), 30000000);
        ck_assert_int_eq(watchdog_us("30000000", "1"), 0);
        ck_assert_int_eq(watchdog_us("-1", NULL), 0);
        ck_assert_int_eq(watchdog_us("0", NULL), 0);
}
END_TEST

START_TEST(test_long_message_is_truncated)
{
        int fd = announce_manager();
        struct notify notify;
        char text[1200];

        notify_open(&notify);
        notify_send(&notify, "STATUS=%01500d", 1);
        ck_assert_int_eq(recv(fd, text, sizeof(text), MSG_DONTWAIT), 1023);
        notify_close(&notify);
        (void)close(fd);
}
END_TEST

static void
send_to_closed_socket(void *arg)
{
        for (int i = 0; i < 5; i++)
                notify_send(arg, "WATCHDOG=1");
}

START_TEST(test_missing_manager_is_logged_once)
{
        int fd = announce_manager();
        struct notify notify;
        char *log;

        notify_open(&notify);
        (void)close(fd);
        log = scratch_capture(send_to_closed_socket, &notify);
        ck_assert_ptr_nonnull(strstr(log, "cannot notify"));
        ck_assert_ptr_eq(strchr(log, '\n'), strrchr(log, '\n')); /* one line */
        free(log);
        notify_close(&notify);
}
END_TEST

/* Send until a call has to wait. It must not wait for ever: otherwise the test would time out. */
static void
send_until_full(void *arg)
{
        int64_t before_ms = clock_monotonic_ms();

        while (clock_monotonic_ms() - before_ms < 500) {
                before_ms = clock_monotonic_ms();
                notify_send(arg, "WATCHDOG=1");
        }
}

START_TEST(test_stalled_manager_is_not_waited_for_long)
{
        int fd = announce_manager();
        struct notify notify;
        char *log;

        notify_open(&notify);
        log = scratch_capture(send_until_full, &notify);
        ck_assert_ptr_nonnull(strstr(log, "cannot notify"));
        free(log);
        notify_close(&notify);
        (void)close(fd);
}
END_TEST

Suite *
suite_notify(void)
{
        Suite *suite = suite_create("notify");
        TCase *tcase = tcase_create("notify");

        tcase_add_checked_fixture(tcase, scratch_setup, scratch_teardown);
        tcase_add_test(tcase, test_manager_at_a_path_is_notified);
        tcase_add_test(tcase, test_manager_at_an_abstract_name_is_notified);
        tcase_add_test(tcase, test_nothing_is_sent_without_a_manager);
        tcase_add_test(tcase, test_unsupported_address_is_logged_and_ignored);
        tcase_add_test(tcase, test_notify_variables_are_removed_from_the_environment);
        tcase_add_test(tcase, test_watchdog_interval_is_used_only_for_this_process);
        tcase_add_test(tcase, test_long_message_is_truncated);
        tcase_add_test(tcase, test_missing_manager_is_logged_once);
        tcase_add_test(tcase, test_stalled_manager_is_not_waited_for_long);
        suite_add_tcase(suite, tcase);
        return suite;
}
