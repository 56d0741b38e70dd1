#ifndef CONFIG_DIRECTORY_CHECK_H
#define CONFIG_DIRECTORY_CHECK_H

#include "base/account.h"
#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"

/*
 * Checks a directory that the daemon creates and writes, for the user of the systemd units. Changes
 * nothing.
 */

struct directory_check {
        const struct config *config;
        problems_reporter *report;
        struct account account; /* account_service() */
        const char *section;
        const char *option;
        size_t line;                   /* of the option */
        const char *content;           /* why others must not read it: "holds bodies" */
        int (*owns)(const char *name); /* whether a file of this name in it is of Gatepost */
        int has_error;
};

/* Report a problem of an option at a line. */
void directory_check_note(struct directory_check *check, enum problem_level level, const char *option,
                          size_t line, const char *text);

/*
 * Check whether a directory can be created or written, and who can read it. Return the directory whose file
 * system it is or will be on: itself if it exists, or its parent; NULL if that is not known. The caller
 * frees it.
 */
char *directory_check(struct directory_check *check, const char *path) MUST_CHECK;

/**
 * directory_check_state(config, report):
 * Check the state directory of a router. Return 0, or -1 after an error.
 */
int directory_check_state(const struct config *config, problems_reporter *report) MUST_CHECK;

#endif
