#ifndef CLI_QUARANTINE_PRINT_H
#define CLI_QUARANTINE_PRINT_H

#include <yajl/yajl_gen.h>

#include "cli/quarantine.h"

/* Where something stands, as `2/1234`, or `-`. Returns text. */
char *quarantine_print_place(const struct release_id *place, char text[RELEASE_ID_SIZE]);

/* no, yes or unsure. */
const char *quarantine_print_state(const struct quarantined *record);

/**
 * quarantine_print_members(json, record):
 * Add what is known of a record to an object that is open: id, timestamp, reason, detail, source, deliveryId,
 * delivery, released (null: cannot be told), release, cameBackAs, cameOf.
 */
void quarantine_print_members(yajl_gen json, const struct quarantined *record);

#endif
