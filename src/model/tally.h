#ifndef MODEL_TALLY_H
#define MODEL_TALLY_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "model/sketch.h"

/*
 * Counts what is lost, duplicated and unexpected among records that must, may and do exist, in bounded memory. The same
 * records are added in several passes, in any order. The first goes into a sketch; when all its buckets balance, that is
 * all. Each further pass looks exactly at the fingerprints of some of the unbalanced buckets, as many as there is room
 * for:
 *
 *   do {
 *           tally_add() everything
 *   } while (tally_end_pass(tally, report, arg) > 0);
 */
struct tally;

/* Where a record stands. */
struct tally_place {
        uint32_t topic; /* the caller's number of the topic that it is or would be published in */
        int32_t partition;
        int64_t offset;
};

enum tally_fault {
        TALLY_LOST,       /* must be there, and is not, or not often enough */
        TALLY_DUPLICATED, /* is there more often than it may be */
        TALLY_UNEXPECTED, /* is there, and nothing says that it may be */
        TALLY_N_FAULTS,
};

/* Records with one fingerprint that are not as they must be. */
struct tally_finding {
        enum tally_fault fault;
        uint64_t n; /* how many are missing, or too many */
        /* Of a lost one, where the last of what requires it stands; else where the last that was found stands. */
        struct tally_place place;
};

typedef void tally_report(const struct tally_finding *finding, void *arg);

/* 2^bits buckets in the sketch (32 bytes each); max_entries looked at exactly in a pass (64 bytes each). NULL: no memory. */
struct tally *tally_new(unsigned bits, size_t max_entries) MUST_CHECK;
void tally_free(struct tally *tally);

/* Returns 0, or -1 when memory fails. */
int tally_add(struct tally *tally, const uint8_t fingerprint[SKETCH_FINGERPRINT_SIZE], enum sketch_side side,
              const struct tally_place *place) MUST_CHECK;

/**
 * tally_end_pass(tally, report, arg):
 * All has been added. Reports what this pass has found: each fingerprint that is not as it must be comes once, in one of
 * the passes. Returns how many more passes there are to be, 0 when all is told.
 */
size_t tally_end_pass(struct tally *tally, tally_report *report, void *arg) MUST_CHECK;

#endif
