#ifndef CLI_COMPLETION_H
#define CLI_COMPLETION_H

#include "cli/command.h"

/*
 * Print the script by which bash, zsh or fish completes commands and options; where there is none, it offers
 * files. The script asks completion_offer(). Returns 0, or -1 for another shell.
 */
int completion_print(const char *shell);

/*
 * Print what the last of the words after `gatepost` may be, one per line: options if it begins with a hyphen,
 * otherwise commands. The table of the commands begins with the program and ends with NULL.
 */
void completion_offer(const struct command *const *commands, char **words);

#endif
