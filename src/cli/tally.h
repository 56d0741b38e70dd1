#ifndef CLI_TALLY_H
#define CLI_TALLY_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

#define TALLY_FINGERPRINT_SIZE 16

/*
 * Counts records that are lost, duplicated or unexpected, in bounded memory. Records that must exist, that
 * may exist and that were found are added by their fingerprints in any order, in several passes:
 *
 *   do {
 *           tally_add() every record
 *   } while (tally_end_pass(tally, report, arg) > 0);
 *
 * The first pass counts and sums the fingerprints in a fixed number of buckets. A bucket whose sums balance
 * is correct, but for a chance of 1 in 2^64. Each further pass counts every fingerprint in some of the other
 * buckets, as many as fit in memory. Usually there is no further pass.
 */
struct tally;

enum tally_side {
        TALLY_REQUIRED, /* the record must exist */
        TALLY_ALLOWED,  /* the record may exist */
        TALLY_FOUND,    /* the record exists */
};

struct tally_place {
        uint32_t topic; /* the caller's index of the topic that the record is, or would be, published to */
        int32_t partition;
        int64_t offset;
};

enum tally_fault {
        TALLY_LOST,       /* found less often than required */
        TALLY_DUPLICATED, /* found more often than required and allowed */
        TALLY_UNEXPECTED, /* found, but neither required nor allowed */
        TALLY_N_FAULTS,
};

/* A fault of the records with one fingerprint. */
struct tally_finding {
        enum tally_fault fault;
        uint64_t n; /* number of records missing or in excess */
        /* Place of the last required record if it is lost, otherwise of the last record found. */
        struct tally_place place;
};

typedef void tally_report(const struct tally_finding *finding, void *arg);

/**
 * tally_new(bits, max_entries):
 * Create a tally with 2^bits buckets of 32 bytes, which counts up to max_entries fingerprints per pass, at 64
 * bytes each. Returns NULL when memory fails.
 */
struct tally *tally_new(unsigned bits, size_t max_entries) MUST_CHECK;
void tally_free(struct tally *tally);

/* Add a record by its fingerprint, a cryptographic digest. Returns 0, or -1 when memory fails. */
int tally_add(struct tally *tally, const uint8_t fingerprint[TALLY_FINGERPRINT_SIZE], enum tally_side side,
              const struct tally_place *place) MUST_CHECK;

/**
 * tally_end_pass(tally, report, arg):
 * End a pass and report its findings; each faulty fingerprint is reported once, in one of the passes. Returns
 * the number of passes still needed.
 */
size_t tally_end_pass(struct tally *tally, tally_report *report, void *arg) MUST_CHECK;

#endif
