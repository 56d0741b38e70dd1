#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

#define LINE_SIZE 4096 /* PIPE_BUF: a write to a pipe is whole or not at all */

static int to_journal;
static atomic_int threshold = LOG_LEVEL_INFO;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards stderr and the two below */
static uint64_t n_lost; /* lines that could not be written and are not reported yet */
static int is_cut;      /* the last line was written in part */

void
log_init(void)
{
        const char *stream = getenv("JOURNAL_STREAM");
        unsigned long long device, inode;
        struct stat st;

        /* A log whose reader is gone, or that has reached its size limit, must not kill the process. */
        (void)signal(SIGPIPE, SIG_IGN);
        (void)signal(SIGXFSZ, SIG_IGN);
        to_journal = stream != NULL && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
                     fstat(STDERR_FILENO, &st) == 0 && st.st_dev == (dev_t)device &&
                     st.st_ino == (ino_t)inode;
}

void
log_set_level(enum log_level level)
{
        atomic_store(&threshold, (int)level);
}

static const char *
level_name(enum log_level level)
{
        switch (level) {
        case LOG_LEVEL_ERROR:
                return "error";
        case LOG_LEVEL_WARNING:
                return "warning";
        case LOG_LEVEL_NOTICE:
                return "notice";
        case LOG_LEVEL_INFO:
                return "info";
        case LOG_LEVEL_DEBUG:
                return "debug";
        }
        return "info";
}

int
log_parse_level(const char *name, enum log_level *level)
{
        for (enum log_level each = LOG_LEVEL_ERROR; each <= LOG_LEVEL_DEBUG; each++) {
                if (strcmp(name, level_name(each)) == 0) {
                        *level = each;
                        return 0;
                }
        }
        return -1;
}

/*
 * Write without blocking: a log that nobody reads must not delay a delivery. The mutex allows one write at a
 * time, so a pipe that poll() found writable still is when write() is called. Return 0, or -1 if the text was
 * not written completely.
 */
static int
put(const char *text, size_t len)
{
        struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
        ssize_t written;

        if (poll(&out, 1, 0) != 1)
                return -1;
        do
                written = write(STDERR_FILENO, text, len);
        while (written < 0 && errno == EINTR);
        if (written == (ssize_t)len)
                return 0;
        if (written > 0)
                is_cut = 1;
        return -1;
}

/* Write the beginning of a line. Return its length. */
static int
write_prefix(enum log_level level, char *line)
{
        char when[CLOCK_RFC3339_SIZE];

        if (to_journal)
                return snprintf(line, LINE_SIZE, "<%d>", (int)level);
        return snprintf(line, LINE_SIZE, "%s %s ", clock_format_ms(clock_now_ms(), when), level_name(level));
}

/* Write the number of lost lines, if there are any. Return 0, or -1 if it could not be written. */
static int
report_lost(void)
{
        char line[LINE_SIZE];
        int len;

        if (is_cut && put("\n", 1) != 0)
                return -1;
        is_cut = 0;
        if (n_lost == 0)
                return 0;
        len = write_prefix(LOG_LEVEL_WARNING, line);
        len += snprintf(line + len, sizeof(line) - (size_t)len,
                        "log lines were lost: they could not be written n=%" PRIu64 "\n", n_lost);
        if (put(line, (size_t)len) != 0)
                return -1;
        n_lost = 0;
        return 0;
}

void
log_report_lost(void)
{
        pthread_mutex_lock(&mutex);
        (void)report_lost();
        pthread_mutex_unlock(&mutex);
}

/* Write a line. Replace control characters, so that it is a single line. */
static void
write_line(char *line, size_t prefix, int len)
{
        size_t n = len < 0 ? 0 : (size_t)len;

        if (n > LINE_SIZE - 2)
                n = LINE_SIZE - 2;
        for (size_t i = prefix; i < n; i++) {
                if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
                        line[i] = '?';
        }
        line[n++] = '\n';
        pthread_mutex_lock(&mutex);
        if (report_lost() != 0 || put(line, n) != 0)
                n_lost++;
        pthread_mutex_unlock(&mutex);
}

int
log_is_on(enum log_level level)
{
        return (int)level <= atomic_load_explicit(&threshold, memory_order_relaxed);
}

void
log_line(enum log_level level, const char *format, ...)
{
        char line[LINE_SIZE];
        int prefix;
        va_list args;

        if (!log_is_on(level))
                return;
        prefix = write_prefix(level, line);
        va_start(args, format);
        write_line(line, (size_t)prefix,
                   prefix + vsnprintf(line + prefix, sizeof(line) - (size_t)prefix, format, args));
        va_end(args);
}

/* Return the number of bytes at the start, at most len, that need no escape: most texts are nothing else. */
static size_t
plain_run(const char *bytes, size_t len)
{
        size_t n = 0;

        while (n < len && bytes[n] >= 0x20 && bytes[n] < 0x7f && bytes[n] != '"' && bytes[n] != '\\')
                n++;
        return n;
}

char *
log_quote_bytes(const char *bytes, size_t len, char quoted[LOG_QUOTED_SIZE])
{
        size_t most = LOG_QUOTED_SIZE - 7, run = plain_run(bytes, len < most ? len : most), n = 0;

        quoted[n++] = '"';
        memcpy(quoted + n, bytes, run);
        n += run;
        for (size_t i = run, char_len; i < len && n < LOG_QUOTED_SIZE - 6; i += char_len) {
                char_len = text_printable(bytes + i, len - i);
                if (char_len == 0) {
                        n += (size_t)snprintf(quoted + n, 5, "\\x%02x", (unsigned char)bytes[i]);
                        char_len = 1;
                        continue;
                }
                if (bytes[i] == '"' || bytes[i] == '\\')
                        quoted[n++] = '\\';
                memcpy(quoted + n, bytes + i, char_len);
                n += char_len;
        }
        quoted[n++] = '"';
        quoted[n] = '\0';
        return quoted;
}

char *
log_quote(const char *text, char quoted[LOG_QUOTED_SIZE])
{
        return log_quote_bytes(text, strlen(text), quoted);
}

char *
log_value(const char *bytes, size_t len, char value[LOG_QUOTED_SIZE])
{
        static const char bare[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/[]";
        size_t n = 0;

        while (n < len && bytes[n] != '\0' && strchr(bare, bytes[n]) != NULL)
                n++;
        if (n < len || len >= LOG_QUOTED_SIZE)
                return log_quote_bytes(bytes, len, value);
        if (len > 0)
                memcpy(value, bytes, len);
        else
                value[n++] = '-';
        value[n] = '\0';
        return value;
}
