#include "cli/doctor_daemon.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/doctor_sight.h"
#include "cli/status.h"

/*
 * How to restart gatepostd so that no delivery is left behind: a restart drains the directory that is at
 * `spool` of the file then, and reads the topic of its `prefix` in the cluster of its bootstrap.servers, and
 * no other ones.
 */

/* Whether a restart with the present file drains the directory of a running receiver. */
static int
is_drained(const struct config *config, const struct json_value *spool, const char *directory)
{
        const char *next = config->roles & CONFIG_RECEIVER ? config->spool : NULL;

        if (next == NULL)
                return 0;
        if (strcmp(next, directory) == 0)
                return status_flag(spool, "inPlace") && !doctor_spool_is_private(spool);
        return doctor_spool_is_at(spool, next);
}

/* Return what to do, a restart in this way included, when the spool has deliveries; to be freed. */
static char *
describe(const struct doctor *doctor, const struct json_value *spool, const char *directory, const char *how)
{
        const struct config *config = doctor->config;
        int is_in_place = status_flag(spool, "inPlace");

        if (is_drained(config, spool, directory))
                return mem_strdup(how);
        if (doctor_spool_is_private(spool))
                return mem_printf(
                    "a restart may delete the deliveries in %s, which is " DOCTOR_SIGHT_OWN
                    ": wait until @GATEPOST@ status shows none, and then: %s; or stop what sends "
                    "deliveries, copy it as root from /proc/PID/root%s, do that, and then: @GATEPOST@ spool "
                    "drain COPY",
                    directory, how, directory);
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

/* Return how to restart without leaving spooled deliveries behind, to be freed. status may be NULL. */
static char *
guard_spool(const struct doctor *doctor, const struct json_value *status, const char *how)
{
        const struct json_value *spool = json_tree_get(status, "spool");
        const char *directory = json_tree_text(spool, "directory");

        if (directory == NULL) /* no spool */
                return mem_strdup(how);
        if (status_number(spool, "segments") + status_number(spool, "records") > 0)
                return describe(doctor, spool, directory, how);
        if (is_drained(doctor->config, spool, directory))
                return mem_strdup(how);
        if (doctor_spool_is_private(spool))
                return mem_printf("%s, if @GATEPOST@ status shows just before that the spool is empty: a "
                                  "restart may delete %s, which is " DOCTOR_SIGHT_OWN,
                                  how, directory);
        return mem_printf("%s, if @GATEPOST@ status shows just before that the spool is "
                          "empty: a restart does not drain %s%s",
                          how, status_flag(spool, "inPlace") ? "" : "the directory that was at ", directory);
}

#define AUDIT \
        "gatepost -c OLDFILE audit, with the old options of a router, counts no deliveries that are not " \
        "yet " \
        "routed (lag 0 in all partitions)"
#define FIRST \
        "first stop what sends deliveries, and wait until @GATEPOST@ status shows an empty spool at each " \
        "receiver, and then until " AUDIT "; then"
#define REST \
        "or do not wait for lag 0, and route the rest afterwards by a router with the old options and " \
        "another `instance`: gatepost-guide(7), ANOTHER CLUSTER OR PREFIX"

/* Return what to do when the file names other brokers, and gatepostd does not reach those that it has. */
static char *
guard_lost(const struct config *config, const struct json_value *status, const char *how)
{
        const struct json_value *spool = json_tree_get(status, "spool");
        const char *directory = json_tree_text(spool, "directory");
        int is_kept = directory != NULL && is_drained(config, spool, directory);

        return mem_printf(
            "gatepostd does not reach the brokers that it has: if they do not come back, or the "
            "new ones are of the same cluster, at once: %s; %sif the old cluster is lost, what "
            "was not routed in it is lost, too; if it comes back, read gatepost-guide(7), "
            "ANOTHER CLUSTER OR PREFIX, before a restart",
            how, is_kept ? "the spool is drained into the cluster of the file; " : "");
}

/* Return what to do with receivers without the role router, when this one then appends elsewhere. */
static char *
guard_receivers(const struct config *config, int has_other_topic, const char *how)
{
        char *where = has_other_topic
                          ? mem_printf("a restart lets this receiver append to %s", config->deliveries_topic)
                          : mem_strdup("if `bootstrap.servers` leads to another cluster now, a restart lets "
                                       "this receiver append there");
        char *text = mem_printf("%s: restart all receivers first, and the routers when " AUDIT
                                ": gatepost-guide(7), ANOTHER CLUSTER OR PREFIX; here: %s",
                                where, how);

        free(where);
        return text;
}

/* Whether neither the daemon nor the file has the role router. */
static int
is_without_router(const struct config *config, const struct json_value *status)
{
        return !(config->roles & CONFIG_ROUTER) &&
               json_tree_get(json_tree_get(status, "roles"), "router") == NULL;
}

/* Likewise for deliveries that are not routed yet. */
static char *
guard_topic(const struct config *config, const struct json_value *status, const char *how)
{
        const struct json_value *configuration = json_tree_get(status, "configuration");
        const char *topic = json_tree_text(json_tree_get(configuration, "topics"), "deliveries");
        const char *brokers = json_tree_text(configuration, "bootstrapServers");
        int has_other_topic = topic != NULL && strcmp(topic, config->deliveries_topic) != 0;
        int has_other_brokers = brokers != NULL && strcmp(brokers, config_brokers(config)) != 0;

        if (brokers != NULL && strcmp(brokers, "embedded") == 0 && (has_other_topic || has_other_brokers))
                return mem_printf("the embedded broker forgets all records at a restart: " FIRST ": %s", how);
        if (has_other_brokers && !status_flag(status, "kafkaReachable"))
                return guard_lost(config, status, how);
        if ((has_other_topic || has_other_brokers) && is_without_router(config, status))
                return guard_receivers(config, has_other_topic, how);
        if (has_other_topic)
                return mem_printf("a restart reads %s, and leaves in %s what is not routed by then: " FIRST
                                  ": %s; " REST,
                                  config->deliveries_topic, topic, how);
        if (has_other_brokers)
                return mem_printf("if `bootstrap.servers` leads to another cluster now, a restart leaves in "
                                  "the old one what is not routed by then: " FIRST
                                  ", or at once if it is the same cluster: %s; " REST,
                                  how);
        return mem_strdup(how);
}

/* Return what to say when the daemon does not say what it has, to be freed. */
static char *
guard_unknown(const struct doctor *doctor, const char *how)
{
        if (doctor->config == NULL || doctor->config->spool == NULL)
                return mem_strdup(how);
        return mem_printf("%s; if `spool` was changed before, then drain the old directory: "
                          "@GATEPOST@ spool drain DIR",
                          how);
}

const char *
doctor_restart_as(struct doctor *doctor, const char *how)
{
        struct json_value *own =
            doctor->status == NULL && doctor->config != NULL ? doctor_daemon_status(doctor) : NULL;
        const struct json_value *status = doctor->status == NULL ? own : doctor->status;
        char *guarded;

        free(doctor->restart);
        if (status == NULL) {
                doctor->restart = guard_unknown(doctor, how);
        } else if (doctor_daemon_other(doctor, status) != NULL) {
                doctor->restart = mem_strdup(how);
        } else {
                guarded = guard_spool(doctor, status, how);
                doctor->restart = guard_topic(doctor->config, status, guarded);
                free(guarded);
        }
        json_tree_free(own);
        return doctor->restart;
}

const char *
doctor_restart(struct doctor *doctor)
{
        return doctor_restart_as(doctor, "systemctl restart @UNIT@");
}
