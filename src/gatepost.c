#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <sysexits.h>

#include "base/process.h"
#include "cli/command.h"

static void
help(void)
{
        printf("usage: gatepost [-c FILE] COMMAND ...\n"
               "The command line of the webhook gateway.\n\n"
               "%s\ncommands:\n",
               command_main_options);
        command_list();
}

/* Fail if the output was not written, because the disk is full or the pipe closed. */
static int
finish(int status)
{
        if (fflush(stdout) != 0 || ferror(stdout)) {
                fprintf(stderr, "gatepost: the output could not be written\n");
                return EX_IOERR;
        }
        return status;
}

int
main(int argc, char **argv)
{
        static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                                {"help", no_argument, NULL, 'h'},
                                                {"version", no_argument, NULL, 'V'},
                                                {NULL, 0, NULL, 0}};
        const char *file = COMMAND_DEFAULT_FILE;
        int option;

        process_open_standard_files();
        (void)signal(SIGXFSZ, SIG_IGN); /* a write beyond the size limit fails instead */
        while ((option = getopt_long(argc, argv, "+c:hV", options, NULL)) != -1) {
                switch (option) {
                case 'c':
                        file = optarg;
                        break;
                case 'h':
                        help();
                        return finish(0);
                case 'V':
                        printf("gatepost %s\n", PACKAGE_VERSION);
                        return finish(0);
                default:
                        fprintf(stderr, "see gatepost --help\n");
                        return EX_USAGE;
                }
        }
        if (optind == argc) {
                fprintf(stderr, "gatepost: missing command; see gatepost --help\n");
                return EX_USAGE;
        }
        return finish(command_run(file, argc - optind, argv + optind));
}
