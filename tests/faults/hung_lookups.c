/*
 * A library to preload into a Kafka client. While the file named by HUNG_LOOKUPS_FILE exists, name lookups do
 * not return, and every connection that appends records is reset, so that names are looked up again.
 */
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define STEP_US 20000
#define API_PRODUCE 0

static int
is_hung(void)
{
        const char *path = getenv("HUNG_LOOKUPS_FILE");

        return path != NULL && access(path, F_OK) == 0;
}

int
getaddrinfo(const char *restrict name, const char *restrict service, const struct addrinfo *restrict hints,
            struct addrinfo **restrict result)
{
        __typeof__(&getaddrinfo) real = (__typeof__(&getaddrinfo))dlsym(RTLD_NEXT, "getaddrinfo");

        if (!is_hung())
                return real(name, service, hints, result);
        while (is_hung())
                (void)usleep(STEP_US);
        return EAI_AGAIN;
}

/* The beginning of a Kafka request: size (4 bytes), API key (2), version (2). */
static int
is_append(const struct msghdr *message)
{
        const unsigned char *request = message->msg_iovlen == 0 ? NULL : message->msg_iov[0].iov_base;

        return request != NULL && message->msg_iov[0].iov_len >= 8 && request[4] == 0 &&
               request[5] == API_PRODUCE && request[6] == 0 && request[7] < 16;
}

ssize_t
sendmsg(int fd, const struct msghdr *message, int flags)
{
        __typeof__(&sendmsg) real = (__typeof__(&sendmsg))dlsym(RTLD_NEXT, "sendmsg");

        if (!is_hung() || !is_append(message))
                return real(fd, message, flags);
        (void)shutdown(fd, SHUT_RDWR);
        errno = ECONNRESET;
        return -1;
}
