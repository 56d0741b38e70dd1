#ifndef TESTS_JUDGING_H
#define TESTS_JUDGING_H

#include "model/judge.h"
#include "spans.h"

/* A judge, its sources invoicing and billing, and the dedup table of one partition: use both as a checked fixture. */
void judging_setup(void);
void judging_teardown(void);

#define JUDGING_NOW INT64_C(1795230240000)
#define JUDGING_WINDOW INT64_C(160000)
#define ACCEPTED ((struct span)SPAN_OF("{\"event\":\"invoice.accepted\",\"id\":\"INV-1\",\"n\":17}"))
#define PENDING ((struct span)SPAN_OF("{\"event\":\"invoice.pending\"}"))

extern struct event_rules judging_invoicing, judging_billing;
extern struct topic_table *judging_topics;
extern struct judge *judging_judge;
extern struct dedup *judging_dedup;
extern struct verdict judging_verdict; /* the last one */

/* Set a pointer of the rules. */
void judging_point(struct pointer *pointer, const char *text);

/* The next record of the log, from the source invoicing. */
struct record judging_record(struct span delivery_id, struct span body);

/* The same, marked by the receiver as a replay of d-0. */
struct record judging_replay(struct span delivery_id, struct span body);

/* The offset of the next record. */
int64_t judging_offset(void);

/* Decide a record. */
enum verdict_action judging_decide(const struct record *record);

/* Decide a record that must be quarantined. Returns the name of the reason. */
const char *judging_reason(const struct record *record);

#endif
