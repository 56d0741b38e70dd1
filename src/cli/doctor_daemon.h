#ifndef CLI_DOCTOR_DAEMON_H
#define CLI_DOCTOR_DAEMON_H

#include "base/http_client.h"
#include "cli/doctor.h"
#include "cli/test_delivery.h"

/**
 * doctor_daemon_get(doctor, path, answer, error):
 * Ask the daemon's admin endpoint. Returns 0, and the caller frees answer->body; or -1 with the reason.
 */
int doctor_daemon_get(const struct doctor *doctor, const char *path, struct http_client_answer *answer,
                      struct error *error) MUST_CHECK;

/* Read /status. Returns it, to be released by json_tree_free(), or NULL. */
struct json_value *doctor_daemon_status(const struct doctor *doctor);

/* Return why the daemon does not reach Kafka, by its own account, or NULL. */
const char *doctor_kafka_trouble(const struct doctor *doctor);

/* doctor_age.c: Report whether the daemon has loaded the files as they are now. */
void doctor_age_check(struct doctor *doctor);

/*
 * Whether a daemon with this report has read a file as it is now, so that it can, by whatever means: its unit
 * may have AmbientCapabilities=. The report may be NULL.
 */
int doctor_age_has_read(const struct doctor *doctor, const struct json_value *status, const char *path);

/* Return the first item of an array that is in `configuration` of the daemon's report, or NULL. */
const struct json_value *doctor_age_first(const struct doctor *doctor, const char *name);

/* Return the source for which the daemon has the path of this one, if it has another name; or NULL. */
const char *doctor_sources_other(const struct doctor *doctor, const struct config_source *source);

/* Return what to do before a reload because of a source: ", but first ...", or "". */
const char *doctor_sources_caution(const struct doctor *doctor);

/*
 * Return how to let the daemon load the files as they are now, for the end of a remedy: by a reload; or, if
 * the last one was refused, where this is reported.
 */
const char *doctor_age_reload(const struct doctor *doctor);

/* Return why the daemon uses Kafka with other options than the files have, "it ...", or NULL. */
const char *doctor_age_kafka(const struct doctor *doctor);

/* doctor_refusals.c: Warn of deliveries that the daemon has refused lately. */
void doctor_refusals_check(struct doctor *doctor);

/* Warn of deliveries that the router has lately found to be lost. */
void doctor_losses_check(struct doctor *doctor);

/* What is lately, and whether an event in the report of the daemon was then. */
#define DOCTOR_RECENT_S 3600
int doctor_is_recent(const struct json_value *event);

/* Return the period of which the daemon knows such events: the last hour, or since its start. */
#define DOCTOR_PERIOD_SIZE 80
const char *doctor_period(const struct doctor *doctor, char text[DOCTOR_PERIOD_SIZE]);

/* Return how many seconds ago a time of /status was, by the name of its member. */
double doctor_seconds_since(const struct json_value *object, const char *name);

/* doctor_quarantine.c: Warn of deliveries that were put into quarantine lately. */
void doctor_quarantine_check(struct doctor *doctor);

/*
 * Report that test deliveries were put into quarantine, for this reason: in which partitions, such as
 * " in 1 of 2 partitions (0)", or "" for all.
 */
void doctor_quarantine_report(struct doctor *doctor, const char *where, const char *reason);

/* doctor_answer.c: Whether the receiver has accepted a test delivery that was answered. */
int doctor_answer_accepts(const struct test_delivery *delivery);

/* Whether gatepostd has refused it, and another receiver behind the URL may accept it. */
int doctor_answer_may_differ(const struct test_delivery *delivery);

/* Report that it was not accepted, though another like it was, by another receiver, if is_mixed. */
void doctor_answer_report(struct doctor *doctor, const struct test_delivery *delivery, int is_mixed);

/* Whether a proxy before the receiver has refused it by 429 or 503, as when there are too many at once. */
int doctor_answer_limits(const struct http_client_answer *answer);

/* Return the state of the certificate of the URL, which may be a proxy's. Set error unless it is valid. */
enum certificate_state doctor_answer_certificate(const struct http_client_answer *answer,
                                                 struct error *error);

/* Report that there is none. */
void doctor_answer_missing(struct doctor *doctor, const struct http_client_answer *answer,
                           const struct error *error);

/* doctor_spool.c: Report what is wrong with the receiver's spool, if it has one. */
void doctor_spool_check(struct doctor *doctor);

/* Whether a path leads to the directory of a receiver's spool, by the member `spool` of its report. */
int doctor_spool_is_at(const struct json_value *spool, const char *path);

/*
 * Whether the directory is at its path for gatepostd, but not for this command: gatepostd has another /tmp,
 * or runs in a container.
 */
int doctor_spool_is_private(const struct json_value *spool);

/* Return the number of deliveries in the spool of this machine's receiver. */
double doctor_spool_count(const struct doctor *doctor);

/* Report that it has had so many for some seconds, of which a test delivery must be one. */
void doctor_spool_report(struct doctor *doctor, double n, int within_s);

void doctor_state_check(struct doctor *doctor);

/* Whether two paths lead to the same place of this machine, where a file need not exist any more. */
int doctor_daemon_is_same_path(const char *a, const char *b);

/*
 * Return the configuration file of the gatepostd that answers with a report, if it is another one than the
 * file's: it has read neither the file, by whatever path, nor has it its roles, instance and topics. Two have
 * the same `listen` in [admin], of which only one runs. Otherwise NULL.
 */
const char *doctor_daemon_other(const struct doctor *doctor, const struct json_value *status);

/* Whether its file and this one are two files of this machine, rather than one that is mounted twice. */
int doctor_daemon_has_two_files(const struct doctor *doctor, const struct json_value *status);

/*
 * Return how to let the daemon that answers load the file, for the end of a detail: a reload helps only if it
 * is the one of this file. To be freed.
 */
char *doctor_daemon_reload(struct doctor *doctor) MUST_CHECK;

/* Return what to do about a daemon that has loaded another file, to be freed. */
char *doctor_daemon_explain(struct doctor *doctor, const char *loaded) MUST_CHECK;

/* Report that another one answers, and what differs, after what was seen before. */
void doctor_daemon_report_other(struct doctor *doctor, const char *seen, const struct json_value *status);

/*
 * doctor_socket.c: Report that a socket of the daemon cannot be connected to: if nothing listens there, where
 * gatepostd listens instead, as far as this user can see.
 */
void doctor_socket_report(struct doctor *doctor, const struct config_listen *listen,
                          enum dial_failure failure, const struct error *error);

/*
 * Whether the gatepostd that accepts connections there is another one, so that the one of the file could not
 * start. Reports that, unless something answers at its admin endpoint, which doctor_check_daemon() reports.
 */
int doctor_socket_is_taken(struct doctor *doctor, const struct config_listen *listen);

/* Whether a gatepostd listens, by its report, where it conflicts with the address of a listener. */
int doctor_socket_is_listed(const struct json_value *status, const struct config_listen *listen);

/* Return the command that lists who listens on such a socket. */
const char *doctor_socket_finder(const struct config_listen *listen);

/* After a failure: whatever listens on a socket of this section does not answer as gatepostd should. */
void doctor_socket_advise(struct doctor *doctor, const struct config_listen *listen, const char *section);

#endif
