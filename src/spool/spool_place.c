#include "spool/spool_place.h"

#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>

#include "base/log.h"
#include "base/unit.h"
#include "config/access_check.h"

/* Check the file system of a directory. */
static void
check_file_system(struct access_check *check, const char *directory)
{
        const struct config *config = check->config;
        int is_max = config->spool_max_line != 0;
        struct error error;
        struct statfs system;
        uint64_t size;

        if (statfs(directory, &system) != 0)
                return;
        size = (uint64_t)system.f_blocks * (uint64_t)system.f_bsize;
        if (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC) {
                (void)error_set(
                    &error,
                    "%.200s is in memory: a reboot loses deliveries that were answered 200; use a "
                    "directory on a disk%s",
                    directory,
                    unit_is_below(directory, STATE_DIRECTORY) ? "" : ", such as " STATE_DIRECTORY "/spool");
                access_check_note(check, PROBLEM_WARNING, "spool", config->spool_line, error.text);
        }
        if (size > 0 && config->spool_max > size) {
                (void)
                    error_set(&error,
                              "it is larger than the file system of %.200s, which has %llu MiB; choose less "
                              "than is free there",
                              directory, (unsigned long long)(size >> 20));
                access_check_note(check, PROBLEM_WARNING, is_max ? "spool_max" : "spool",
                                  is_max ? config->spool_max_line : config->spool_line, error.text);
        }
}

/* Warn if the directory of a spool, which has segments, is used for something else, too. */
static void
check_others(struct access_check *check, const char *path)
{
        struct error error;
        struct spool_directory *directory = spool_directory_open(path, 0, &error);
        struct spool_listing listing = {0};

        if (directory != NULL && spool_directory_list(directory, 0, &listing, &error) == 0 &&
            listing.n_others > 0) {
                (void)error_set(&error, "%.200s has other files (%zu); use a directory of its own%s", path,
                                listing.n_others,
                                listing.n_segments == 0
                                    ? ""
                                    : ", but not before gatepostd has drained the deliveries that wait in "
                                      "this one");
                access_check_note(check, PROBLEM_WARNING, "spool", check->line, error.text);
        }
        spool_listing_free(&listing);
        spool_directory_close(directory);
}

int
spool_place_check(const struct config *config, problems_reporter *report)
{
        struct access_check check = {config,
                                     report,
                                     {0},
                                     "receiver",
                                     "spool",
                                     config->spool_line,
                                     "holds bodies",
                                     spool_directory_owns,
                                     0};
        char *on;

        if (config->spool == NULL || !(config->roles & CONFIG_RECEIVER))
                return 0;
        check.account = account_service();
        on = access_check_directory(&check, config->spool);
        if (on != NULL && strcmp(on, config->spool) == 0)
                check_others(&check, config->spool);
        if (on != NULL)
                check_file_system(&check, on);
        free(on);
        account_clear(&check.account);
        return check.has_error ? -1 : 0;
}

void
spool_place_watch(const struct spool_directory *directory, struct spool_stats *stats)
{
        const int is_displaced = !spool_directory_is_in_place(directory);
        char quoted[LOG_QUOTED_SIZE];

        if (atomic_exchange(&stats->is_displaced, is_displaced) || !is_displaced)
                return;
        spool_stats_note_error(stats, SPOOL_ERROR_PLACE, 1);
        log_error("the directory of the spool was renamed, deleted or replaced directory=%s",
                  log_quote(spool_directory_path(directory), quoted));
}
