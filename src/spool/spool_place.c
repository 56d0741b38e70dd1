#include "spool/spool_place.h"

#include <errno.h>
#include <libgen.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "base/account.h"
#include "base/mem.h"
#include "spool/spool_directory.h"

/* The systemd units make it. */
#define STATE_DIRECTORY "/var/lib/gatepost"

struct place {
        const struct config *config;
        problems_reporter *report;
        struct account account;
        int has_error;
};

static void
note(struct place *place, enum problem_level level, const char *option, const char *text)
{
        int is_max = strcmp(option, "spool_max") == 0;
        char whole[640];
        const struct problem problem = {level,
                                        is_max ? place->config->spool_max_line : place->config->spool_line,
                                        whole,
                                        "receiver",
                                        NULL,
                                        option};

        (void)snprintf(whole, sizeof(whole), "%s: %s", option, text);
        place->report(place->config->file, &problem);
        place->has_error |= level == PROBLEM_ERROR;
}

/* Check the file system of a directory. */
static void
check_file_system(struct place *place, const char *directory)
{
        struct error error;
        struct statfs system;
        uint64_t size;

        if (statfs(directory, &system) != 0)
                return;
        size = (uint64_t)system.f_blocks * (uint64_t)system.f_bsize;
        if (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC) {
                (void)
                    error_set(&error,
                              "%.200s is in memory: a reboot loses deliveries that were answered 200; use a "
                              "directory on a disk, such as " STATE_DIRECTORY "/spool",
                              directory);
                note(place, PROBLEM_WARNING, "spool", error.text);
        }
        if (size > 0 && place->config->spool_max > size) {
                (void)
                    error_set(&error,
                              "it is larger than the file system of %.200s, which has %llu MiB; choose less "
                              "than is free there",
                              directory, (unsigned long long)(size >> 20));
                note(place, PROBLEM_WARNING, place->config->spool_max_line != 0 ? "spool_max" : "spool",
                     error.text);
        }
}

static void
check_writable(struct place *place, const char *directory, const struct stat *st)
{
        struct error error;

        if (account_may_write(&place->account, directory, st))
                return;
        (void)error_set(&error,
                        "%.200s is not writable for gatepostd; give it to the user of gatepostd (chown), or "
                        "use " STATE_DIRECTORY "/spool",
                        directory);
        note(place, PROBLEM_WARNING, "spool", error.text);
}

/* Warn if the directory is used for something else. */
static void
check_others(struct place *place, const char *path)
{
        struct error error;
        struct spool_directory *directory = spool_directory_open(path, 0, &error);
        struct spool_listing listing = {0};

        if (directory != NULL && spool_directory_list(directory, 0, &listing, &error) == 0 &&
            listing.n_others > 0) {
                (void)error_set(&error,
                                "%.200s has other files (%zu); use a directory of its own, such as %s", path,
                                listing.n_others, STATE_DIRECTORY "/spool");
                note(place, PROBLEM_WARNING, "spool", error.text);
        }
        spool_listing_free(&listing);
        spool_directory_close(directory);
}

static void
check_directory(struct place *place, const char *path, const struct stat *st)
{
        struct error error;

        check_writable(place, path, st);
        if ((st->st_mode & (S_IRWXG | S_IRWXO)) != 0) {
                (void)error_set(&error,
                                "others can open %.200s (mode %04o), which holds bodies; chmod 700 %.200s",
                                path, (unsigned)st->st_mode & 07777, path);
                note(place, PROBLEM_WARNING, "spool", error.text);
        }
        check_others(place, path);
        check_file_system(place, path);
}

/* Check where gatepostd will create the directory. */
static void
check_parent(struct place *place, const char *path)
{
        char *copy = mem_strdup(path);
        const char *parent = dirname(copy);
        struct error error;
        struct stat st;

        if (stat(parent, &st) != 0) {
                if (errno == ENOENT && strcmp(parent, STATE_DIRECTORY) != 0) {
                        (void)error_set(&error, "%.200s: %s; create it for the user of gatepostd", parent,
                                        strerror(errno));
                        note(place, PROBLEM_ERROR, "spool", error.text);
                }
        } else if (!S_ISDIR(st.st_mode)) {
                (void)error_set(&error, "%.200s is not a directory; name another one", parent);
                note(place, PROBLEM_ERROR, "spool", error.text);
        } else {
                check_writable(place, parent, &st);
                check_file_system(place, parent);
        }
        free(copy);
}

int
spool_place_check(const struct config *config, problems_reporter *report)
{
        struct place place = {config, report, account_service(), 0};
        struct error error;
        struct stat st;

        if (config->spool == NULL || !(config->roles & CONFIG_RECEIVER))
                return 0;
        if (stat(config->spool, &st) == 0 && S_ISDIR(st.st_mode)) {
                check_directory(&place, config->spool, &st);
        } else if (stat(config->spool, &st) == 0) {
                (void)error_set(&error, "%.200s is not a directory; name another one", config->spool);
                note(&place, PROBLEM_ERROR, "spool", error.text);
        } else if (errno == ENOENT || errno == ENOTDIR) {
                check_parent(&place, config->spool);
        }
        return place.has_error ? -1 : 0;
}
