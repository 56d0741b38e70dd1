#ifndef CLI_STATUS_PRINT_H
#define CLI_STATUS_PRINT_H

#include "cli/status_read.h"

/* Write it to stdout: for a person; or as JSON, over many lines or in one. */
void status_print(const struct status *status, const struct status_rates *rates);
void status_print_json(const struct status *status, const struct status_rates *rates, int in_one_line);

#endif
