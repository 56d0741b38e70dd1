#include "cli/doctor_daemon.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

/* Sockets of gatepostd that cannot be connected to: why, and where gatepostd listens instead. */

const char *
doctor_socket_finder(const struct config_listen *listen)
{
        return listen->address.ss_family == AF_UNIX ? "ss -lxp" : "ss -ltnp";
}

void
doctor_socket_report(struct doctor *doctor, const struct config_listen *listen, enum dial_failure failure,
                     const struct error *error)
{
        if (failure == DIAL_DENIED) {
                doctor_fail(doctor, EX_NOPERM, "%s: this user may not connect to the socket", error->text);
                doctor_remedy(doctor, "run it as the daemon's user: sudo -u gatepost gatepost -c %s doctor",
                              doctor->file);
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
        doctor_fail(doctor, EX_UNAVAILABLE,
                    "%s: nothing listens there; gatepostd does not run, or with another configuration, or a "
                    "socket unit has another address",
                    error->text);
        doctor_remedy(doctor, "start it: systemctl start @UNIT@; if it does not start: journalctl -u @UNIT@");
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
doctor_socket_elsewhere(struct doctor *doctor, const struct config_listen *listen)
{
        struct json_value *status = doctor_daemon_status(doctor);
        const struct json_value *loaded = json_tree_get(status, "configuration");
        const char *file = json_tree_text(loaded, "file");
        char addresses[400];
        int is_passed = 0,
            is_other =
                doctor_daemon_other(doctor, status) != NULL || doctor_daemon_has_two_files(doctor, status),
            is_elsewhere = file != NULL && list_listeners(loaded, addresses, sizeof(addresses), &is_passed);

        if (is_other) {
                doctor_daemon_report_other(doctor, "nothing listens there: ", status);
        } else if (is_elsewhere) {
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
                        doctor_remedy(doctor, "%s",
                                      doctor_restart_as(
                                          doctor,
                                          "systemctl restart @UNIT@ (a changed `listen` needs a restart)"));
        }
        json_tree_free(status);
        return is_other || is_elsewhere;
}
