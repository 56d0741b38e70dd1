#include "base/standard_files.h"

#include <fcntl.h>
#include <unistd.h>

void
standard_files_hold(void)
{
        /* The wrong way round, so that using them fails; what is lost on standard error could not be told anyway. */
        static const int modes[] = {
            [STDIN_FILENO] = O_WRONLY, [STDOUT_FILENO] = O_RDONLY, [STDERR_FILENO] = O_WRONLY};

        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
                if (fcntl(fd, F_GETFD) < 0)
                        (void)open("/dev/null", modes[fd]); /* the lowest that is free: this one */
        }
}
