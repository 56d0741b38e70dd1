#ifndef CLI_SERVICE_REFUSAL_H
#define CLI_SERVICE_REFUSAL_H

#include "cli/service.h"

/**
 * service_refusal(command, answer):
 * Say on stderr what an answer that is no success means: what the service says of it, each violation with its field, the
 * request's id, and the remedy. command is the command's name. Returns the exit status for it.
 */
int service_refusal(const char *command, const struct service_answer *answer);

/* Whether an answer is a success: any 2xx, since the service does not document which. */
int service_succeeded(const struct service_answer *answer);

#endif
