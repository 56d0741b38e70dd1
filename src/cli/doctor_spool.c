#include "cli/doctor_daemon.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sysexits.h>

#include "cli/doctor_sight.h"
#include "cli/status.h"

/*
 * Whether the spool, or the state of the router, has something that takes a person: both may be ready all
 * the same.
 */

#define MIB (1024.0 * 1024.0)

static double
of(const struct doctor *doctor, const char *name)
{
        return status_number(json_tree_get(doctor->status, "spool"), name);
}

/* Whether the daemon's directory has another place, or none. */
static int
is_displaced(const struct doctor *doctor)
{
        return !status_flag(json_tree_get(doctor->status, "spool"), "inPlace");
}

int
doctor_spool_is_at(const struct json_value *spool, const char *path)
{
        struct stat there;

        return stat(path, &there) == 0 && status_is_number(spool, "device", (intmax_t)there.st_dev) &&
               status_is_number(spool, "inode", (intmax_t)there.st_ino);
}

int
doctor_spool_is_private(const struct json_value *spool)
{
        const char *path = json_tree_text(spool, "directory");
        struct stat there;

        if (path == NULL || json_tree_get(spool, "inode") == NULL || !status_flag(spool, "inPlace"))
                return 0;
        if (stat(path, &there) != 0)
                return errno == ENOENT || errno == ENOTDIR;
        return !doctor_spool_is_at(spool, path);
}

/* Return the path of the spool: the daemon's own, which the present file may have changed. */
static const char *
place_of(const struct doctor *doctor)
{
        const char *path = json_tree_text(json_tree_get(doctor->status, "spool"), "directory");

        return path == NULL ? "" : path;
}

static void
begin(struct doctor *doctor)
{
        doctor_begin(doctor, "spool", "%s", place_of(doctor));
}

/*
 * Warn if the disk is full before the spool is, which nothing else says before Kafka is away. Some file
 * systems, such as Btrfs, do not limit the number of files, and say 0.
 */
static void
check_space(struct doctor *doctor)
{
        double more = of(doctor, "limitBytes") - of(doctor, "bytes"), space;
        struct statvfs disk;

        if (doctor_spool_is_private(json_tree_get(doctor->status, "spool")) ||
            statvfs(place_of(doctor), &disk) != 0)
                return;
        space = (double)disk.f_bavail * (double)disk.f_frsize;
        if (disk.f_files > 0 && disk.f_favail == 0) {
                begin(doctor);
                doctor_warn(
                    doctor,
                    "its file system has no inode left (df -i): deliveries that come when Kafka is away "
                    "are answered 503; delete files");
        }
        if (space >= more)
                return;
        begin(doctor);
        doctor_warn(
            doctor,
            "its disk has %.0f MiB left, and the spool may take %.0f MiB more: deliveries that come when "
            "the disk is full and Kafka is away are answered 503; make room, or lower spool_max",
            space / MIB, more / MIB);
}

/*
 * Warn if the directory is not in its place. Putting it back helps; without deliveries in it, so does a
 * restart, which opens the directory that is there then.
 */
static void
check_place(struct doctor *doctor)
{
        static const char seen[] =
            "since gatepostd was started, the directory was renamed, deleted, replaced or "
            "hidden by a mount, and deliveries that come when Kafka is away are answered 503";

        if (!is_displaced(doctor))
                return;
        begin(doctor);
        if (of(doctor, "segments") > 0)
                doctor_warn(
                    doctor,
                    "%s until it is put back; %.0f deliveries are in it, which a restart does not drain "
                    "before that (if it was deleted, they are lost)",
                    seen, of(doctor, "records"));
        else
                doctor_warn(
                    doctor,
                    "%s; no delivery is in it: put it back, or let gatepostd use the directory that is "
                    "at `spool` now: %s",
                    seen, doctor_restart(doctor));
}

/* Warn if the directory may end with the process. */
static void
check_private(struct doctor *doctor)
{
        if (!doctor_spool_is_private(json_tree_get(doctor->status, "spool")))
                return;
        begin(doctor);
        doctor_warn(doctor,
                    "it is " DOCTOR_SIGHT_OWN ", and may be deleted when gatepostd stops, with the "
                    "deliveries in it (%.0f now): name a directory below /var/lib/gatepost; in a container, "
                    "one on a volume, and run gatepost doctor there",
                    of(doctor, "records"));
}

/* Warn of deliveries that are lost, or may be. */
static void
check_losses(struct doctor *doctor)
{
        if (of(doctor, "lostRecords") > 0) {
                begin(doctor);
                doctor_warn(
                    doctor,
                    "%.0f deliveries that were answered 200 are lost since gatepostd was started: their "
                    "segments were deleted, moved or cannot be read back; journalctl -u @UNIT@ says when, "
                    "and the service has the deliveries of that time",
                    of(doctor, "lostRecords"));
        }
        if (of(doctor, "damagedSegments") > 0) {
                begin(doctor);
                doctor_warn(
                    doctor,
                    "%.0f damaged segments, with %.0f bytes that cannot be read: deliveries that were "
                    "answered 200 may be lost; see gatepost spool list %s",
                    of(doctor, "damagedSegments"), of(doctor, "lostBytes"), place_of(doctor));
        }
}

/* Warn of deliveries that stay in the spool for another reason than that Kafka is away. */
static void
check_left(struct doctor *doctor)
{
        if (of(doctor, "uncountedSegments") > 0) {
                begin(doctor);
                doctor_warn(
                    doctor,
                    "%.0f segments of an earlier process are not read yet, and the deliveries in them wait, "
                    "besides %.0f others; if this stays, journalctl -u @UNIT@ says why: the segments may "
                    "belong to another user",
                    of(doctor, "uncountedSegments"), of(doctor, "records"));
        }
        if (of(doctor, "refusedRecords") > 0) {
                begin(doctor);
                doctor_warn(doctor, "Kafka refuses %.0f spooled deliveries: journalctl -u @UNIT@ says why",
                            of(doctor, "refusedRecords"));
        }
}

/* Warn of deliveries that were not stored, or are stored at present. */
static void
check_use(struct doctor *doctor)
{
        const struct json_value *errors = json_tree_get(json_tree_get(doctor->status, "spool"), "errors");
        double n_full = status_number(errors, "full");
        double n_explained = is_displaced(doctor) ? status_number(errors, "place") : 0; /* by check_place() */
        double n_other = status_sum(errors) - n_full - n_explained;

        if (n_full > 0) {
                begin(doctor);
                doctor_warn(doctor,
                            "it had no room since gatepostd was started, and deliveries that came then were "
                            "answered 503, so that the service sends them again: raise spool_max if the disk "
                            "has room; if \"No space left on device\" is in journalctl -u @UNIT@, make room");
        }
        if (n_other > 0) {
                begin(doctor);
                doctor_warn(doctor,
                            "it failed %.0f times since gatepostd was started, and deliveries that came then "
                            "were answered 503: journalctl -u @UNIT@ says why; was the directory moved?",
                            n_other);
        }
        if (of(doctor, "spoolingSinceSeconds") > 0) {
                begin(doctor);
                doctor_warn(doctor,
                            "deliveries go to the spool rather than to Kafka: journalctl -u @UNIT@ says "
                            "why");
        }
}

void
doctor_spool_check(struct doctor *doctor)
{
        size_t n_before = doctor->report.n_results[DOCTOR_WARNING];

        if (json_tree_get(doctor->status, "spool") == NULL)
                return;
        check_losses(doctor);
        check_place(doctor);
        check_private(doctor);
        check_left(doctor);
        check_use(doctor);
        if (doctor->report.n_results[DOCTOR_WARNING] == n_before) {
                begin(doctor);
                doctor_pass(doctor, "%.0f deliveries wait", of(doctor, "records"));
        }
        check_space(doctor);
}

void
doctor_state_check(struct doctor *doctor)
{
        const struct json_value *state = json_tree_get(doctor->status, "state");

        if (doctor->config->state == NULL || state == NULL)
                return;
        doctor_begin(doctor, "state", "%s", doctor->config->state);
        if (status_number(state, "errors") > 0)
                doctor_warn(
                    doctor,
                    "dedup tables could not be written %.0f times since gatepostd was started, and stay in "
                    "memory: journalctl -u @UNIT@ says why; is the disk full?",
                    status_number(state, "errors"));
        else
                doctor_pass(doctor, "%.0f files", status_number(state, "files"));
}

double
doctor_spool_count(const struct doctor *doctor)
{
        struct json_value *status = doctor_daemon_status(doctor);
        double n = status_number(json_tree_get(status, "spool"), "records");

        json_tree_free(status);
        return n;
}

void
doctor_spool_report(struct doctor *doctor, double n, int within_s)
{
        doctor_fail(doctor, EX_UNAVAILABLE,
                    "the test delivery was accepted, but Kafka does not have it within %d s: the receiver's "
                    "spool has %.0f deliveries that wait for Kafka",
                    within_s, n);
        doctor_remedy(doctor, "see why Kafka is slow or does not take them: journalctl -u @UNIT@; run it "
                              "again when the spool is empty, by gatepost status");
}
