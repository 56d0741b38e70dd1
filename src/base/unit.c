#include "base/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/mem.h"

#define UNIT_HINT "the systemd units hide or protect this path: gatepostd(8), SYSTEMD"

/* Return an absolute path without empty names, "." and "..", to be freed; the root directory is empty. */
static char *
normalize(const char *path)
{
        char *normal = mem_alloc(strlen(path) + 2), *end = normal;

        while (*path != '\0') {
                size_t len = strcspn(path, "/");

                if (len == 2 && memcmp(path, "..", len) == 0) {
                        while (end > normal && *--end != '/')
                                ;
                } else if (len > 1 || (len == 1 && *path != '.')) {
                        *end++ = '/';
                        end = mempcpy(end, path, len);
                }
                path += len;
                path += strspn(path, "/");
        }
        *end = '\0';
        return normal;
}

static int
is_below(const char *path, const char *directory)
{
        char *normal = normalize(path);
        size_t len = strlen(directory);
        int is_below = strncmp(normal, directory, len) == 0 && (normal[len] == '/' || normal[len] == '\0');

        free(normal);
        return is_below;
}

int
unit_has_own(const char *path)
{
        return is_below(path, "/tmp") || is_below(path, "/var/tmp");
}

char *
unit_name(const char *file)
{
        static const char *const roles[] = {"router", "receiver"};
        static const char ending[] = ".conf";
        const char *slash = strrchr(file, '/'), *base = slash == NULL ? file : slash + 1;
        size_t len = strlen(base), ending_len = strlen(ending);

        for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
                size_t prefix = strlen(roles[i]) + 1;

                if (len > prefix + ending_len && strncmp(base, roles[i], prefix - 1) == 0 &&
                    base[prefix - 1] == '-' && strcmp(base + len - ending_len, ending) == 0)
                        return mem_printf("gatepost-%s@%.*s", roles[i], (int)(len - prefix - ending_len),
                                          base + prefix);
        }
        return mem_strdup("gatepostd");
}

const char *
unit_hint(const char *path, int reason)
{
        static const char *const hidden[] = {"/home", "/root", "/run/user"};

        if (reason == EROFS || unit_has_own(path))
                return UNIT_HINT;
        for (size_t i = 0; i < ARRAY_LEN(hidden); i++) {
                if (is_below(path, hidden[i]))
                        return UNIT_HINT;
        }
        return "";
}
