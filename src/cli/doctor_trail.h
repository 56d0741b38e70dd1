#ifndef CLI_DOCTOR_TRAIL_H
#define CLI_DOCTOR_TRAIL_H

#include "cli/doctor.h"

/*
 * Follows test deliveries: finds their records in `deliveries`, and waits until the router's group has
 * committed beyond them. It joins no group and commits nothing.
 */
struct doctor_trail;

/* Note where `deliveries` ends before anything is sent. */
struct doctor_trail *doctor_trail_begin(struct doctor *doctor);
void doctor_trail_free(struct doctor_trail *trail);

/*
 * Add a delivery that was answered 200: by which one of several addresses, or NULL; when it was sent and
 * answered, by this machine's clock.
 */
void doctor_trail_add(struct doctor_trail *trail, const char *delivery_id, const char *address,
                      int64_t sent_ms, int64_t answered_ms);

/* Report whether the router has dropped all of them, and learn the broker's clock. */
void doctor_trail_follow(struct doctor *doctor, struct doctor_trail *trail);

#endif
