#ifndef CLI_AUDIT_PRINT_H
#define CLI_AUDIT_PRINT_H

#include "base/compiler.h"
#include "cli/audit_work.h"

/* Print the result: a table to stdout and limits and examples to stderr, or one JSON object to stdout. */
void audit_print_text(const struct audit *audit);
void audit_print_json(const struct audit *audit);

#endif
