#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include <stddef.h>
#include <stdint.h>

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/json.h"
#include "base/json_tree.h"
#include "config/config.h"
#include "kafka/broker_dialer.h"

/*
 * A check-up of an installation, step by step. doctor.c has the table of steps and the command; a step is a
 * function, which reports one result or several: one for each broker, topic and so on.
 */

enum doctor_result {
        DOCTOR_OK,
        DOCTOR_NOTE,    /* works as configured, which may not be what is wanted later */
        DOCTOR_WARNING, /* works, but probably not as intended */
        DOCTOR_FAILED,
        DOCTOR_SKIPPED, /* not verified, for the reason in the detail */
        DOCTOR_N_RESULTS,
};

#define DOCTOR_SUBJECT_SIZE 300

/* Where to print the results, and what the last line says. */
struct doctor_report {
        struct json_writer *json; /* NULL: print text */
        int shows_waiting;        /* stdout is a terminal */
        int has_ticks;            /* UTF-8 */
        char *unit;               /* what @UNIT@ stands for */
        char *command;            /* what @GATEPOST@ stands for */
        const char *name;         /* of the present result */
        int is_open;              /* it has begun, and not ended */
        char subject[DOCTOR_SUBJECT_SIZE];
        int64_t began_ms;
        size_t n_results[DOCTOR_N_RESULTS];
        char *warned; /* the steps with warnings; NULL: there are none */
        const char *warned_last;
        /* Of the first failure. */
        char *cause;
        char *remedy;
        int status;
        int has_remedy; /* of the last failure */
        /* Of the first warning that may be why gatepostd does not run; NULL: there is none. */
        char *suspect;
        char *suspect_remedy;
        size_t n_suspects;
};

struct doctor_broker;

/* A check-up that is under way. What a step learns, later ones may use. */
struct doctor {
        struct doctor_report report;
        const char *file;
        const char *url; /* --to, or NULL */
        int sends;       /* test deliveries; not with --no-send */
        struct config *config;
        struct broker_dialer *dialer;
        struct doctor_broker *usable; /* a broker that takes our requests; NULL: none */
        int has_two_clusters;         /* among the brokers of bootstrap.servers */
        rd_kafka_t *client;           /* NULL: not connected */
        int n_brokers;                /* those that run */
        int reaches_kafka;            /* librdkafka did, with the present configuration */
        char *restart;                /* what doctor_restart() has returned */
        struct json_value *status;    /* of the daemon, from /status; NULL: unknown */
        int is_daemon_outdated;       /* it has not loaded the files as they are now */
        int is_untrusted;             /* the receiver takes only connections of a trusted_proxy */
        int receives;                 /* gatepostd answers on a listener for deliveries of this file */
        int is_certificate_outdated;  /* gatepostd serves another one, or another chain, than the file has */
        int64_t skew_ms;              /* the broker's clock minus ours, beyond what the way may take */
        int knows_skew;
};

/* doctor_report.c: Begin a result, and say on a terminal what it waits for. */
void doctor_begin(struct doctor *doctor, const char *name, const char *subject, ...) PRINTF_LIKE(3, 4);

/*
 * End the result and print it. After a failure, doctor_remedy() says what to do about it. In a detail and a
 * remedy, @UNIT@ stands for the systemd unit that runs gatepostd on this machine with the file, and
 * @GATEPOST@ for how to call gatepost with the file: in commands that would do something else with another.
 */
void doctor_pass(struct doctor *doctor, const char *detail, ...) PRINTF_LIKE(2, 3);
void doctor_note(struct doctor *doctor, const char *detail, ...) PRINTF_LIKE(2, 3);
void doctor_warn(struct doctor *doctor, const char *detail, ...) PRINTF_LIKE(2, 3);
void doctor_skip(struct doctor *doctor, const char *detail, ...) PRINTF_LIKE(2, 3);
void doctor_fail(struct doctor *doctor, int status, const char *detail, ...) PRINTF_LIKE(3, 4);
void doctor_remedy(struct doctor *doctor, const char *remedy, ...) PRINTF_LIKE(2, 3);

/*
 * Fail with a message of the daemon or of `check`. If that names a command, as in "...; create it: COMMAND",
 * the command is the remedy, and stands only there; doctor_remedy() does not change it any more. Later
 * failures keep it, since only the first failure's remedy is printed.
 */
void doctor_fail_as(struct doctor *doctor, int status, const char *text);

/*
 * Before the failure because gatepostd does not run: make a warning that may be why the cause, if there
 * is one.
 */
void doctor_blame(struct doctor *doctor);

/*
 * Prepare to report on a file, and print the last line. doctor_report_end() returns the exit status.
 * Between the two, SIGINT and SIGTERM end the process with that line within a second; steps that look at
 * terminal_is_interrupted() end sooner.
 */
void doctor_report_begin(struct doctor_report *report, const char *file, int as_json);
int doctor_report_end(struct doctor_report *report);

/* The steps, in files of their own. */
void doctor_check_configuration(struct doctor *doctor);
void doctor_check_files(struct doctor *doctor);
void doctor_check_certificate(struct doctor *doctor);
void doctor_check_brokers(struct doctor *doctor);
void doctor_check_client(struct doctor *doctor);
void doctor_check_advertised(struct doctor *doctor);
void doctor_check_permissions(struct doctor *doctor);
void doctor_check_topics(struct doctor *doctor);
void doctor_check_listeners(struct doctor *doctor);
void doctor_check_daemon(struct doctor *doctor);
void doctor_check_delivery(struct doctor *doctor);
void doctor_check_proxy(struct doctor *doctor);
void doctor_check_partitions(struct doctor *doctor);
void doctor_check_clock(struct doctor *doctor);
void doctor_check_service(struct doctor *doctor);

/* doctor_files.c: Say what to do about a file that this user may not read; the path may be NULL. */
void doctor_files_advise(struct doctor *doctor, const char *path);

/* doctor_clock.c: Compare the broker's clock, by which it stamped a record in between, with ours. */
void doctor_clock_learn(struct doctor *doctor, const rd_kafka_message_t *message, int64_t sent_ms,
                        int64_t answered_ms);

/*
 * doctor_restart.c: Return how to restart gatepostd, for a detail or a remedy: by systemctl restart, or by
 * another phrase. If its spool has deliveries that a restart would not drain, this says what to do about
 * them. The text is valid until the next call. Remedies name a restart of gatepostd only by this text.
 */
const char *doctor_restart(struct doctor *doctor);
const char *doctor_restart_as(struct doctor *doctor, const char *how);

/* Close the connections to Kafka, in doctor_kafka.c. */
void doctor_kafka_close(struct doctor *doctor);

#endif
