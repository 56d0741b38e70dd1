#include <signal.h>
#include <stdio.h>
#include <sysexits.h>

#include "base/process.h"
#include "cli/commands.h"

int
main(int argc, char **argv)
{
        int status;

        (void)argc;
        process_open_standard_files();
        (void)signal(SIGXFSZ, SIG_IGN); /* a write beyond the size limit fails instead */
        status = commands_run(argv);
        /* The disk may be full, or the pipe closed. */
        if (fflush(stdout) != 0 || ferror(stdout)) {
                fprintf(stderr, "gatepost: the output could not be written\n");
                return EX_IOERR;
        }
        return status;
}
