#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/**
 * crc32c_add(crc, bytes, len):
 * Return the CRC-32C (Castagnoli, RFC 3720 appendix B.4) of what crc covers, followed by these bytes; crc is
 * 0 for the first ones. Our own, because none of the libraries that Gatepost uses exports it; with the
 * processor's instruction where it has one.
 */
uint32_t crc32c_add(uint32_t crc, const void *bytes, size_t len);

#endif
