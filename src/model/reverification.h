#ifndef MODEL_REVERIFICATION_H
#define MODEL_REVERIFICATION_H

#include "base/compiler.h"
#include "base/error.h"
#include "model/record.h"
#include "model/rules.h"

/*
 * The router's verification that a record of `deliveries` is genuine, for sites that do not trust everybody
 * who can write to that topic. It proves what the service's signature covers: timestamp and body, but neither
 * delivery-id nor webhook-id.
 *
 * A record of a receiver was fresh when it was received; the broker's clock says when it was appended. The
 * age may exceed the tolerance by REVERIFICATION_ALLOWANCE_MS, for the longest ack_timeout and for clocks
 * that differ.
 *
 * A record that was in a receiver's spool (gatepost-spooled) is appended long after it was received. The
 * receiver signs the time of reception with the source's secret, in gatepost-spool-signature, and the
 * delivery must have been fresh at that time. model/judge.c limits how long it may have been spooled.
 *
 * A release may have any age. It has its own signature, which `gatepost quarantine release` makes with the
 * source's secret over the time, gatepost-released, source, signed timestamp, delivery-id and body, and which
 * must be as fresh as above. So an administrator can release unverified records, and nobody can turn a
 * captured record into a release.
 */
#define REVERIFICATION_ALLOWANCE_MS UINT64_C(300000)

enum reverification {
        REVERIFICATION_FAILED = -1, /* out of memory, or OpenSSL failed */
        REVERIFICATION_GENUINE,     /* also when the rules have no keys */
        REVERIFICATION_MALFORMED,   /* not written by a receiver or a release */
        REVERIFICATION_REFUSED,     /* forged, or accepted with an earlier secret or tolerance */
};

/**
 * reverification_check(rules, record, why):
 * Verify a record. If it is not genuine, set why to the reason, which reveals nothing about the right
 * signature.
 */
enum reverification reverification_check(const struct event_rules *rules, const struct record *record,
                                         struct error *why) MUST_CHECK;

#define RELEASE_SIGNATURE_SIZE 83 /* with the NUL */

/**
 * reverification_sign_release(key, record, now_s, text):
 * Write gatepost-release-signature for a record with gatepost-released: the time, a space, and the signature
 * as in gatepost-signature. Return 0, or -1 if the key is longer than a delivery-id may be, or memory or
 * OpenSSL fails.
 */
int reverification_sign_release(const struct signature_key *key, const struct record *record, int64_t now_s,
                                char text[RELEASE_SIGNATURE_SIZE]) MUST_CHECK;

#define SPOOL_SIGNATURE_SIZE 72 /* with the NUL: as gatepost-signature */

/**
 * reverification_sign_spooled(key, record, text):
 * Write gatepost-spool-signature for a record of a receiver: the signature over gatepost-received, source,
 * signed timestamp, delivery-id and gatepost-signature, which covers the body. Return 0, or -1 if a text is
 * too long, or memory or OpenSSL fails.
 */
int reverification_sign_spooled(const struct signature_key *key, const struct record *record,
                                char text[SPOOL_SIGNATURE_SIZE]) MUST_CHECK;

#endif
