#ifndef CLI_DOCTOR_TRAIL_WORK_H
#define CLI_DOCTOR_TRAIL_WORK_H

#include "cli/doctor_kafka.h"
#include "cli/sign.h"

/* Test deliveries that are followed (doctor_trail.c), and what is said of them (doctor_trail_report.c). */

#define TRAIL_DECIDE_TIMEOUT_MS 30000
#define TRAIL_UNKNOWN INT64_MIN

struct trail_sent {
        char delivery_id[SIGN_ID_SIZE];
        char address[DIAL_TEXT_SIZE];    /* empty: the only one */
        const struct signature_key *key; /* by which it was signed */
        int32_t aim;                     /* the partition of its delivery-id; -1: unknown */
        int64_t sent_ms, answered_ms;
        int32_t partition; /* -1: not found in `deliveries` */
        int64_t offset;
        int64_t committed_first, committed; /* in its partition, by the first and the last look; -1: none */
        char *reason;                       /* why a router has quarantined it; NULL: it has not */
};

struct doctor_trail {
        struct doctor *doctor;
        struct trail_sent *items;
        size_t n;
        struct offsets *offsets;
        struct range *ranges; /* of `deliveries`: first what was there before, then what came since */
        size_t n_ranges;
        struct range *quarantine; /* likewise; NULL: this account may not read it */
        size_t n_quarantine;
        struct range *open; /* what open transactions hide of `deliveries`, when the records were not found */
        int n_open;
        struct doctor_positions positions; /* when the records were found */
        double n_spooled;      /* deliveries in the receiver's spool, when the records were not found */
        struct error error;    /* why it cannot be followed; empty: it can */
        enum range_result why; /* Kafka is the reason; RANGE_DONE: it is not */
        double n_tests_before; /* of the daemon, where the broker is inside */
        int64_t answered_ms;   /* the last one */
        int64_t took_ms;       /* from then until all were decided */
};

/* Whether a router has committed beyond a delivery, in a log that the offset fits. */
int doctor_trail_is_decided(const struct doctor_trail *trail, const struct trail_sent *sent);

/* Return the first delivery that a router has quarantined, or NULL. */
const struct trail_sent *doctor_trail_quarantined(const struct doctor_trail *trail);

/* Return the first delivery whose record was not found, or NULL. */
const struct trail_sent *doctor_trail_missing(const struct doctor_trail *trail);

/* Report that it cannot be followed, that it was not found, or that no router has decided on it. */
void doctor_trail_report_lost(struct doctor *doctor, const struct doctor_trail *trail);
void doctor_trail_report_not_found(struct doctor *doctor, const struct doctor_trail *trail);
void doctor_trail_report_undecided(struct doctor *doctor, const struct doctor_trail *trail);

/* Report that all are decided; whether they can have been quarantined is known, or not. */
void doctor_trail_report_decided(struct doctor *doctor, const struct doctor_trail *trail, int is_read);

#endif
