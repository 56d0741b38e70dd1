#ifndef CLI_DOCTOR_SIGHT_H
#define CLI_DOCTOR_SIGHT_H

#include "cli/doctor.h"
#include "cli/identity.h"

/*
 * What gatepostd sees of the files: its unit hides some directories and leaves few writable, and a container
 * has those that are mounted in it. This is certain as root while gatepostd runs, by the root directory of
 * its process; else it is presumed of the unit's user, as the units are by default.
 */

/* Set identity->root if the process of a running daemon with this file can be found. */
void doctor_sight_find(const struct doctor *doctor, struct identity *identity);

/* Where a path leads for the running gatepostd. */
enum doctor_sight {
        DOCTOR_SIGHT_UNKNOWN, /* its process was not found, or this user may not look at its files */
        DOCTOR_SIGHT_ABSENT,
        DOCTOR_SIGHT_SHARED, /* to the same file as for this command */
        DOCTOR_SIGHT_OTHER,  /* to a file where this command has none, or another one */
};

enum doctor_sight doctor_sight_of(const struct doctor *doctor, const char *path);

/*
 * Return the file of another gatepostd that has the address of a listener for deliveries, by that file, to be
 * freed. NULL: none is known, or a gatepostd with the file of this check-up runs.
 */
char *doctor_sight_holder(const struct doctor *doctor, const struct config_listen *listen);

/* To be said of the place of such a file. */
#define DOCTOR_SIGHT_OWN "a directory of gatepostd's own, by PrivateTmp= of its unit or in a container"

/* Whether gatepostd does not see a file or directory that exists. */
int doctor_sight_hides(const struct identity *identity, const char *path);

/* Whether a path is below a directory that the unit hides by default, without telling who runs gatepostd. */
int doctor_sight_is_private(const char *path);

/* Whether a directory is read-only for gatepostd. `on` is it, or without it the one above. */
int doctor_sight_is_read_only(const struct identity *identity, const char *path, const char *on);

/* To be said of what is hidden, as a reason for the remedy. */
#define DOCTOR_SIGHT_HIDDEN \
        "gatepostd does not see it there: ProtectHome= and PrivateTmp= of its unit hide what is below " \
        "/home, " \
        "/root, /run/user, /tmp and /var/tmp, and a container what is not mounted in it"

#endif
