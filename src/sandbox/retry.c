#include "sandbox/retry.h"

uint64_t
retry_delay_ms(uint64_t base_ms, unsigned n_attempts)
{
        return base_ms << (n_attempts > 0 ? n_attempts - 1 : 0);
}
