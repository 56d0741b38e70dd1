#ifndef CLI_AUDIT_FOUND_H
#define CLI_AUDIT_FOUND_H

#include "base/compiler.h"
#include "cli/audit_work.h"

/*
 * The second half of a pass: add the published records to the tally. Returns 0, or an exit status after
 * printing the reason.
 */
int audit_found_read(struct audit *audit) MUST_CHECK;

/* Look up the delivery-ids of the examples, as far as they can be read. */
void audit_found_identify_examples(struct audit *audit);

#endif
