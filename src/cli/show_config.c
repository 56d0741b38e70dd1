#include "cli/commands.h"

#include <getopt.h>
#include <stdio.h>
#include <sysexits.h>

#include "config/config.h"

int
show_config_run(const struct command_context *context, int argc, char **argv)
{
        static const struct option options[] = {{"json", no_argument, NULL, 'j'},
                                                {"help", no_argument, NULL, 'h'},
                                                {NULL, 0, NULL, 0}};
        int option, json = 0;

        while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
                if (option == 'h')
                        return command_help(context);
                if (option != 'j')
                        return command_misused(context, "wrong option");
                json = 1;
        }
        if (optind != argc)
                return command_misused(context, "takes no arguments");
        return config_print(context->file, json, stdout) == 0 ? 0 : EX_CONFIG;
}
