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
#include "config/listen.h"

#define FIRST_FD 3
#define ACCEPT_MAX_US 1000 /* for accept() on a socket that blocks; the kernel rounds it up to its own tick */

const struct activation activation_none = {.n_receivers = 0, .admin = -1};

/* An integer option of a socket; -1 when it has none. */
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
                return error_set(error, "it is not open");
        if (!S_ISSOCK(st.st_mode))
                return error_set(error,
                                 "it is no socket; the unit has ListenStream= for what is received from");
        if (get_option(fd, SO_TYPE) != SOCK_STREAM)
                return error_set(error, "it is no stream socket; the unit has ListenStream= for these");
        if (get_option(fd, SO_ACCEPTCONN) != 1)
                return error_set(error, "it does not listen; the unit has Accept=no for that");
        family = get_option(fd, SO_DOMAIN);
        if (family != AF_INET && family != AF_INET6 && family != AF_UNIX)
                return error_set(error, "it is neither of IPv4, of IPv6 nor a Unix-domain socket");
        return 0;
}

/*
 * Keep accept() from waiting for a connection that another lane or process has accepted. O_NONBLOCK belongs to the socket
 * and not to this process: systemd clears it when it starts another service on the same socket without NonBlocking=yes.
 * Then the timeout ends accept() with EAGAIN. Accepted TCP sockets inherit it, without effect: they do not block.
 */
static int
set_flags(int fd, struct error *error)
{
        const struct timeval accept_max = {0, ACCEPT_MAX_US};
        int flags = fcntl(fd, F_GETFL);

        if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 ||
            setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &accept_max, sizeof(accept_max)) != 0)
                return error_set(error, "its flags cannot be set");
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
                return error_set(error,
                                 "its name must say what it is for: FileDescriptorName=receiver or =admin");
        if (activation->admin >= 0)
                return error_set(error, "there is an admin socket already");
        activation->admin = fd;
        return 0;
}

/* Cut the first name off; the names are separated by colons. Without names, or with too few, it is "". */
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
                        return error_prefix(error, "socket %d, '%.64s', as the service manager passed it on",
                                            fd, name);
        }
        return 0;
}

/* Returns whether sockets were passed on to this process; those for another are none of its affair. */
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
                return error_set(error, "a socket for receiving was passed on, but `roles` has no receiver");
        if (activation->admin < 0)
                return 0;
        if (getsockname(activation->admin, (struct sockaddr *)&admin.address, &admin.address_len) != 0 ||
            (!config->admin_allows_remote && !listen_is_private(&admin)))
                return error_set(
                    error, "the admin socket that was passed on can be reached from other machines; its "
                           "unit has a loopback address or a path in ListenStream=, or [admin] says "
                           "allow_remote = on");
        return 0;
}
