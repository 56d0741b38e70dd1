#include "http/arrival.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "http/proxy_header.h"

struct arrival {
        struct event *readable;
        arrival_cb *done;
        void *arg;
        size_t len;  /* of data */
        size_t rest; /* bytes after the header's first 16, once these are there */
        uint8_t data[PROXY_HEADER_LEN + PROXY_HEADER_REST_MAX];
};

static void
finish(struct arrival *arrival, const struct address *client, int failed)
{
        arrival_cb *done = arrival->done;
        void *arg = arrival->arg;

        arrival_free(arrival);
        done(client, failed, arg);
}

/* Read up to so many bytes of data. Returns 1 when they are there, 0 when more are to come, -1 at the connection's end. */
static int
read_up_to(struct arrival *arrival, evutil_socket_t fd, size_t len)
{
        ssize_t n;

        if (arrival->len >= len)
                return 1;
        n = recv(fd, arrival->data + arrival->len, len - arrival->len, 0);
        if (n > 0)
                arrival->len += (size_t)n;
        else if (n == 0 || (errno != EAGAIN && errno != EINTR))
                return -1;
        return arrival->len == len;
}

/* Whether it begins as the header does; -1 when that cannot be known yet, or the connection has ended. */
static int
begins_with_header(evutil_socket_t fd)
{
        char first;
        ssize_t n = recv(fd, &first, 1, MSG_PEEK);

        return n == 1 ? first == PROXY_HEADER_FIRST : -1;
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
        struct arrival *arrival = arg;
        struct address client;
        int result;

        (void)what;
        if (arrival->len == 0 && begins_with_header(fd) != 1) {
                finish(arrival, NULL, 0); /* an end, too, is found by whoever reads next */
                return;
        }
        result = read_up_to(arrival, fd, PROXY_HEADER_LEN);
        if (result == 1 && arrival->rest == 0 && proxy_header_rest(arrival->data, &arrival->rest) != 0)
                result = -1;
        if (result == 1)
                result = read_up_to(arrival, fd, PROXY_HEADER_LEN + arrival->rest);
        if (result == 0)
                return;
        if (result == 1)
                result = proxy_header_client(arrival->data, arrival->data + PROXY_HEADER_LEN, arrival->rest,
                                             &client);
        finish(arrival, result == 1 ? &client : NULL, result < 0);
}

struct arrival *
arrival_new(struct event_base *base, evutil_socket_t fd, arrival_cb *done, void *arg)
{
        struct arrival *arrival = calloc(1, sizeof(*arrival));

        if (arrival == NULL)
                return NULL;
        arrival->done = done;
        arrival->arg = arg;
        arrival->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, arrival);
        if (arrival->readable == NULL || event_add(arrival->readable, NULL) != 0) {
                arrival_free(arrival);
                return NULL;
        }
        return arrival;
}

void
arrival_free(struct arrival *arrival)
{
        if (arrival == NULL)
                return;
        if (arrival->readable != NULL)
                event_free(arrival->readable);
        free(arrival);
}
