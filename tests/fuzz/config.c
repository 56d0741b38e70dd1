/*
 * Configuration files, read as INI and loaded. A valid one can be printed, without secrets. Loading reports
 * errors on stderr: run with -close_fd_mask=2.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"
#include "config/ini.h"
#include "transcript.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define SECRET "a secret that must not be printed"

static void
parse(const uint8_t *data, size_t len)
{
        struct findings findings = {0};
        char *text = malloc(len + 1);
        struct ini ini;

        memcpy(text, data, len);
        ini_parse(text, len, &ini, &findings);
        for (size_t i = 0; i < ini.n; i++) {
                MUST(ini.entries[i].line > 0 && ini.entries[i].section != NULL);
                MUST(i == 0 || ini.entries[i].line >= ini.entries[i - 1].line);
                MUST((ini.entries[i].name == NULL) == (ini.entries[i].value == NULL));
        }
        ini_clear(&ini);
        findings_clear(&findings);
        free(text);
}

static void
print(const char *file)
{
        char *text;
        size_t len;
        FILE *out = open_memstream(&text, &len);

        MUST(config_print(file, 0, out) == 0 && config_print(file, 1, out) == 0);
        fclose(out);
        MUST(memmem(text, len, SECRET, strlen(SECRET)) == NULL);
        free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
        static int fd = -1;
        static char file[64];
        struct config *config;

        parse(data, len);
        if (fd < 0) {
                fd = memfd_create("gatepost.conf", MFD_CLOEXEC);
                (void)snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
        }
        MUST(fd >= 0 && fchmod(fd, 0600) == 0 && ftruncate(fd, 0) == 0);
        MUST(pwrite(fd, data, len, 0) == (ssize_t)len);
        config = config_load(file);
        if (config != NULL)
                print(file);
        config_free(config);
        return 0;
}
