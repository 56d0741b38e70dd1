#include "cli/doctor_daemon.h"

#include "cli/status.h"

/* Whether the receiver's spool has something that takes a person: it may be ready all the same. */

static double
of(const struct doctor *doctor, const char *name)
{
        return status_number(json_tree_get(doctor->status, "spool"), name);
}

void
doctor_spool_check(struct doctor *doctor)
{
        if (doctor->config->spool == NULL || json_tree_get(doctor->status, "spool") == NULL)
                return;
        doctor_begin(doctor, "spool", "%s", doctor->config->spool);
        if (of(doctor, "damagedSegments") > 0)
                doctor_warn(
                    doctor,
                    "%.0f damaged segments, with %.0f bytes that cannot be read: deliveries that were "
                    "answered 200 may be lost; see gatepost spool check",
                    of(doctor, "damagedSegments"), of(doctor, "lostBytes"));
        else if (of(doctor, "refusedRecords") > 0)
                doctor_warn(doctor, "Kafka refuses %.0f spooled deliveries: journalctl -u gatepostd says why",
                            of(doctor, "refusedRecords"));
        else if (of(doctor, "spoolingSinceSeconds") > 0)
                doctor_warn(doctor,
                            "deliveries go to the spool rather than to Kafka: journalctl -u gatepostd says "
                            "why");
        else
                doctor_pass(doctor, "%.0f deliveries wait", of(doctor, "records"));
}
