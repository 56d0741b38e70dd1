#ifndef CONFIG_ACCESS_CHECK_H
#define CONFIG_ACCESS_CHECK_H

#include "base/account.h"
#include "base/compiler.h"
#include "base/directory.h"
#include "base/error.h"
#include "config/config.h"

/*
 * Checks what the user of the systemd units may access: the directories that the daemon creates and writes,
 * and the files that it reads. Changes nothing.
 */

struct access_check {
        const struct config *config;
        problems_reporter *report;
        struct account account; /* account_service() */
        const char *section;
        const char *option;
        size_t line;         /* of the option */
        const char *content; /* why others must not read it: "holds bodies" */
        directory_owns *owns;
        int has_error;
};

/* Report a problem of an option at a line. */
void access_check_note(struct access_check *check, enum problem_level level, const char *option, size_t line,
                       const char *text);

/*
 * Check whether a directory can be created or written, and who can read it. Return the directory whose file
 * system it is or will be on: itself if it exists, or its parent; NULL if that is not known. The caller
 * frees it.
 */
char *access_check_directory(struct access_check *check, const char *path) MUST_CHECK;

/**
 * access_check_files(config, report):
 * Warn of files that the user may not read, if that is another one than this process's, and if the units read
 * this configuration at all: it is not in /home or /tmp.
 *
 * access_check_state(config, report):
 * Check the state directory of a router. Return 0, or -1 after an error.
 */
void access_check_files(const struct config *config, problems_reporter *report);
int access_check_state(const struct config *config, problems_reporter *report) MUST_CHECK;

#endif
