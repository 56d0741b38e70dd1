#ifndef TESTS_CRASH_STATES_H
#define TESTS_CRASH_STATES_H

#include <stddef.h>

/*
 * The states in which a crash or a power failure may leave a spool, of a run that disk.h has recorded and whose deliveries are
 * run_deliveries. A state is a prefix of the record, and what the disk may hold by then:
 *
 * - What was synced is there. What was not is there in any part: whole, missing, cut off, or with blocks of 512 or 4096 bytes
 *   that are zeros, random bytes, or, once the segment's header was synced, what another segment has at this place.
 * - A name that was created, changed or removed since the last sync of the directory is so, or as before.
 * - What a failed sync should have written may be missing for good, even if a later sync succeeds.
 *
 * Of each state, the reader must return every delivery that was answered and not yet drained, unchanged; nothing but
 * deliveries that were put; and report no damage.
 */
struct crash_found {
        size_t states;
        size_t different; /* of these, no two of which are the same */
        size_t lost;      /* states without a delivery that was answered */
        size_t changed;   /* with a record that is no delivery that was put */
        size_t damaged;   /* that are reported as damage */
};

/* Check so many states of each prefix after which something may be missing, with random choices from this seed. */
struct crash_found crash_states_check(unsigned variants, unsigned seed);

#endif
