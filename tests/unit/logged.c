#include "logged.h"

#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"

int logged[2];
static int saved;

void
logged_setup(void)
{
        ck_assert_int_eq(pipe2(logged, O_NONBLOCK), 0);
        saved = dup(STDERR_FILENO);
        ck_assert_int_ge(dup2(logged[1], STDERR_FILENO), 0);
        (void)unsetenv("JOURNAL_STREAM");
        log_init();
        log_set_level(LOG_LEVEL_INFO);
}

void
logged_teardown(void)
{
        (void)dup2(saved, STDERR_FILENO);
        (void)close(saved);
        (void)close(logged[0]);
        (void)close(logged[1]);
        log_init();
}

const char *
logged_read(void)
{
        static char text[1 << 17];
        size_t len = 0;
        ssize_t n;

        while ((n = read(logged[0], text + len, sizeof(text) - 1 - len)) > 0)
                len += (size_t)n;
        text[len] = '\0';
        return text;
}
