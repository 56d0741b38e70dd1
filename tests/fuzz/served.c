#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <event2/event.h>

#include "http/request.h"
#include "http/server.h"
#include "transcript.h"

/* The server exists as long as the process. */
static struct event_base *base;
static struct sockaddr_un address;
static socklen_t address_len = sizeof(address);
static struct transcript *handled; /* requests of the current connection */

static void
on_request(struct http_request *request, void *arg)
{
        (void)arg;
        transcript_take(handled, request);
        http_request_forget(request); /* must have no effect on the answer */
        http_reply(request, 200, NULL, 0, "", 0);
}

static void
start(const struct framing_limits *framing_limits)
{
        static const struct http_callbacks callbacks = {.on_request = on_request};
        const struct http_limits limits = {
            .max_header_bytes = framing_limits->max_header_bytes,
            .max_headers = framing_limits->max_headers,
            .max_body = framing_limits->max_body,
            .max_connections = 64,
            .header_timeout_ms = 3600000,
            .request_timeout_ms = 7200000,
            .idle_timeout_ms = 3600000,
            .handling_timeout_ms = 3600000,
        };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        struct http_server *server;

        address.sun_family = AF_UNIX; /* without a name: the kernel assigns an abstract one */
        MUST(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(sa_family_t)) == 0);
        MUST(listen(fd, 16) == 0 && getsockname(fd, (struct sockaddr *)&address, &address_len) == 0);
        base = event_base_new();
        server = base == NULL ? NULL : http_server_new(base, &limits, NULL, &callbacks, NULL);
        MUST(server != NULL && http_server_listen(server, fd) == 0);
}

/* Run the server until it has nothing to do, and discard its answers. */
static void
turn(int fd)
{
        char answer[4096];

        for (int i = 0; i < 3; i++)
                (void)event_base_loop(base, EVLOOP_NONBLOCK);
        while (read(fd, answer, sizeof(answer)) > 0)
                ;
}

void
transcript_of_server(const struct framing_limits *limits, const uint8_t *data, size_t len, size_t step,
                     struct transcript *transcript)
{
        int fd;

        if (base == NULL)
                start(limits);
        memset(transcript, 0, sizeof(*transcript));
        handled = transcript;
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        MUST(fd >= 0 && connect(fd, (struct sockaddr *)&address, address_len) == 0);
        turn(fd);
        for (size_t i = 0; i < len; i += step) {
                if (send(fd, data + i, len - i < step ? len - i : step, MSG_NOSIGNAL) < 0)
                        break; /* the server has closed the connection */
                turn(fd);
        }
        for (size_t n = transcript->n + 1; n != transcript->n;) {
                n = transcript->n; /* each turn handles one more pipelined request */
                turn(fd);
        }
        (void)close(fd);
        turn(-1);
}
