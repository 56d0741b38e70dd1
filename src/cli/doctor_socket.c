#include "cli/doctor_daemon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/unit.h"
#include "cli/command.h"
#include "cli/doctor_sight.h"
#include "cli/own_url.h"
#include "config/endpoint.h"

/* Sockets of gatepostd that cannot be connected to: why, and where gatepostd listens instead. */

#define RESTART "systemctl restart @UNIT@ (a changed `listen` needs a restart)"

const char *
doctor_socket_finder(const struct config_listen *listen)
{
        return listen->address.ss_family == AF_UNIX ? "ss -lxp" : "ss -ltnp";
}

/* Return how to put a socket where other programs find it, too, to be freed. */
static char *
explain_move(struct doctor *doctor, const struct config_listen *listen)
{
        return mem_printf("name a path in /run/gatepost as `listen` in [%s] of %s, and then: %s",
                          listen == doctor->config->admin ? "admin" : "receiver", doctor->file,
                          doctor_restart_as(doctor, RESTART));
}

/* Return where the path of a socket leads for gatepostd. */
static enum doctor_sight
sight_of(const struct doctor *doctor, const struct config_listen *listen)
{
        const char *path = endpoint_path(listen);

        return path == NULL ? DOCTOR_SIGHT_UNKNOWN : doctor_sight_of(doctor, path);
}

void
doctor_socket_advise(struct doctor *doctor, const struct config_listen *listen, const char *section)
{
        doctor_remedy(doctor,
                      "see what listens there: %s; if it is gatepostd: journalctl -u @UNIT@, and after an "
                      "upgrade: %s; otherwise stop it, or change `listen` in [%s] of %s",
                      doctor_socket_finder(listen), doctor_restart(doctor), section, doctor->file);
}

/* Write where gatepostd listens for deliveries, by its report. Returns whether it does anywhere. */
static int
list_listeners(const struct json_value *loaded, char *text, size_t size, int *is_passed)
{
        const struct json_value *listeners = json_tree_get(loaded, "listeners");

        text[0] = '\0';
        for (const struct json_value *each = listeners == NULL ? NULL : listeners->first; each != NULL;
             each = each->next) {
                const char *address = json_tree_text(each, "address"), *purpose = json_tree_text(each, "for"),
                           *opened_by = json_tree_text(each, "openedBy");
                size_t len = strlen(text);

                if (address == NULL || purpose == NULL || strcmp(purpose, "receiver") != 0)
                        continue;
                *is_passed = opened_by != NULL && strcmp(opened_by, "manager") == 0;
                (void)snprintf(text + len, size - len, "%s%s", len == 0 ? "" : ", ", address);
        }
        return text[0] != '\0';
}

int
doctor_socket_is_listed(const struct json_value *status, const struct config_listen *listen)
{
        const struct json_value *listeners =
            json_tree_get(json_tree_get(status, "configuration"), "listeners");
        int result = 0;

        for (const struct json_value *each = listeners == NULL ? NULL : listeners->first; each != NULL;
             each = each->next) {
                const char *address = json_tree_text(each, "address");
                struct config_listen its;
                struct error ignored;

                if (address == NULL || endpoint_parse(address, &its, &ignored) != 0)
                        continue;
                result |= endpoint_conflicts(&its, listen);
                free(its.text);
        }
        return result;
}

/* Whether the gatepostd of the file listens at the address of a listener, by its report. */
static int
is_listed(const struct doctor *doctor, const struct config_listen *listen)
{
        struct json_value *status = doctor_daemon_status(doctor);
        int result = doctor_daemon_other(doctor, status) == NULL && doctor_socket_is_listed(status, listen);

        json_tree_free(status);
        return result;
}

/* Report that gatepostd has a socket that this command does not find, as root has seen or by its report. */
static void
report_own(struct doctor *doctor, const struct config_listen *listen, int is_seen)
{
        char *first = unit_has_own(endpoint_path(listen)) ? explain_move(doctor, listen)
                      : is_seen                           ? NULL
                                : mem_printf("if it was deleted: %s", doctor_restart(doctor));

        doctor_fail(doctor, EX_CONFIG,
                    "nothing listens there: the socket of gatepostd is in " DOCTOR_SIGHT_OWN
                    ", where other programs do not find it%s",
                    is_seen ? "" : ", or was deleted");
        doctor_remedy(
            doctor,
            "%s%sif gatepostd runs in a container, run gatepost doctor there, or mount the directory "
            "of the socket here, too",
            first == NULL ? "" : first, first == NULL ? "" : "; ");
        free(first);
}

/* Report that gatepostd listens on a socket that is no longer at its path, which root has seen. */
static void
report_lost(struct doctor *doctor, enum doctor_sight sight)
{
        doctor_fail(
            doctor, EX_UNAVAILABLE,
            "nothing listens there: gatepostd runs, but its socket was %s, so that no program finds it",
            sight == DOCTOR_SIGHT_ABSENT ? "deleted" : "replaced");
        doctor_remedy(doctor, "%s",
                      doctor_restart_as(doctor, "systemctl restart @UNIT@ (it makes the socket anew; if a "
                                                "socket unit made it, restart that, too)"));
}

/* Report that gatepostd is stopping, which closes the sockets for deliveries first. Returns whether it is. */
static int
is_stopping(struct doctor *doctor, const struct config_listen *listen)
{
        struct json_value *status = doctor_daemon_status(doctor);
        const char *state = json_tree_text(json_tree_get(status, "roles"), "receiver");
        int result = listen != doctor->config->admin && state != NULL && strcmp(state, "stopping") == 0 &&
                     doctor_daemon_other(doctor, status) == NULL;

        json_tree_free(status);
        if (!result)
                return 0;
        doctor_fail(
            doctor, EX_UNAVAILABLE,
            "nothing listens there: gatepostd is stopping, and only answers the requests that it has");
        doctor_remedy(doctor,
                      "when it has stopped, unless systemd starts it again: systemctl start @UNIT@; if "
                      "it does not stop: journalctl -u @UNIT@");
        return 1;
}

/*
 * Report that gatepostd has the socket where only itself finds it, or at no path any more. Returns whether it
 * is so, as far as this user can see.
 */
static int
is_unseen(struct doctor *doctor, const struct config_listen *listen, enum doctor_sight sight)
{
        if (listen->address.ss_family != AF_UNIX ||
            (sight != DOCTOR_SIGHT_OTHER && !is_listed(doctor, listen)))
                return 0;
        if (sight == DOCTOR_SIGHT_ABSENT || sight == DOCTOR_SIGHT_SHARED)
                report_lost(doctor, sight);
        else
                report_own(doctor, listen, sight == DOCTOR_SIGHT_OTHER);
        return 1;
}

/*
 * Report where gatepostd listens instead, by its report: on the sockets of systemd, which replace `listen`,
 * or where it was configured to at its start. Returns whether it does.
 */
static int
is_elsewhere(struct doctor *doctor, const struct config_listen *listen)
{
        struct json_value *status = doctor_daemon_status(doctor);
        const struct json_value *loaded = json_tree_get(status, "configuration");
        const char *file = json_tree_text(loaded, "file");
        char addresses[400];
        int is_passed = 0,
            is_other =
                doctor_daemon_other(doctor, status) != NULL || doctor_daemon_has_two_files(doctor, status),
            listens = file != NULL && list_listeners(loaded, addresses, sizeof(addresses), &is_passed);

        if (is_other) {
                doctor_daemon_report_other(doctor, "nothing listens there: ", status);
        } else if (listens) {
                doctor_fail(doctor, EX_CONFIG,
                            "nothing listens there: the gatepostd of %s listens on %s%s, and `listen` is %s",
                            file, addresses, is_passed ? ", opened by systemd for a socket unit" : "",
                            listen->text);
                if (is_passed)
                        doctor_remedy(
                            doctor,
                            "give `listen` in [receiver] of %s and ListenStream of the unit the same "
                            "address (systemctl edit gatepostd.socket): sockets of systemd replace "
                            "`listen`",
                            doctor->file);
                else
                        doctor_remedy(doctor, "%s", doctor_restart_as(doctor, RESTART));
        }
        json_tree_free(status);
        return is_other || listens;
}

/* Return why else nothing listens on a socket of a gatepostd that runs, or may run, or "". */
static const char *
doubt(const struct doctor *doctor, const struct config_listen *listen, enum doctor_sight sight)
{
        if (sight == DOCTOR_SIGHT_ABSENT)
                return ", or the socket was deleted";
        if (sight == DOCTOR_SIGHT_SHARED)
                return ", or the socket was replaced";
        if (!endpoint_may_be_hidden(listen, doctor->config))
                return "";
        return geteuid() == 0 ? ", or the socket is in " DOCTOR_SIGHT_OWN
                              : ", or the socket is in " DOCTOR_SIGHT_OWN
                                ", which gatepost doctor sees as root";
}

/* Nothing listens there, and gatepostd does not say why. */
static void
report_absence(struct doctor *doctor, const struct config_listen *listen, enum doctor_sight sight,
               const struct error *error)
{
        int is_admin = listen == doctor->config->admin;
        int runs = sight != DOCTOR_SIGHT_UNKNOWN || (is_admin && doctor->receives);
        char *move = sight == DOCTOR_SIGHT_UNKNOWN && endpoint_may_be_hidden(listen, doctor->config)
                         ? explain_move(doctor, listen)
                         : NULL;

        if (runs) {
                doctor_fail(
                    doctor, EX_UNAVAILABLE,
                    "%s: nothing listens there; gatepostd runs, but not with this `listen` of [%s], which "
                    "only a restart applies, or a socket unit has another address%s",
                    error->text, is_admin ? "admin" : "receiver", doubt(doctor, listen, sight));
                doctor_remedy(
                    doctor, "%s%s",
                    is_admin && move == NULL
                        ? "if gatepostd-admin.socket is enabled, give its ListenStream the address of "
                          "`listen` in [admin] (systemctl edit gatepostd-admin.socket); then: "
                        : "",
                    move == NULL ? doctor_restart(doctor) : move);
        } else {
                doctor_blame(doctor);
                doctor_fail(
                    doctor, EX_UNAVAILABLE,
                    "%s: nothing listens there; gatepostd does not run, or with another configuration, or a "
                    "socket unit has another address%s",
                    error->text, doubt(doctor, listen, sight));
                doctor_remedy(
                    doctor,
                    "%sstart it: systemctl start @UNIT@; if it does not start: journalctl -u @UNIT@%s%s",
                    doctor->url == NULL ? ""
                    : doctor->config->roles & CONFIG_ROUTER
                        ? "if gatepostd is not to run on this machine, but only --to is to be tried, do not "
                          "start it, as its router would join the group: use a copy of the file with "
                          "roles = router, and listen = off in [admin]; else: "
                        : "if gatepostd is not to run on this machine, but only --to is to be tried, use a "
                          "copy of a router's file with listen = off in [admin]; else: ",
                    move == NULL ? "" : "; if it runs: ", move == NULL ? "" : move);
        }
        free(move);
}

void
doctor_socket_report(struct doctor *doctor, const struct config_listen *listen, enum dial_failure failure,
                     const struct error *error)
{
        enum doctor_sight sight;

        if (failure == DIAL_DENIED) {
                doctor_fail(doctor, EX_NOPERM, "%s: this user may not connect to the socket", error->text);
                doctor_remedy(doctor, "run it as the daemon's user: sudo -u gatepost @GATEPOST@ doctor");
                return;
        }
        if (failure != DIAL_REFUSED) {
                doctor_fail(doctor, EX_UNAVAILABLE, "%s", error->text);
                doctor_remedy(doctor,
                              "see what listens there: %s; if it is gatepostd, whether it hangs: journalctl "
                              "-u @UNIT@; and whether this machine has the address of `listen`",
                              doctor_socket_finder(listen));
                return;
        }
        sight = sight_of(doctor, listen);
        if (!is_stopping(doctor, listen) && !is_unseen(doctor, listen, sight) &&
            !is_elsewhere(doctor, listen))
                report_absence(doctor, listen, sight, error);
}

/* Report that a gatepostd of another file has the address of a listener. */
static void
report_holder(struct doctor *doctor, const char *holder)
{
        char *unit = command_unit(holder);
        int is_same = strcmp(unit, doctor->report.unit) == 0; /* at most one of the files is the unit's */

        doctor_fail(doctor, EX_CONFIG,
                    "the gatepostd of %s has this address, so that the one of %s, which does not run, cannot "
                    "start",
                    holder, doctor->file);
        doctor_remedy(doctor,
                      "change `listen` in [receiver] of one of them; or, if the other one is not to run, "
                      "%s%s%s; and then: systemctl start @UNIT@",
                      is_same ? "stop it" : "systemctl disable --now ", is_same ? "" : unit,
                      !is_same && strcmp(unit, "gatepostd") == 0 ? " gatepostd.socket" : "");
        free(unit);
}

int
doctor_socket_is_taken(struct doctor *doctor, const struct config_listen *listen)
{
        const struct config_listen *admin = doctor->config->admin;
        struct own_address ignored;
        struct json_value *status;
        char *holder;
        int is_taken;

        if (admin == NULL || own_url_address(admin, &ignored) != 0)
                return 0; /* whether the gatepostd there has another file is not known */
        holder = doctor_sight_holder(doctor, listen);
        status = holder == NULL ? NULL : doctor_daemon_status(doctor);
        is_taken = holder != NULL && status == NULL;
        if (is_taken)
                report_holder(doctor, holder);
        json_tree_free(status);
        free(holder);
        return is_taken;
}
