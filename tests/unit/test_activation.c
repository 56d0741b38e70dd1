#include <check.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/activation.h"
#include "suites.h"

#define REPORT_FD 90 /* beyond the descriptors that are passed */

enum passed { LISTENING, CONNECTED, DATAGRAM, A_FILE, NOT_OPEN };

static void
pass_on(enum passed what, int at)
{
        int fd = what == A_FILE ? open("/dev/null", O_RDONLY)
                                : socket(AF_INET, what == DATAGRAM ? SOCK_DGRAM : SOCK_STREAM, 0);

        if (what == LISTENING)
                (void)listen(fd, 1);
        (void)dup2(fd, at);
        (void)close(fd == at ? -1 : fd);
        if (what == NOT_OPEN)
                (void)close(at);
}

/* In the process that sockets were passed to: describe them as text. */
static void
report(FILE *out)
{
        struct activation activation;
        struct error error;

        if (activation_take(&activation, &error) != 0) {
                fprintf(out, "error: %s", error.text);
                return;
        }
        fputs("receivers", out);
        for (size_t i = 0; i < activation.n_receivers; i++)
                fprintf(out, " %d", activation.receivers[i]);
        fprintf(out, "; admin %d;", activation.admin);
        for (size_t i = 0; i < activation.n_receivers; i++)
                fprintf(out, " %s%s", fcntl(activation.receivers[i], F_GETFD) & FD_CLOEXEC ? "c" : "-",
                        fcntl(activation.receivers[i], F_GETFL) & O_NONBLOCK ? "n" : "-");
        if (getenv("LISTEN_FDS") != NULL || getenv("LISTEN_PID") != NULL || getenv("LISTEN_FDNAMES") != NULL)
                fputs(" still in the environment", out);
}

static void
be_the_daemon(const enum passed *passed, int n, const char *names, int pid_offset)
{
        char text[16];

        for (int i = 0; i < n; i++)
                pass_on(passed[i], 3 + i);
        (void)snprintf(text, sizeof(text), "%d", n);
        (void)setenv("LISTEN_FDS", text, 1);
        (void)snprintf(text, sizeof(text), "%d", (int)getpid() + pid_offset);
        (void)setenv("LISTEN_PID", text, 1);
        if (names != NULL)
                (void)setenv("LISTEN_FDNAMES", names, 1);
}

/* Return the description of descriptors with these names by a process that they are passed to. */
static void
expect(const char *expected, const enum passed *passed, int n, const char *names, int pid_offset)
{
        char text[600];
        int ends[2], status;
        ssize_t len;

        ck_assert_int_eq(pipe(ends), 0);
        if (fork() == 0) {
                FILE *out;

                (void)dup2(ends[1], REPORT_FD);
                out = fdopen(REPORT_FD, "w");
                be_the_daemon(passed, n, names, pid_offset);
                report(out);
                (void)fflush(out);
                _exit(0);
        }
        (void)close(ends[1]);
        (void)wait(&status);
        len = read(ends[0], text, sizeof(text) - 1);
        (void)close(ends[0]);
        ck_assert_int_ge(len, 0);
        text[len] = '\0';
        ck_assert_msg(expected[0] == '~' ? strstr(text, expected + 1) != NULL : strcmp(text, expected) == 0,
                      "expected: %s\nis:       %s", expected, text);
}

static const enum passed three[] = {LISTENING, LISTENING, LISTENING};

START_TEST(test_sockets_are_selected_by_name)
{
        expect("receivers 3 5; admin 4; cn cn", three, 3, "receiver:admin:receiver", 0);
        expect("receivers; admin 3;", three, 1, "admin", 0);
}
END_TEST

START_TEST(test_unnamed_sockets_are_for_the_receiver)
{
        expect("receivers 3 4 5; admin -1; cn cn cn", three, 3, NULL, 0);
        expect("receivers 3 4 5; admin -1; cn cn cn", three, 3, "unknown:receiver", 0);
}
END_TEST

START_TEST(test_sockets_for_another_process_are_ignored)
{
        expect("receivers; admin -1;", three, 3, NULL, 1);
}
END_TEST

START_TEST(test_no_passed_sockets_is_valid)
{
        expect("receivers; admin -1;", three, 0, "", 0);
}
END_TEST

START_TEST(test_invalid_descriptors_are_named)
{
        static const enum passed second_wrong[][2] = {{LISTENING, CONNECTED},
                                                      {LISTENING, DATAGRAM},
                                                      {LISTENING, A_FILE},
                                                      {LISTENING, NOT_OPEN}};

        expect("~socket 4, 'receiver', passed by the service manager: not listening", second_wrong[0], 2,
               "receiver:receiver", 0);
        expect("~not a stream socket", second_wrong[1], 2, "receiver:receiver", 0);
        expect("~not a socket", second_wrong[2], 2, "receiver:receiver", 0);
        expect("~not open", second_wrong[3], 2, "receiver:receiver", 0);
        expect("~socket 3, 'gatepostd.socket', passed by the service manager: its FileDescriptorName=", three,
               1, "gatepostd.socket", 0);
        expect("~socket 5, 'admin', passed by the service manager: a second admin socket", three, 3,
               "admin:receiver:admin", 0);
}
END_TEST

Suite *
suite_activation(void)
{
        Suite *suite = suite_create("activation");
        TCase *tcase = tcase_create("activation");

        tcase_add_test(tcase, test_sockets_are_selected_by_name);
        tcase_add_test(tcase, test_unnamed_sockets_are_for_the_receiver);
        tcase_add_test(tcase, test_sockets_for_another_process_are_ignored);
        tcase_add_test(tcase, test_no_passed_sockets_is_valid);
        tcase_add_test(tcase, test_invalid_descriptors_are_named);
        suite_add_tcase(suite, tcase);
        return suite;
}
