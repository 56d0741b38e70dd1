#ifndef CLI_DOCTOR_TRAIL_H
#define CLI_DOCTOR_TRAIL_H

#include "base/bytes.h"
#include "cli/doctor.h"

/*
 * Follows test deliveries: finds their records in `deliveries`, and waits until the router's group has
 * committed beyond them. It joins no group and commits nothing.
 */
struct doctor_trail;

/* Note where `deliveries` ends before anything is sent. */
struct doctor_trail *doctor_trail_begin(struct doctor *doctor);
void doctor_trail_free(struct doctor_trail *trail);

/* The most partitions that deliveries signed by one key are sent to. */
#define DOCTOR_TRAIL_MAX 64

/*
 * Choose a delivery-id by which the delivery comes to a partition that none signed by this key has reached.
 * Returns 1; or 0 if there is none, or if the partitions are not known.
 */
int doctor_trail_choose(const struct doctor_trail *trail, const struct signature_key *key,
                        char id[BYTES_UUID_SIZE]);

/*
 * Add a delivery that was answered 200: the key by which it was signed; by which one of several addresses, or
 * NULL; when it was sent and answered, by this machine's clock.
 */
void doctor_trail_add(struct doctor_trail *trail, const struct signature_key *key, const char *delivery_id,
                      const char *address, int64_t sent_ms, int64_t answered_ms);

/* Report whether the router has dropped all of them, and learn the broker's clock. */
void doctor_trail_follow(struct doctor *doctor, struct doctor_trail *trail);

#endif
