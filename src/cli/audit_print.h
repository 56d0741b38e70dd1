#ifndef CLI_AUDIT_PRINT_H
#define CLI_AUDIT_PRINT_H

#include "cli/audit_work.h"

/* Write what an audit has found: a table to stdout and the examples to stderr, or all as one JSON object to stdout. */
void audit_print_text(const struct audit *audit);
void audit_print_json(const struct audit *audit);

#endif
