#include "spool/spool_place.h"

#include <errno.h>
#include <libgen.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/unit.h"

static struct finding *
add(const struct config *config, const char *section, const char *option, enum finding_level level,
    const char *text, struct findings *findings)
{
        struct finding *finding = findings_add(findings, level, config->file, "%s: %s", option, text);

        finding->line = config_find_line(config, section, option);
        return finding;
}

/* Return the directory itself or, while it does not exist, the one above; to be freed. */
static char *
find_existing(const char *path)
{
        char *copy, *parent;

        if (access(path, F_OK) == 0 || errno != ENOENT)
                return mem_strdup(path);
        copy = mem_strdup(path);
        parent = mem_strdup(dirname(copy));
        free(copy);
        return parent;
}

/* Systemd makes /var/lib/gatepost when it starts the unit. */
static void
check_writable(const struct config *config, const char *section, const char *option, const char *path,
               struct findings *findings)
{
        char *directory = find_existing(path);
        struct finding *finding;
        struct error error;

        if (access(directory, W_OK | X_OK) != 0 &&
            !(errno == ENOENT && strcmp(directory, STATE_DIRECTORY) == 0)) {
                int reason = errno;

                (void)error_set(&error, "cannot write to %.120s: %s", directory, strerror(reason));
                /* Somebody else than the daemon's user may run this. */
                finding = add(config, section, option, reason == EACCES ? FINDING_WARNING : FINDING_ERROR,
                              error.text, findings);
                if (*unit_hint(directory, reason) != '\0')
                        finding_set_remedy(finding, "%s", unit_hint(directory, reason));
                else
                        finding_set_remedy(finding, "install -d -o gatepost -m 0700 %s", path);
        }
        free(directory);
}

static void
check_file_system(const struct config *config, struct findings *findings)
{
        char *directory = find_existing(config->spool);
        struct statfs system;
        uint64_t size;

        if (statfs(directory, &system) == 0) {
                size = (uint64_t)system.f_blocks * (uint64_t)system.f_bsize;
                if (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC)
                        finding_set_remedy(add(config, "receiver", "spool", FINDING_ERROR,
                                               "a reboot loses what is in memory, with deliveries that were "
                                               "answered 200",
                                               findings),
                                           "spool = " STATE_DIRECTORY "/spool");
                else if (size > 0 && config->spool_max > size)
                        add(config, "receiver",
                            config_find_line(config, "receiver", "spool_max") != 0 ? "spool_max" : "spool",
                            FINDING_WARNING, "spool_max is larger than the file system", findings);
        }
        free(directory);
}

void
spool_place_check(const struct config *config, struct findings *findings)
{
        if (config->spool != NULL && (config->roles & CONFIG_RECEIVER)) {
                check_writable(config, "receiver", "spool", config->spool, findings);
                check_file_system(config, findings);
        }
        if (config->state != NULL && (config->roles & CONFIG_ROUTER))
                check_writable(config, "router", "state", config->state, findings);
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
