#include "base/dial.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/process.h"

/* A name that a thread resolves, since getaddrinfo() has no time limit. The last of both frees it. */
struct lookup {
        atomic_int n_holders;
        char *host;
        char *port;
        struct addrinfo *found;
        int result;
};

static void
release_lookup(struct lookup *lookup)
{
        if (atomic_fetch_sub(&lookup->n_holders, 1) > 1)
                return;
        if (lookup->found != NULL)
                freeaddrinfo(lookup->found);
        free(lookup->host);
        free(lookup->port);
        free(lookup);
}

static void *
resolve(void *arg)
{
        const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
        struct lookup *lookup = arg;

        lookup->result = getaddrinfo(lookup->host, lookup->port, &hints, &lookup->found);
        release_lookup(lookup);
        return NULL;
}

int
dial_resolve(const char *host, const char *port, int timeout_ms, struct addrinfo **found, struct error *error)
{
        struct lookup *lookup = mem_alloc(sizeof(*lookup));
        pthread_t thread;
        int result = -1;

        *found = NULL;
        atomic_store(&lookup->n_holders, 2);
        lookup->host = mem_strdup(host);
        lookup->port = mem_strdup(port);
        if (pthread_create(&thread, NULL, resolve, lookup) != 0) {
                release_lookup(lookup);
                (void)error_set(error, "cannot start a thread");
        } else if (process_join_within(thread, (timeout_ms + 999) / 1000) != 0) {
                (void)pthread_detach(thread);
                (void)error_set(error, "the name servers do not answer within %d s", timeout_ms / 1000);
        } else if (lookup->result != 0) {
                (void)error_set(error, "%s", gai_strerror(lookup->result));
        } else {
                *found = lookup->found;
                lookup->found = NULL;
                result = 0;
        }
        release_lookup(lookup);
        return result;
}

/* POSIX allows to free a part of a list. */
void
dial_keep_family(struct addrinfo **list, int family)
{
        while (*list != NULL && family != AF_UNSPEC) {
                struct addrinfo *address = *list;

                if (address->ai_family == family) {
                        list = &address->ai_next;
                        continue;
                }
                *list = address->ai_next;
                address->ai_next = NULL;
                freeaddrinfo(address);
        }
}

const char *
dial_format(const struct addrinfo *address, char text[DIAL_TEXT_SIZE])
{
        char host[64], port[16];

        if (address->ai_family == AF_UNIX)
                (void)snprintf(text, DIAL_TEXT_SIZE, "unix:%.70s",
                               ((const struct sockaddr_un *)(const void *)address->ai_addr)->sun_path);
        else if (getnameinfo(address->ai_addr, address->ai_addrlen, host, sizeof(host), port, sizeof(port),
                             NI_NUMERICHOST | NI_NUMERICSERV) != 0)
                (void)snprintf(text, DIAL_TEXT_SIZE, "?");
        else
                (void)snprintf(text, DIAL_TEXT_SIZE, strchr(host, ':') == NULL ? "%s:%s" : "[%s]:%s", host,
                               port);
        return text;
}

/* Wait until the descriptor is ready, or the time is over. Returns 0, or -1 when it is over. */
static int
wait_for(int fd, short events, int64_t until_ms)
{
        for (;;) {
                int64_t left_ms = until_ms - clock_monotonic_ms();
                struct pollfd poll_fd = {.fd = fd, .events = events};
                int n = left_ms <= 0 ? 0 : poll(&poll_fd, 1, (int)left_ms);

                if (n > 0)
                        return 0;
                if (n == 0 || errno != EINTR)
                        return -1;
        }
}

static int
time_out(int timeout_ms, enum dial_failure *failure, struct error *error)
{
        *failure = DIAL_TIMED_OUT;
        return error_set(error, "no answer within %d s", timeout_ms / 1000);
}

static int
fail(int code, enum dial_failure *failure, struct error *error)
{
        *failure = code == ECONNREFUSED || code == ENOENT ? DIAL_REFUSED
                   : code == EACCES                       ? DIAL_DENIED
                   : code == ECONNRESET || code == EPIPE  ? DIAL_CLOSED
                   : code == ETIMEDOUT                    ? DIAL_TIMED_OUT
                                                          : DIAL_FAILED;
        return error_set(error, "%s", strerror(code));
}

static int
connect_one(struct dial *dial, const struct addrinfo *address, int timeout_ms, enum dial_failure *failure,
            struct error *error)
{
        int code = 0;
        socklen_t len = sizeof(code);

        dial->fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (dial->fd < 0)
                return fail(errno, failure, error);
        if (connect(dial->fd, address->ai_addr, address->ai_addrlen) == 0)
                return 0;
        if (errno != EINPROGRESS)
                return fail(errno, failure, error);
        if (wait_for(dial->fd, POLLOUT, clock_monotonic_ms() + timeout_ms) != 0)
                return time_out(timeout_ms, failure, error);
        if (getsockopt(dial->fd, SOL_SOCKET, SO_ERROR, &code, &len) != 0)
                code = errno;
        return code == 0 ? 0 : fail(code, failure, error);
}

int
dial_connect(struct dial *dial, const struct addrinfo *addresses, int timeout_ms, enum dial_failure *failure,
             struct error *error)
{
        *dial = (struct dial){.fd = -1};
        for (const struct addrinfo *each = addresses; each != NULL; each = each->ai_next) {
                char text[DIAL_TEXT_SIZE];

                if (connect_one(dial, each, timeout_ms, failure, error) == 0)
                        return 0;
                dial_close(dial);
                if (addresses->ai_next != NULL)
                        (void)error_prefix(error, "%s", dial_format(each, text));
        }
        return -1;
}

/*
 * After an operation of OpenSSL that has not succeeded: wait for the socket. Returns 0 to repeat it, or -1
 * with the reason.
 */
static int
after_tls(const struct dial *dial, int result, int64_t until_ms, int timeout_ms, enum dial_failure *failure,
          struct error *error)
{
        int code = SSL_get_error(dial->session, result), system_code = errno;
        long verified = X509_V_OK;

        if (code == SSL_ERROR_WANT_READ || code == SSL_ERROR_WANT_WRITE)
                return wait_for(dial->fd, code == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, until_ms) == 0
                           ? 0
                           : time_out(timeout_ms, failure, error);
        *failure = DIAL_FAILED;
        if (SSL_get_verify_mode(dial->session) & SSL_VERIFY_PEER)
                verified = SSL_get_verify_result(dial->session);
        if (code == SSL_ERROR_SSL && verified != X509_V_OK) {
                ERR_clear_error();
                return error_set(error, "%s", X509_verify_cert_error_string(verified));
        }
        if (code == SSL_ERROR_SSL && ERR_GET_REASON(ERR_peek_error()) != SSL_R_UNEXPECTED_EOF_WHILE_READING)
                return error_set_openssl(error, "TLS");
        ERR_clear_error();
        if (code == SSL_ERROR_SYSCALL && system_code != 0)
                return fail(system_code, failure, error);
        *failure = DIAL_CLOSED;
        return error_set(error, "the other side closes the connection");
}

int
dial_secure(struct dial *dial, SSL_CTX *context, const char *name, int timeout_ms, enum dial_failure *failure,
            struct error *error)
{
        int64_t until_ms = clock_monotonic_ms() + timeout_ms;
        int result;

        dial->session = SSL_new(context);
        if (dial->session == NULL || SSL_set_fd(dial->session, dial->fd) != 1 ||
            (name != NULL && SSL_set_tlsext_host_name(dial->session, name) != 1)) {
                *failure = DIAL_FAILED;
                return error_set_openssl(error, "TLS");
        }
        do {
                ERR_clear_error();
                errno = 0;
                result = SSL_connect(dial->session);
                if (result == 1)
                        return 0;
        } while (after_tls(dial, result, until_ms, timeout_ms, failure, error) == 0);
        return -1;
}

/* Send or receive some bytes of the socket. Returns their number, or -1 to wait or with the reason. */
static ssize_t
transfer(const struct dial *dial, char *bytes, size_t len, int sends)
{
        if (dial->session != NULL) {
                ERR_clear_error();
                return sends ? SSL_write(dial->session, bytes, (int)len)
                             : SSL_read(dial->session, bytes, (int)len);
        }
        return sends ? send(dial->fd, bytes, len, MSG_NOSIGNAL) : recv(dial->fd, bytes, len, 0);
}

static int
transfer_all(struct dial *dial, char *bytes, size_t len, int sends, int timeout_ms,
             enum dial_failure *failure, struct error *error)
{
        int64_t until_ms = clock_monotonic_ms() + timeout_ms;

        while (len > 0) {
                ssize_t n;

                errno = 0;
                n = transfer(dial, bytes, len, sends);
                if (n > 0) {
                        bytes += n;
                        len -= (size_t)n;
                } else if (dial->session != NULL) {
                        if (after_tls(dial, (int)n, until_ms, timeout_ms, failure, error) != 0)
                                return -1;
                } else if (n == 0) {
                        *failure = DIAL_CLOSED;
                        return error_set(error, "the other side closes the connection");
                } else if (errno != EAGAIN && errno != EINTR) {
                        return fail(errno, failure, error);
                } else if (wait_for(dial->fd, sends ? POLLOUT : POLLIN, until_ms) != 0) {
                        return time_out(timeout_ms, failure, error);
                }
        }
        return 0;
}

int
dial_send(struct dial *dial, const void *bytes, size_t len, int timeout_ms, enum dial_failure *failure,
          struct error *error)
{
        return transfer_all(dial, (char *)(uintptr_t)bytes, len, 1, timeout_ms, failure, error);
}

int
dial_receive(struct dial *dial, void *bytes, size_t len, int timeout_ms, enum dial_failure *failure,
             struct error *error)
{
        return transfer_all(dial, bytes, len, 0, timeout_ms, failure, error);
}

void
dial_close(struct dial *dial)
{
        SSL_free(dial->session);
        dial->session = NULL;
        if (dial->fd >= 0)
                (void)close(dial->fd);
        dial->fd = -1;
}
