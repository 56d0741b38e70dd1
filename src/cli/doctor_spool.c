#include "cli/doctor_daemon.h"

#include <sys/statvfs.h>
#include <sysexits.h>

#include "base/compiler.h"
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

/* Number of failures of the spool since the daemon was started, of a kind or of all. */
static double
failures_of(const struct doctor *doctor, const char *kind)
{
        return status_number(json_tree_get(json_tree_get(doctor->status, "spool"), "errors"), kind);
}

static double
failures(const struct doctor *doctor)
{
        static const char *const kinds[] = {"full", "write", "sync", "place"};
        double n = 0;

        for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
                n += failures_of(doctor, kinds[i]);
        return n;
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

        if (statvfs(doctor->config->spool, &disk) != 0)
                return;
        space = (double)disk.f_bavail * (double)disk.f_frsize;
        if (disk.f_files > 0 && disk.f_favail == 0) {
                doctor_begin(doctor, "spool", "%s", doctor->config->spool);
                doctor_warn(
                    doctor,
                    "its file system has no inode left (df -i): deliveries that come when Kafka is away "
                    "are answered 503; delete files");
        }
        if (space >= more)
                return;
        doctor_begin(doctor, "spool", "%s", doctor->config->spool);
        doctor_warn(
            doctor,
            "its disk has %.0f MiB left, and the spool may take %.0f MiB more: deliveries that come when "
            "the disk is full and Kafka is away are answered 503; make room, or lower spool_max",
            space / MIB, more / MIB);
}

/* A restart opens the directory that is there then, and drains no other one. */
static void
report_displaced(struct doctor *doctor)
{
        doctor_warn(
            doctor,
            "since gatepostd was started, the directory, or a segment in it, was renamed, deleted or "
            "replaced, and deliveries that come when Kafka is away are answered 503 until it is restored: "
            "put it back, or unmount what hides it; %.0f deliveries are in it, which a restart does not "
            "drain before that",
            of(doctor, "records"));
}

void
doctor_spool_check(struct doctor *doctor)
{
        if (doctor->config->spool == NULL || json_tree_get(doctor->status, "spool") == NULL)
                return;
        doctor_begin(doctor, "spool", "%s", doctor->config->spool);
        if (of(doctor, "lostRecords") > 0) {
                doctor_warn(
                    doctor,
                    "%.0f deliveries that were answered 200 are lost since gatepostd was started: their "
                    "segments were deleted, moved or cannot be read back; journalctl -u @UNIT@ says when, "
                    "and the service has the deliveries of that time",
                    of(doctor, "lostRecords"));
                doctor_begin(doctor, "spool", "%s", doctor->config->spool);
        }
        if (of(doctor, "damagedSegments") > 0)
                doctor_warn(
                    doctor,
                    "%.0f damaged segments, with %.0f bytes that cannot be read: deliveries that were "
                    "answered 200 may be lost; see gatepost spool check",
                    of(doctor, "damagedSegments"), of(doctor, "lostBytes"));
        else if (of(doctor, "uncountedSegments") > 0)
                doctor_warn(
                    doctor,
                    "%.0f segments of an earlier process are not read yet, and the deliveries in them wait, "
                    "besides %.0f others; if this stays, journalctl -u @UNIT@ says why: the segments may "
                    "belong to another user",
                    of(doctor, "uncountedSegments"), of(doctor, "records"));
        else if (of(doctor, "refusedRecords") > 0)
                doctor_warn(doctor, "Kafka refuses %.0f spooled deliveries: journalctl -u @UNIT@ says why",
                            of(doctor, "refusedRecords"));
        else if (failures_of(doctor, "place") > 0)
                report_displaced(doctor);
        else if (failures(doctor) > 0)
                doctor_warn(
                    doctor,
                    "it could not store deliveries %.0f times since gatepostd was started, and they were "
                    "answered 503: journalctl -u @UNIT@ says why; is the disk full?",
                    failures(doctor));
        else if (of(doctor, "spoolingSinceSeconds") > 0)
                doctor_warn(doctor,
                            "deliveries go to the spool rather than to Kafka: journalctl -u @UNIT@ says "
                            "why");
        else
                doctor_pass(doctor, "%.0f deliveries wait", of(doctor, "records"));
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
