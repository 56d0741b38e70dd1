#ifndef SANDBOX_RETRY_H
#define SANDBOX_RETRY_H

#include <stdint.h>

#define RETRY_MAX_ATTEMPTS 10 /* of one delivery, the first included */

/* How long to wait after so many attempts (1 to RETRY_MAX_ATTEMPTS - 1) before the next: base, then twice that, and so on. */
uint64_t retry_delay_ms(uint64_t base_ms, unsigned n_attempts);

#endif
