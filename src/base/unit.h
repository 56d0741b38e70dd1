#ifndef BASE_UNIT_H
#define BASE_UNIT_H

/* The systemd units make these directories. */
#define STATE_DIRECTORY "/var/lib/gatepost"
#define SERVICE_DIRECTORY "/run/gatepost"

/*
 * What the systemd units hide from gatepostd: ProtectHome=yes closes the directories of users, and by
 * PrivateTmp=yes gatepostd has a /tmp and a /var/tmp of its own, which systemd deletes when it stops.
 */
struct unit_hiding {
        const char *directory;
        const char *setting;
        int is_own;          /* gatepostd has its own instead */
        const char *of_file; /* unit_remedy() */
        const char *of_directory;
};

/* Return what hides a path, by its name or by where its links lead; NULL: nothing. */
const struct unit_hiding *unit_hiding(const char *path);

/* Return whether a path is below /tmp or /var/tmp, which gatepostd has for itself. */
int unit_has_own(const char *path);

/* Return whether an absolute path is a directory or below it, by its name. */
int unit_is_below(const char *path, const char *directory);

/* Return whether systemd has started this process, rather than a process of a unit, such as a shell. */
int unit_runs_this(void);

/* Return whether systemd manages the services of this machine, as sd_booted(3) does. */
int unit_manager_runs(void);

/*
 * Return the role for which the package has a unit that takes a configuration file of this name: "receiver"
 * for receiver-NAME.conf, "router" for router-NAME.conf; else NULL.
 */
const char *unit_role(const char *file);

/**
 * unit_remedy(path, reason), unit_remedy_for_directory(path, reason):
 * After gatepostd could not open a file, or open, create or write a directory, with this errno: return text
 * to follow the reason if the unit or a relative path is why, which says so and what to do; else "".
 *
 * unit_remedy_without_manager(path):
 * Return text likewise if a directory of the units above a path, or the path itself, is missing because
 * systemd does not run.
 */
const char *unit_remedy(const char *path, int reason);
const char *unit_remedy_for_directory(const char *path, int reason);
const char *unit_remedy_without_manager(const char *path);

#endif
