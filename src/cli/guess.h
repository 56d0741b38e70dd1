#ifndef CLI_GUESS_H
#define CLI_GUESS_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "cli/guess_secret.h"
#include "cli/guess_time.h"

#define GUESS_MAX_CAUSES 5

/* A delivery whose signature is not as it should be. */
struct guess_case {
        const char *signature; /* the headers' values */
        const char *timestamp;
        const void *body;
        size_t len;
        const struct guess_secrets *secrets;
        uint64_t reach; /* seconds around the timestamp that are tried */
};

/* What is wrong with it: all of the causes together. */
struct guess {
        int is_found;
        char *causes[GUESS_MAX_CAUSES]; /* clauses */
        size_t n_causes;
        uint64_t n_tried;
        int gave_up; /* not all was tried: the body is too large for that */
};

/**
 * guess_find(subject, guess):
 * Find out why a signature does not match, by trying: what is told here has been confirmed by computing a signature that
 * does match. The fewest causes that do are told. Takes a few seconds at most. Clear the guess with guess_clear().
 */
void guess_find(const struct guess_case *subject, struct guess *guess);
void guess_clear(struct guess *guess);

#endif
