#ifndef CLI_COMPLETION_H
#define CLI_COMPLETION_H

#include "cli/command.h"

/* Print the script by which bash completes the command line. It asks completion_offer() by a command. */
void completion_print(void);

/*
 * Print what the last of the words after `gatepost` may be, one per line: options if it begins with a hyphen,
 * otherwise commands. The table of the commands begins with the program and ends with NULL.
 */
void completion_offer(const struct command *const *commands, char **words);

#endif
