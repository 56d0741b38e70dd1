#include "cli/doctor_daemon.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "cli/status.h"

/*
 * How to restart gatepostd so that no spooled delivery is left behind: a restart drains the directory that is
 * at `spool` of the file then, and no other one.
 */

/* Whether a restart with the present file drains the directory of a running receiver. */
static int
is_drained(const struct config *config, const struct json_value *spool, const char *directory)
{
        const char *next = config->roles & CONFIG_RECEIVER ? config->spool : NULL;
        struct stat there;

        if (next == NULL)
                return 0;
        if (strcmp(next, directory) == 0)
                return status_flag(spool, "inPlace");
        return stat(next, &there) == 0 && status_is_number(spool, "device", (intmax_t)there.st_dev) &&
               status_is_number(spool, "inode", (intmax_t)there.st_ino);
}

/* Return what to do, a restart in this way included, when the spool has deliveries; to be freed. */
static char *
describe(const struct doctor *doctor, const struct json_value *spool, const char *how)
{
        const struct config *config = doctor->config;
        const char *directory = json_tree_text(spool, "directory");
        int is_in_place = status_flag(spool, "inPlace");

        if (directory == NULL) /* before version 0.2.0 */
                return mem_printf(
                    "its spool has deliveries, which a restart drains only with the same "
                    "`spool`: if that changes, wait until @GATEPOST@ status shows none, or drain "
                    "the old directory afterwards with @GATEPOST@ spool drain; %s",
                    how);
        if (is_drained(config, spool, directory))
                return mem_strdup(how);
        if (is_in_place)
                return mem_printf(
                    "a restart does not drain the deliveries in %s, because `spool` of the file "
                    "does not lead there: wait until @GATEPOST@ status shows none, and then: %s; "
                    "or do that at once, and then: @GATEPOST@ spool drain %s",
                    directory, how, directory);
        if (config->spool == NULL || strcmp(config->spool, directory) != 0)
                return mem_printf(
                    "a restart does not drain the deliveries in the directory that was at %s: "
                    "wait until @GATEPOST@ status shows none, and then: %s; or do that at once, "
                    "and then: @GATEPOST@ spool drain with the path that it has now",
                    directory, how);
        return mem_printf("a restart does not drain the deliveries in the directory that was at %s: put it "
                          "back there first, or unmount what hides it (if it was deleted, they are lost), "
                          "and then: %s",
                          directory, how);
}

const char *
doctor_restart_as(struct doctor *doctor, const char *how)
{
        struct json_value *own =
            doctor->status == NULL && doctor->config != NULL ? doctor_daemon_status(doctor) : NULL;
        const struct json_value *status = doctor->status == NULL ? own : doctor->status, *spool;
        const char *directory;

        spool = status == NULL || doctor_daemon_other(doctor, status) != NULL
                    ? NULL
                    : json_tree_get(status, "spool");
        free(doctor->restart);
        directory = json_tree_text(spool, "directory");
        if (status_number(spool, "segments") + status_number(spool, "records") > 0)
                doctor->restart = describe(doctor, spool, how);
        else if (directory != NULL && !is_drained(doctor->config, spool, directory))
                doctor->restart =
                    mem_printf("%s, if @GATEPOST@ status shows just before that the spool is "
                               "empty: a restart does not drain %s%s",
                               how, status_flag(spool, "inPlace") ? "" : "the directory that was at ",
                               directory);
        else if (status == NULL && doctor->config != NULL && doctor->config->spool != NULL)
                doctor->restart =
                    mem_printf("%s; if `spool` was changed before, then drain the old directory: "
                               "@GATEPOST@ spool drain DIR",
                               how);
        else
                doctor->restart = mem_strdup(how);
        json_tree_free(own);
        return doctor->restart;
}

const char *
doctor_restart(struct doctor *doctor)
{
        return doctor_restart_as(doctor, "systemctl restart @UNIT@");
}
