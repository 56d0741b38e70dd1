#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

#define LINE_SIZE 2048

static int to_journal;
static atomic_int threshold = LOG_LEVEL_INFO;

void
log_init(void)
{
        const char *stream = getenv("JOURNAL_STREAM");
        unsigned long long device, inode;
        struct stat st;

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

/* One write a line, so that lines of several threads do not mix. A log that cannot be written is nobody's to mend. */
static void
write_line(char *line, int len)
{
        size_t n = len < 0 ? 0 : (size_t)len;
        ssize_t written;

        if (n > LINE_SIZE - 2)
                n = LINE_SIZE - 2;
        line[n++] = '\n';
        written = write(STDERR_FILENO, line, n);
        (void)written;
}

void
log_line(enum log_level level, const char *format, ...)
{
        char line[LINE_SIZE], when[CLOCK_RFC3339_SIZE];
        va_list args;
        int prefix, len;

        if ((int)level > atomic_load(&threshold))
                return;
        if (to_journal)
                prefix = snprintf(line, sizeof(line), "<%d>", (int)level);
        else
                prefix = snprintf(line, sizeof(line), "%s %s ", clock_format_ms(clock_now_ms(), when),
                                  level_name(level));
        va_start(args, format);
        len = vsnprintf(line + prefix, sizeof(line) - (size_t)prefix, format, args);
        va_end(args);
        write_line(line, prefix + len);
}

char *
log_quote(const char *text, char quoted[LOG_QUOTED_SIZE])
{
        size_t n = 0;

        quoted[n++] = '"';
        for (; *text != '\0' && n < LOG_QUOTED_SIZE - 6; text++) {
                unsigned char c = (unsigned char)*text;

                if (c == '"' || c == '\\') {
                        quoted[n++] = '\\';
                        quoted[n++] = (char)c;
                } else if (c < 0x20 || c == 0x7f) {
                        n += (size_t)snprintf(quoted + n, 5, "\\x%02x", c);
                } else {
                        quoted[n++] = (char)c;
                }
        }
        quoted[n++] = '"';
        quoted[n] = '\0';
        return quoted;
}

int
log_flood_pass(struct log_flood *flood, uint64_t *n)
{
        int64_t now = clock_monotonic_ms();
        int pass;

        pthread_mutex_lock(&flood->mutex);
        flood->n_held_back++;
        pass = flood->last_ms == 0 || now - flood->last_ms >= 1000;
        if (pass) {
                *n = flood->n_held_back;
                flood->n_held_back = 0;
                flood->last_ms = now;
        }
        pthread_mutex_unlock(&flood->mutex);
        return pass;
}
