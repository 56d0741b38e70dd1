#ifndef TESTS_SCRATCH_H
#define TESTS_SCRATCH_H

#include <stddef.h>
#include <sys/types.h>

#include "config/config.h"

/* A temporary directory for each test: use both as a checked fixture. */
void scratch_setup(void);
void scratch_teardown(void);

/* Create or replace a file in it with this content and mode. The path is valid until the test ends. */
const char *scratch_file(const char *name, const void *content, size_t len, mode_t mode);

/* The path of a file in it, which need not exist. */
const char *scratch_path(const char *name);

/*
 * List the files of a directory whose names end so, at most max of them, by their paths. Return their
 * number; the caller frees the paths.
 */
size_t scratch_list(const char *path, const char *suffix, char **paths, size_t max);

/* The result of loading a configuration. */
struct loaded {
        struct config *config; /* NULL: it was refused */
        char *messages; /* text written to stderr, without the path before each line number: `7: message` */
};

/* Load a text with config_load(), from a file of mode 0600 or of another. */
struct loaded scratch_load(const char *text);
struct loaded scratch_load_mode(const char *text, mode_t mode);
void scratch_release(struct loaded *loaded);

/* A minimal configuration: a source, an address to listen on, and a broker. */
extern const char scratch_minimal[];
#define SCRATCH_MINIMAL_LINES 7

/* A complete configuration with the embedded broker. */
extern const char scratch_embedded[];

/* Load the minimal configuration and more lines; the first of these is line SCRATCH_MINIMAL_LINES + 1. */
struct loaded scratch_load_more(const char *more);

/* How many lines of messages there are. */
size_t scratch_count(const struct loaded *loaded);

/* Fail unless there is a message for that line with the words in it. Returns its text. */
const char *scratch_expect(const struct loaded *loaded, unsigned line, const char *words);

/*
 * Fail unless the minimal configuration with more lines has exactly one message, for the last line, with
 * the words in it.
 */
void scratch_expect_refused(const char *more, const char *words);

/* Return the text that a function writes to stderr. The caller frees it. */
char *scratch_capture(void (*run)(void *arg), void *arg);

#endif
