#ifndef CLI_COMPLETION_H
#define CLI_COMPLETION_H

#include "cli/command.h"

enum completion_shell { COMPLETION_BASH, COMPLETION_ZSH, COMPLETION_FISH };

/*
 * Print the script by which a shell completes commands and options; where there is none, it offers files. The
 * table of the commands begins with the program and ends with NULL.
 */
void completion_print(enum completion_shell shell, const struct command *const *commands);

#endif
