#include "base/crc32c.h"

#include <pthread.h>
#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

#define POLYNOMIAL 0x82f63b78u /* reversed */

static uint32_t table[256];

static void
fill_table(void)
{
        for (uint32_t i = 0; i < 256; i++) {
                uint32_t crc = i;

                for (int bit = 0; bit < 8; bit++)
                        crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
                table[i] = crc;
        }
}

static uint32_t
add_by_table(uint32_t crc, const uint8_t *bytes, size_t len)
{
        static pthread_once_t once = PTHREAD_ONCE_INIT;

        (void)pthread_once(&once, fill_table);
        for (size_t i = 0; i < len; i++)
                crc = crc >> 8 ^ table[(crc ^ bytes[i]) & 0xff];
        return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t
add_by_instruction(uint32_t crc, const uint8_t *bytes, size_t len)
{
        uint64_t wide = crc;

        for (; len >= 8; bytes += 8, len -= 8) {
                uint64_t word;

                memcpy(&word, bytes, 8);
                wide = _mm_crc32_u64(wide, word);
        }
        crc = (uint32_t)wide;
        for (; len > 0; bytes++, len--)
                crc = _mm_crc32_u8(crc, *bytes);
        return crc;
}
#endif

uint32_t
crc32c_add(uint32_t crc, const void *bytes, size_t len)
{
        crc = ~crc;
#if defined(__x86_64__)
        if (__builtin_cpu_supports("sse4.2"))
                return ~add_by_instruction(crc, bytes, len);
#endif
        return ~add_by_table(crc, bytes, len);
}
