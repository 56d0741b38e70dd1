#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

static void
fail(const char *what, const char *reason)
{
        fprintf(stderr, "load: %s: %s\n", what, reason);
        exit(EX_UNAVAILABLE);
}

static void
watch(const struct client *client, int epoll, int operation, uint32_t events)
{
        struct epoll_event event = {.events = events, .data.ptr = (void *)(uintptr_t)client};

        if (epoll_ctl(epoll, operation, client->fd, &event) != 0)
                fail("epoll", strerror(errno));
}

static void
shake_hands(struct client *client)
{
        client->ssl = SSL_new(client->tls);
        if (client->ssl == NULL || SSL_set_fd(client->ssl, client->fd) != 1 || SSL_connect(client->ssl) != 1)
                fail("handshake", "the server does not speak TLS");
}

void
client_open(struct client *client, int epoll)
{
        const int on = 1;

        client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (client->fd < 0)
                fail("socket", strerror(errno));
        if (connect(client->fd, (const struct sockaddr *)&client->address, sizeof(client->address)) != 0)
                fail("connect", strerror(errno));
        (void)setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        if (client->tls != NULL)
                shake_hands(client);
        (void)fcntl(client->fd, F_SETFL, O_NONBLOCK);
        client->is_sending = 0;
        client->n_read = 0;
        watch(client, epoll, EPOLL_CTL_ADD, EPOLLIN);
}

void
client_close(struct client *client)
{
        SSL_free(client->ssl);
        client->ssl = NULL;
        (void)close(client->fd);
}

/* Like write(), over TLS or without: return the bytes written, or -1 when it would block or has failed. */
static ssize_t
write_some(struct client *client, const char *bytes, size_t len)
{
        int n;

        if (client->ssl == NULL)
                return send(client->fd, bytes, len, MSG_NOSIGNAL);
        n = SSL_write(client->ssl, bytes, len > 1 << 20 ? 1 << 20 : (int)len);
        if (n > 0)
                return n;
        n = SSL_get_error(client->ssl, n);
        errno = n == SSL_ERROR_WANT_WRITE || n == SSL_ERROR_WANT_READ ? EAGAIN : ECONNRESET;
        return -1;
}

/* Like read(), over TLS or without. */
static ssize_t
read_some(struct client *client)
{
        char *to = client->answer + client->n_read;
        size_t space = sizeof(client->answer) - 1 - client->n_read;
        int n;

        if (client->ssl == NULL)
                return recv(client->fd, to, space, 0);
        n = SSL_read(client->ssl, to, (int)space);
        if (n > 0)
                return n;
        n = SSL_get_error(client->ssl, n);
        if (n == SSL_ERROR_ZERO_RETURN)
                return 0;
        errno = n == SSL_ERROR_WANT_READ || n == SSL_ERROR_WANT_WRITE ? EAGAIN : ECONNRESET;
        return -1;
}

static void
continue_sending(struct client *client, int epoll)
{
        while (client->n_written < client->request_len) {
                ssize_t n = write_some(client, client->request + client->n_written,
                                       client->request_len - client->n_written);

                if (n < 0) {
                        if (errno == EAGAIN && !client->is_sending)
                                watch(client, epoll, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
                        client->is_sending = errno == EAGAIN; /* other errors recur on the next read */
                        return;
                }
                client->n_written += (size_t)n;
        }
        if (client->is_sending)
                watch(client, epoll, EPOLL_CTL_MOD, EPOLLIN);
        client->is_sending = 0;
}

void
client_send(struct client *client, int epoll)
{
        client->n_written = 0;
        client->n_read = 0;
        continue_sending(client, epoll);
}

/* Return the status if the answer is complete, else 0. */
static int
status_of(struct client *client)
{
        const char *end, *length;
        size_t body_len;

        client->answer[client->n_read] = '\0';
        end = strstr(client->answer, "\r\n\r\n");
        if (end == NULL)
                return 0;
        length = strcasestr(client->answer, "\r\ncontent-length:");
        if (strncmp(client->answer, "HTTP/1.", 7) != 0 || length == NULL || length > end)
                fail("an answer without Content-Length", client->answer);
        body_len = strtoul(length + strlen("\r\ncontent-length:"), NULL, 10);
        if (client->n_read < (size_t)(end - client->answer) + 4 + body_len)
                return 0;
        return atoi(client->answer + strlen("HTTP/1.1 "));
}

static int
reopen(struct client *client, int epoll)
{
        client_close(client);
        client_open(client, epoll);
        return -1;
}

int
client_handle(struct client *client, int epoll, uint32_t events)
{
        ssize_t n;
        int status;

        if (events & EPOLLOUT)
                continue_sending(client, epoll);
        if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
                return 0;
        n = read_some(client);
        if (n == 0 || (n < 0 && errno != EAGAIN))
                return reopen(client, epoll);
        if (n < 0)
                return 0;
        client->n_read += (size_t)n;
        status = status_of(client);
        if (status == 0 && client->n_read == sizeof(client->answer) - 1)
                fail("an answer that is too long", client->answer);
        return status;
}
