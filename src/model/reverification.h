#ifndef MODEL_REVERIFICATION_H
#define MODEL_REVERIFICATION_H

#include "base/compiler.h"
#include "base/error.h"
#include "model/record.h"
#include "model/rules.h"

/*
 * The router's own check that a record of `deliveries` is genuine, for sites that do not want to trust whoever can write to
 * that topic. It proves what the service's signature covers, timestamp and body; not the delivery-id, nor the webhook-id.
 *
 * A record of a receiver was fresh when it was received, and the brokers' clock says when it was appended. The two may be
 * REVERIFICATION_ALLOWANCE_MS further apart than the tolerance: the longest ack_timeout, or clocks that differ.
 *
 * A release is as old as it may be. What proves it is a signature of its own, made by `gatepost quarantine release` with the
 * source's secret over the time, gatepost-released, source, signed timestamp, delivery-id and body, and as fresh as above. So
 * an administrator can also let in what is unverified, and nobody can make a release of a record that was captured.
 */
#define REVERIFICATION_ALLOWANCE_MS UINT64_C(300000)

enum reverification {
        REVERIFICATION_FAILED = -1, /* memory or OpenSSL did */
        REVERIFICATION_GENUINE,     /* also when the rules have no keys */
        REVERIFICATION_MALFORMED,   /* not written by a receiver or a release */
        REVERIFICATION_REFUSED, /* forged, or accepted with a secret or a tolerance that the rules no longer have */
};

/**
 * reverification_check(rules, record, why):
 * Check a record. Of one that is not genuine why says so, and tells nothing about the signature that would be right.
 */
enum reverification reverification_check(const struct event_rules *rules, const struct record *record,
                                         struct error *why) MUST_CHECK;

#define RELEASE_SIGNATURE_SIZE 83 /* with the NUL */

/**
 * reverification_sign_release(key, record, now_s, text):
 * Write gatepost-release-signature for a record whose gatepost-released is set: the time, a space, and the signature as in
 * gatepost-signature. Returns 0, or -1 when its key is longer than a delivery's may be, or memory or OpenSSL fails.
 */
int reverification_sign_release(const struct signature_key *key, const struct record *record, int64_t now_s,
                                char text[RELEASE_SIGNATURE_SIZE]) MUST_CHECK;

#endif
