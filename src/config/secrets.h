#ifndef CONFIG_SECRETS_H
#define CONFIG_SECRETS_H

#include <stddef.h>
#include <sys/stat.h>

#include "base/compiler.h"
#include "base/error.h"

#define SECRETS_MAX 65536

/**
 * secrets_read(path, min_len, len, st, error):
 * Read the secret in a file, without the newline at its end. Refuse a file that others can read or write, a
 * file that is not regular, and a secret shorter than min_len or longer than SECRETS_MAX bytes. Return a
 * string of *len bytes, to be released with secrets_free(), or NULL with the reason. Unless st is NULL, it is
 * set to the state of the file before it was read.
 */
char *secrets_read(const char *path, size_t min_len, size_t *len, struct stat *st,
                   struct error *error) MUST_CHECK;

/* Likewise a signing secret, which must have at least 16 bytes and be one line of text. */
char *secrets_read_signing(const char *path, size_t *len, struct stat *st, struct error *error) MUST_CHECK;

/*
 * Return what makes a signing secret doubtful, to follow "the secret ": the placeholder of the sample, PEM, a
 * blank at an end, or a character that is not printable ASCII. NULL: nothing.
 */
const char *secrets_doubt(const char *secret) MUST_CHECK;

/*
 * Check that the service can accept an API key, which is the whole value of a header. Return 0, or -1 with
 * the reason.
 */
int secrets_check_api_key(const char *key, struct error *error) MUST_CHECK;

/*
 * Check that a configured path is a path, and not by mistake the secret itself, which no message may show:
 * the file exists, or the path begins with a slash. Return 0, or -1 with the reason.
 */
int secrets_check_path(const char *path, struct error *error) MUST_CHECK;

/* Wipe and release. NULL is harmless. */
void secrets_free(char *secret, size_t len);

/*
 * Check that others can neither read nor write the file at path, without opening it: this account need not be
 * allowed to read it, as with the API key, which the daemon does not use. Return 0, or -1 with the reason.
 */
int secrets_check_file(const char *path, struct error *error) MUST_CHECK;

/* The same for a mode that was read from an open descriptor. path is for the message. */
int secrets_check_mode(mode_t mode, const char *path, struct error *error) MUST_CHECK;

#endif
