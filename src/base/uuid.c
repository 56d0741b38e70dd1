#include "base/uuid.h"

#include <stdint.h>
#include <stdio.h>
#include <sysexits.h>
#include <unistd.h>

#include <openssl/rand.h>

char *
uuid_make(char id[UUID_SIZE])
{
        uint8_t b[16];

        if (RAND_bytes(b, sizeof(b)) != 1) {
                fputs("no random bytes to be had\n", stderr);
                _exit(EX_OSERR);
        }
        b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
        b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
        (void)snprintf(id, UUID_SIZE, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                       b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
                       b[14], b[15]);
        return id;
}
