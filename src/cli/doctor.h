#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include <stddef.h>
#include <stdint.h>

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/json_tree.h"
#include "cli/sign.h"
#include "config/config.h"
#include "config/findings.h"
#include "kafka/offsets.h"

/*
 * A check-up of an installation. doctor.c has the table of steps: each is a function that adds findings about
 * what it has looked at. No step calls another; they share only what struct doctor has. A finding says in a
 * line what is wrong, and its remedy what to do, or which paragraph of a manual has it.
 */

/* A test delivery that the receiver has accepted. */
struct doctor_sent {
        const struct config_source *source;
        char delivery_id[SIGN_ID_SIZE];
        int64_t sent_ms, answered_ms; /* by this machine's clock */
        int32_t partition;            /* of its record in `deliveries`; -1: not found yet */
        int64_t offset;
        int64_t appended_ms; /* by the broker's clock; 0: unknown */
};

struct doctor {
        const char *file;
        char *command; /* how to call gatepost with the file */
        /* Remedies: how to start gatepostd with the file, let it read the file, and start it again. */
        char *start, *reload, *restart;
        const char *url; /* --to, or NULL */
        int sends;       /* test deliveries; not with --no-send */
        struct findings findings;
        /* Of the step `configuration`. */
        struct config *config;
        /* Of the step `kafka`; NULL: the broker is inside gatepostd. */
        rd_kafka_t *client;
        /* Of the step `group`; NULL: not known. The logs as they were before the test deliveries. */
        struct offsets *offsets;
        struct range *logs;
        size_t n_logs;
        int n_routers; /* members of the group; -1: not known */
        /* Of the step `daemon`: its /status; NULL: not known. */
        struct json_value *status;
        /* Of the step `delivery`. */
        struct doctor_sent *sent;
        size_t n_sent;
};

/**
 * doctor_fail(doctor, status, subject, remedy, format, ...):
 * Add a finding that something does not work, with an exit status. The subject may be NULL; so may the
 * remedy, which the caller then sets. Return the finding, valid until the next is added.
 */
struct finding *doctor_fail(struct doctor *doctor, int status, const char *subject, const char *remedy,
                            const char *format, ...) PRINTF_LIKE(5, 6);

/* Add a finding that something is in order, or was not checked. The subject may be NULL. */
#define doctor_pass(doctor, subject, ...) \
        findings_add(&(doctor)->findings, FINDING_PASSED, subject, __VA_ARGS__)
#define doctor_skip(doctor, subject, ...) \
        findings_add(&(doctor)->findings, FINDING_SKIPPED, subject, __VA_ARGS__)

/* The steps, in files by what they look at. */
void doctor_check_configuration(struct doctor *doctor);

void doctor_check_kafka(struct doctor *doctor);
void doctor_check_brokers(struct doctor *doctor);
void doctor_check_topics(struct doctor *doctor);
void doctor_check_group(struct doctor *doctor);

void doctor_check_listeners(struct doctor *doctor);
void doctor_check_daemon(struct doctor *doctor);
void doctor_check_loaded(struct doctor *doctor);
void doctor_check_state(struct doctor *doctor);

void doctor_check_delivery(struct doctor *doctor);
void doctor_check_router(struct doctor *doctor);
void doctor_check_clock(struct doctor *doctor);

void doctor_check_service(struct doctor *doctor);

#endif
