#ifndef CLI_POST_H
#define CLI_POST_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"
#include "cli/own_url.h"
#include "cli/transfer.h"

/**
 * post_send(to, headers, n_headers, body, len, answer, error):
 * POST a body; headers are whole lines. Waits 30 s at most. Returns 0, or -1 with the reason when there is no answer.
 */
int post_send(const struct own_url *to, const char *const *headers, size_t n_headers, const void *body,
              size_t len, struct transfer_answer *answer, struct error *error) MUST_CHECK;

#endif
