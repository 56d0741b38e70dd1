#ifndef CLI_COMPLETION_H
#define CLI_COMPLETION_H

#include "cli/command.h"

/* gatepost completion bash: prints a program that bash completes the command line by. */
int completion_run(const struct command_context *context, int argc, char **argv);

#endif
