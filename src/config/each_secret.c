#include "config/each_secret.h"

#include <string.h>

#include "config/read.h"
#include "config/secrets.h"

void
each_secret_in(const char *secret_file, const char *source, each_secret_visit *visit, void *arg)
{
        struct error error;
        size_t len;
        char *secret = secrets_read_signing(secret_file, &len, &error);

        if (secret == NULL)
                return;
        visit(source, secret, len, arg);
        secrets_free(secret, len);
}

void
each_secret(const char *file, each_secret_visit *visit, void *arg)
{
        struct problems problems = {.file = file};
        struct ini ini = {0};

        if (read_file(file, &ini, &problems) == 0) {
                for (size_t i = 0; i < ini.n; i++) {
                        const struct ini_entry *entry = &ini.entries[i];

                        if (entry->name == NULL || strcmp(entry->section, "source") != 0)
                                continue;
                        if (strcmp(entry->name, "secret") == 0)
                                visit(entry->argument, entry->value, strlen(entry->value), arg);
                        else if (strcmp(entry->name, "secret_file") == 0)
                                each_secret_in(entry->value, entry->argument, visit, arg);
                }
        }
        ini_clear(&ini);
        problems_clear(&problems);
}
