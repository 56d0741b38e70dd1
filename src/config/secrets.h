#ifndef CONFIG_SECRETS_H
#define CONFIG_SECRETS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/error.h"

#define SECRETS_MAX 65536

/**
 * secrets_read(path, min_len, len, error):
 * The secret in a file, without the newline at its end. Refused when others can read or write the file, when it is no
 * regular file, and when the secret is shorter than min_len or longer than SECRETS_MAX bytes. Returns a string of *len
 * bytes, to be released with secrets_free(), or NULL with the reason.
 */
char *secrets_read(const char *path, size_t min_len, size_t *len, struct error *error) MUST_CHECK;

/* Likewise a secret to sign with, of 16 bytes at least, which must be one line of text. */
char *secrets_read_signing(const char *path, size_t *len, struct error *error) MUST_CHECK;

/*
 * Whether a configured path is one, rather than the secret itself, which no message may show: there is a file, or it begins
 * with a slash. Returns 0, or -1 with the reason.
 */
int secrets_check_path(const char *path, struct error *error) MUST_CHECK;

/* When the file was last written, in seconds since the epoch; 0 when that cannot be told. */
int64_t secrets_written_s(const char *path);

/* Wipe and release. NULL is harmless. */
void secrets_free(char *secret, size_t len);

/*
 * Whether others can do nothing with the file at path, without opening it: this account need not be one that may, as with
 * the API key, which the daemon does not use. Returns 0, or -1 with the reason and the remedy.
 */
int secrets_check_file(const char *path, struct error *error) MUST_CHECK;

/* The same of the file at path, whose mode was taken from the descriptor by which it was read. */
int secrets_check_mode(mode_t mode, const char *path, struct error *error) MUST_CHECK;

#endif
