#include "http/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 1024
#define UNIX_MODE 0660

/*
 * Returns 1 when a process listens on the path. A stopped process has a full backlog: connect() must not
 * block.
 */
static int
is_alive(const struct sockaddr *address, socklen_t len)
{
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        int alive = fd < 0 || connect(fd, address, len) == 0 || errno != ECONNREFUSED;

        if (fd >= 0)
                (void)close(fd);
        return alive;
}

/* Remove the socket file of a process that has ended. */
static int
make_way(const struct sockaddr *address, socklen_t len, struct error *error)
{
        const char *path = ((const struct sockaddr_un *)address)->sun_path;
        struct stat st;

        if (lstat(path, &st) != 0)
                return 0; /* bind() reports other errors */
        if (!S_ISSOCK(st.st_mode))
                return error_set(error, "%s is there and is no socket", path);
        if (is_alive(address, len))
                return error_set(error, "another process listens on %s; ss -lxp, as root, shows which", path);
        return unlink(path) == 0 ? 0 : error_set(error, "%s cannot be replaced: %s", path, strerror(errno));
}

static int
bind_and_listen(int fd, const struct sockaddr *address, socklen_t len, struct error *error)
{
        const int on = 1;

        if (address->sa_family == AF_INET6)
                (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
        if (address->sa_family != AF_UNIX)
                (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        else if (make_way(address, len, error) != 0)
                return -1;
        if (bind(fd, address, len) != 0)
                return error_set(
                    error, "cannot bind: %s%s", strerror(errno),
                    errno == EADDRINUSE
                        ? "; ss -ltnp, as root, shows which program has it; systemd has those of socket units"
                        : "");
        if (address->sa_family == AF_UNIX &&
            chmod(((const struct sockaddr_un *)address)->sun_path, UNIX_MODE) != 0)
                return error_set(error, "cannot set the socket's mode: %s", strerror(errno));
        return listen(fd, BACKLOG) == 0 ? 0 : error_set(error, "cannot listen: %s", strerror(errno));
}

int
listener_open(const struct sockaddr *address, socklen_t len, struct error *error)
{
        int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

        if (fd < 0)
                return error_set(error, "cannot make a socket: %s", strerror(errno));
        if (bind_and_listen(fd, address, len, error) != 0) {
                (void)close(fd);
                return -1;
        }
        return fd;
}

void
listener_close(int fd)
{
        struct sockaddr_un address;
        socklen_t len = sizeof(address);
        struct error ignored;
        int has_file;

        if (fd < 0)
                return;
        has_file = getsockname(fd, (struct sockaddr *)&address, &len) == 0 && address.sun_family == AF_UNIX &&
                   address.sun_path[0] != '\0';
        (void)close(fd);
        /* Another process may have replaced the file and listen there. */
        if (has_file)
                (void)make_way((const struct sockaddr *)&address, len, &ignored);
}

int
listener_is_shut_down(int fd)
{
        struct pollfd listener = {.fd = fd, .events = POLLRDHUP};

        return poll(&listener, 1, 0) > 0 && (listener.revents & (POLLHUP | POLLRDHUP));
}

char *
listener_name(int fd, char *name, size_t size)
{
        union {
                struct sockaddr any;
                struct sockaddr_in in;
                struct sockaddr_in6 in6;
                struct sockaddr_un un;
        } address;
        socklen_t len = sizeof(address);
        char text[INET6_ADDRSTRLEN] = "?";

        memset(&address, 0, sizeof(address));
        (void)getsockname(fd, &address.any, &len);
        if (address.any.sa_family == AF_UNIX) {
                (void)snprintf(name, size, "unix:%s", address.un.sun_path);
        } else if (address.any.sa_family == AF_INET6) {
                (void)inet_ntop(AF_INET6, &address.in6.sin6_addr, text, sizeof(text));
                (void)snprintf(name, size, "[%s]:%d", text, ntohs(address.in6.sin6_port));
        } else {
                (void)inet_ntop(AF_INET, &address.in.sin_addr, text, sizeof(text));
                (void)snprintf(name, size, "%s:%d", text, ntohs(address.in.sin_port));
        }
        return name;
}
