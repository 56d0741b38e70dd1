#include "http/listen_check.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <libgen.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/account.h"
#include "base/mem.h"
#include "base/unit.h"
#include "config/endpoint.h"

#define DEFAULT_UNPRIVILEGED_PORT 1024

enum listen_verdict {
        POSSIBLE,
        POSSIBLE_LATER,   /* when the machine has the address, or something made the directory */
        NOT_FOR_THIS_ONE, /* only for an account with a privilege, or with a socket unit */
        IMPOSSIBLE,
};

static int
least_port(void)
{
        FILE *in = fopen("/proc/sys/net/ipv4/ip_unprivileged_port_start", "re");
        int port = DEFAULT_UNPRIVILEGED_PORT;

        if (in == NULL)
                return port;
        if (fscanf(in, "%d", &port) != 1)
                port = DEFAULT_UNPRIVILEGED_PORT;
        (void)fclose(in);
        return port;
}

/* Return whether an interface of this machine has the address, or it is that of all interfaces. */
static int
is_here(const struct sockaddr *address)
{
        const struct sockaddr_in *in = (const struct sockaddr_in *)address;
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
        struct ifaddrs *interfaces;
        int found = 0;

        if (address->sa_family == AF_INET
                ? in->sin_addr.s_addr == INADDR_ANY || ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
                : IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr))
                return 1;
        if (getifaddrs(&interfaces) != 0)
                return 1;
        for (const struct ifaddrs *each = interfaces; each != NULL && !found; each = each->ifa_next) {
                if (each->ifa_addr == NULL || each->ifa_addr->sa_family != address->sa_family)
                        continue;
                found =
                    address->sa_family == AF_INET
                        ? ((const struct sockaddr_in *)each->ifa_addr)->sin_addr.s_addr == in->sin_addr.s_addr
                        : IN6_ARE_ADDR_EQUAL(&((const struct sockaddr_in6 *)each->ifa_addr)->sin6_addr,
                                             &in6->sin6_addr);
        }
        freeifaddrs(interfaces);
        return found;
}

static enum listen_verdict
check_inet(const struct config_listen *listen, const struct account *account, struct error *error)
{
        const struct sockaddr *address = (const struct sockaddr *)&listen->address;
        int port = ntohs(((const struct sockaddr_in *)address)->sin_port); /* where sin6_port is, too */

        if (port != 0 && port < least_port() && !account->may_bind_any_port) {
                (void)
                    error_set(error,
                              "port %d needs a privilege that gatepostd does not have; let gatepostd.socket "
                              "open it (systemctl edit gatepostd.socket), or use a port from %d on",
                              port, least_port());
                return NOT_FOR_THIS_ONE;
        }
        if (is_here(address))
                return POSSIBLE;
        (void)error_set(error, "no interface of this machine has the address; gatepostd cannot start before");
        return POSSIBLE_LATER;
}

/* Check the directory of a socket. */
static enum listen_verdict
check_directory(const char *directory, const struct account *account, struct error *error)
{
        const char *remedy;
        struct stat st;
        int reason;

        if (stat(directory, &st) != 0) {
                reason = errno;
                if (reason == EACCES && account->user != geteuid())
                        return POSSIBLE; /* this process cannot know */
                remedy = reason == ENOENT ? unit_remedy_without_manager(directory) : "";
                (void)error_set(error, "%s: %s%s", directory, strerror(reason),
                                *remedy == '\0' ? "; it must exist before gatepostd starts" : remedy);
                /* /run is empty after each boot, and services make their directories. */
                return strncmp(directory, "/run/", 5) == 0 && reason == ENOENT ? POSSIBLE_LATER : IMPOSSIBLE;
        }
        if (!S_ISDIR(st.st_mode)) {
                (void)error_set(error, "%s is not a directory", directory);
                return IMPOSSIBLE;
        }
        if (account_access(account, directory, W_OK | X_OK) == 0)
                return POSSIBLE;
        (void)error_set(error,
                        "%s is not writable for gatepostd, which makes the socket there; %s or a socket unit",
                        directory,
                        unit_is_below(directory, SERVICE_DIRECTORY)
                            ? "give it to the user of gatepostd (chown)"
                            : "use " SERVICE_DIRECTORY);
        return NOT_FOR_THIS_ONE;
}

static enum listen_verdict
check_path(const struct config_listen *listen, const struct account *account, struct error *error)
{
        const char *path = endpoint_path(listen);
        char *copy = mem_strdup(path);
        enum listen_verdict verdict = check_directory(dirname(copy), account, error);
        struct stat st;

        free(copy);
        if (verdict != POSSIBLE || lstat(path, &st) != 0 || S_ISSOCK(st.st_mode))
                return verdict;
        (void)error_set(error, "%s exists and is not a socket", path);
        return IMPOSSIBLE;
}

static enum listen_verdict
check(const struct config_listen *listen, const struct account *account, struct error *error)
{
        return listen->address.ss_family == AF_UNIX ? check_path(listen, account, error)
                                                    : check_inet(listen, account, error);
}

/* The units make their directory. */
static int
is_made_by_unit(const struct config_listen *listen)
{
        static const char directory[] = "unix:" SERVICE_DIRECTORY "/";

        return strncmp(listen->text, directory, sizeof(directory) - 1) == 0 &&
               strchr(listen->text + sizeof(directory) - 1, '/') == NULL &&
               access(SERVICE_DIRECTORY, F_OK) != 0 && unit_manager_runs();
}

static int
check_and_report(const struct config *config, const struct config_listen *listen, const char *section,
                 problems_reporter *report)
{
        struct account account = account_service();
        struct error error;
        enum listen_verdict verdict = is_made_by_unit(listen) ? POSSIBLE : check(listen, &account, &error);
        char text[sizeof(error.text) + 128];
        const struct problem problem = {.level = verdict == IMPOSSIBLE ? PROBLEM_ERROR : PROBLEM_WARNING,
                                        .line = listen->line,
                                        .text = text,
                                        .section = section,
                                        .option = "listen"};

        account_clear(&account);
        if (verdict == POSSIBLE)
                return 0;
        (void)snprintf(text, sizeof(text), "listen: %.110s: %s", listen->text, error.text);
        report(config->file, &problem);
        return verdict == IMPOSSIBLE ? -1 : 0;
}

int
listen_check(const struct config *config, problems_reporter *report)
{
        int result = 0;

        for (size_t i = 0; (config->roles & CONFIG_RECEIVER) && i < config->n_listen; i++)
                result |= check_and_report(config, &config->listen[i], "receiver", report);
        if (config->admin != NULL)
                result |= check_and_report(config, config->admin, "admin", report);
        return result;
}

/* Return whether this process lacks the privilege to bind an address; other failures may pass. */
static int
is_denied(const struct config_listen *listen)
{
        const int on = 1;
        int fd = socket(listen->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), denied;

        if (fd < 0)
                return 0;
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        denied =
            bind(fd, (const struct sockaddr *)&listen->address, listen->address_len) != 0 && errno == EACCES;
        (void)close(fd);
        return denied;
}

static int
check_start(const struct config_listen *listen, const char *section, struct error *error)
{
        struct account account = account_this();
        enum listen_verdict verdict;

        if (listen->address.ss_family == AF_UNIX) {
                verdict = check_path(listen, &account, error);
        } else {
                account.may_bind_any_port = !is_denied(listen);
                verdict = check_inet(listen, &account, error);
                if (verdict == POSSIBLE_LATER)
                        verdict = POSSIBLE;
        }
        return verdict == POSSIBLE ? 0 : error_prefix(error, "[%s] listen = %s", section, listen->text);
}

int
listen_check_start(const struct config *config, const struct activation *activation, struct error *error)
{
        for (size_t i = 0;
             (config->roles & CONFIG_RECEIVER) && activation->n_receivers == 0 && i < config->n_listen; i++) {
                if (check_start(&config->listen[i], "receiver", error) != 0)
                        return -1;
        }
        return config->admin == NULL || activation->admin >= 0 ? 0
                                                               : check_start(config->admin, "admin", error);
}
