#include "daemon/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log_flood.h"
#include "base/number.h"

#define MESSAGE_SIZE 1024
#define SEND_TIMEOUT_S 1

/* Read a path, or an abstract name that begins with @. Return 0 or -1. */
static int
read_address(struct notify *notify, const char *text)
{
        size_t len = strlen(text);

        if ((text[0] != '/' && text[0] != '@') || len < 2 || len >= sizeof(notify->address.sun_path))
                return -1;
        notify->address.sun_family = AF_UNIX;
        memcpy(notify->address.sun_path, text, len);
        notify->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
        if (text[0] == '@')
                notify->address.sun_path[0] = '\0';
        else
                notify->len++;
        return 0;
}

static void
read_watchdog(struct notify *notify)
{
        const char *us = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
        uint64_t value;
        struct error error;

        if (us == NULL)
                return;
        if (pid != NULL &&
            (number_parse(pid, 1, INT32_MAX, &value, &error) != 0 || value != (uint64_t)getpid()))
                return; /* for another process */
        if (number_parse(us, 1, INT64_MAX, &value, &error) == 0)
                notify->watchdog_us = (int64_t)value;
        else
                log_warning("WATCHDOG_USEC is not a number of microseconds; ignoring it");
}

void
notify_open(struct notify *notify)
{
        const struct timeval timeout = {SEND_TIMEOUT_S, 0};
        const char *path = getenv("NOTIFY_SOCKET");
        char quoted[LOG_QUOTED_SIZE];

        *notify = (struct notify){.fd = -1};
        if (path != NULL && read_address(notify, path) != 0) {
                log_warning("NOTIFY_SOCKET is neither a path nor an abstract name; ignoring it value=%s",
                            log_quote(path, quoted));
        } else if (path != NULL) {
                notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
                if (notify->fd < 0)
                        log_warning("cannot create a socket to notify the service manager reason=\"%s\"",
                                    strerror(errno));
        }
        if (notify->fd >= 0) {
                (void)setsockopt(notify->fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
                read_watchdog(notify);
        }
        (void)unsetenv("NOTIFY_SOCKET");
        (void)unsetenv("WATCHDOG_USEC");
        (void)unsetenv("WATCHDOG_PID");
}

static void
log_failure(int reason)
{
        static struct log_flood flood;

        log_flood(&flood, LOG_LEVEL_WARNING, "cannot notify the service manager reason=\"%s\"",
                  strerror(reason));
}

void
notify_send(struct notify *notify, const char *format, ...)
{
        char message[MESSAGE_SIZE];
        ssize_t sent;
        va_list args;

        if (notify->fd < 0)
                return;
        va_start(args, format);
        (void)vsnprintf(message, sizeof(message), format, args);
        va_end(args);
        do {
                sent = sendto(notify->fd, message, strlen(message), MSG_NOSIGNAL,
                              (const struct sockaddr *)&notify->address, notify->len);
        } while (sent < 0 && errno == EINTR);
        if (sent < 0)
                log_failure(errno);
}

void
notify_close(struct notify *notify)
{
        if (notify->fd >= 0)
                (void)close(notify->fd);
        notify->fd = -1;
}
