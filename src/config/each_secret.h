#ifndef CONFIG_EACH_SECRET_H
#define CONFIG_EACH_SECRET_H

#include <stddef.h>

/* A signing secret of the source with that name, of len bytes; gone when this returns. */
typedef void each_secret_visit(const char *source, const char *secret, size_t len, void *arg);

/**
 * each_secret(file, visit, arg):
 * Read the signing secrets of a configuration once more, for who needs more of them than the keys made of them; a loaded
 * configuration keeps none. Calls visit for each, in the order of the file. What cannot be read is left out: config_load()
 * tells about that.
 */
void each_secret(const char *file, each_secret_visit *visit, void *arg);

/* The same for the one secret in a file of its own. */
void each_secret_in(const char *secret_file, const char *source, each_secret_visit *visit, void *arg);

#endif
