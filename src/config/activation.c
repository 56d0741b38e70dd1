#include "config/activation.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/number.h"
#include "config/endpoint.h"

#define FIRST_FD 3
#define ACCEPT_MAX_US 1000 /* timeout of accept() on a blocking socket */

const struct activation activation_none = {.n_receivers = 0, .admin = -1};

/* Return an integer option of a socket, or -1. */
static int
get_option(int fd, int option)
{
        int value;
        socklen_t len = sizeof(value);

        return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 ? value : -1;
}

static int
check_socket(int fd, struct error *error)
{
        struct stat st;
        int family;

        if (fstat(fd, &st) != 0)
                return error_set(error, "not open");
        if (!S_ISSOCK(st.st_mode))
                return error_set(error, "not a socket");
        if (get_option(fd, SO_TYPE) != SOCK_STREAM)
                return error_set(error, "not a stream socket (ListenStream= in the socket unit)");
        if (get_option(fd, SO_ACCEPTCONN) != 1)
                return error_set(error, "not listening (Accept=no in the socket unit)");
        family = get_option(fd, SO_DOMAIN);
        if (family != AF_INET && family != AF_INET6 && family != AF_UNIX)
                return error_set(error, "neither an IPv4, an IPv6 nor a Unix-domain socket");
        return 0;
}

/*
 * Keep accept() from blocking when another lane or process has accepted the connection. O_NONBLOCK belongs to
 * the socket, not to this process: systemd clears it when it starts another service on the same socket
 * without NonBlocking=yes. Then the timeout ends accept() with EAGAIN. Accepted TCP sockets inherit it,
 * without effect: they do not block.
 */
static int
set_flags(int fd, struct error *error)
{
        const struct timeval accept_max = {0, ACCEPT_MAX_US};
        int flags = fcntl(fd, F_GETFL);

        if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 ||
            setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &accept_max, sizeof(accept_max)) != 0)
                return error_set(error, "cannot set its flags");
        return 0;
}

static int
take_socket(struct activation *activation, int fd, const char *name, struct error *error)
{
        if (check_socket(fd, error) != 0 || set_flags(fd, error) != 0)
                return -1;
        if (name[0] == '\0' || strcmp(name, "unknown") == 0 || strcmp(name, "receiver") == 0) {
                activation->receivers[activation->n_receivers++] = fd;
                return 0;
        }
        if (strcmp(name, "admin") != 0)
                return error_set(error, "its FileDescriptorName= is neither receiver nor admin");
        if (activation->admin >= 0)
                return error_set(error, "a second admin socket");
        activation->admin = fd;
        return 0;
}

/* Return the next of the names, which colons separate; "" when there are no more. */
static const char *
next_name(char **names)
{
        const char *name = strsep(names, ":");

        return name == NULL ? "" : name;
}

static int
take_sockets(struct activation *activation, uint64_t n, char *names, struct error *error)
{
        for (uint64_t i = 0; i < n; i++) {
                const char *name = next_name(&names);
                int fd = FIRST_FD + (int)i;

                if (take_socket(activation, fd, name, error) != 0)
                        return error_prefix(error, "socket %d, '%.64s', passed by the service manager", fd,
                                            name);
        }
        return 0;
}

/* Return whether the sockets were passed to this process. */
static int
is_meant(const char *fds, const char *pid)
{
        uint64_t value;
        struct error error;

        return fds != NULL && pid != NULL && number_parse(pid, 1, INT32_MAX, &value, &error) == 0 &&
               value == (uint64_t)getpid();
}

int
activation_take(struct activation *activation, struct error *error)
{
        const char *fds = getenv("LISTEN_FDS"), *names = getenv("LISTEN_FDNAMES");
        char *own = names == NULL ? NULL : strdup(names);
        uint64_t n;
        int result = 0;

        *activation = activation_none;
        if (is_meant(fds, getenv("LISTEN_PID"))) {
                if (number_parse(fds, 0, ACTIVATION_MAX, &n, error) != 0)
                        result = error_prefix(error, "LISTEN_FDS");
                else
                        result = take_sockets(activation, n, own, error);
        }
        free(own);
        (void)unsetenv("LISTEN_FDS");
        (void)unsetenv("LISTEN_PID");
        (void)unsetenv("LISTEN_FDNAMES");
        return result;
}

int
activation_fits(const struct activation *activation, const struct config *config, struct error *error)
{
        struct config_listen admin = {.address_len = sizeof(admin.address)};

        if (activation->n_receivers > 0 && !(config->roles & CONFIG_RECEIVER))
                return error_set(error,
                                 "the service manager passed a receiver socket, but `roles` has no receiver");
        if (activation->admin < 0)
                return 0;
        if (getsockname(activation->admin, (struct sockaddr *)&admin.address, &admin.address_len) != 0 ||
            (!config->admin_allows_remote && !endpoint_is_private(&admin)))
                return error_set(error, "the admin socket passed by the service manager can be reached from "
                                        "other machines, which "
                                        "takes allow_remote = on in [admin]");
        return 0;
}
