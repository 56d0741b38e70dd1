#include "http/spare.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int
spare_open(void)
{
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void
spare_close(int spare)
{
        if (spare >= 0)
                (void)close(spare);
}

int
spare_turn_away(int spare, int listener, const char *answer)
{
        int fd;

        if (spare < 0)
                return spare_open();
        (void)close(spare);
        fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
                char sink[4096];

                if (answer != NULL) {
                        (void)send(fd, answer, strlen(answer), MSG_NOSIGNAL);
                        (void)shutdown(fd, SHUT_WR);
                        (void)recv(fd, sink, sizeof(sink), 0); /* unread bytes would make the close a reset */
                }
                (void)close(fd);
        }
        return spare_open();
}
