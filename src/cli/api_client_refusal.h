#ifndef CLI_API_CLIENT_REFUSAL_H
#define CLI_API_CLIENT_REFUSAL_H

#include "cli/api_client.h"

/**
 * api_client_refusal(command, answer):
 * Say on stderr what an answer that is no success means: what the service says of it, each violation with its field, the
 * request's id, and the remedy. command is the command's name. Returns the exit status for it.
 */
int api_client_refusal(const char *command, const struct api_client_answer *answer);

/* Whether an answer is a success: any 2xx, since the service does not document which. */
int api_client_succeeded(const struct api_client_answer *answer);

#endif
