#include "dedup/run_format.h"

#include <string.h>

#include "base/crc32c.h"

#define BITS_AN_IDENTITY 6
#define BITS_A_LINE (8 * RUN_LINE_SIZE)
#define MAX_ENTRIES (UINT64_C(1) << 40)

_Static_assert(sizeof(struct run_block) == RUN_BLOCK_SIZE, "a block has 512 bytes");
_Static_assert(sizeof(struct run_header) <= RUN_BLOCK_SIZE, "a header has at most 512 bytes");

uint32_t
run_block_crc(uint64_t id, uint64_t number, const struct run_block *block)
{
        uint32_t crc = crc32c_add(crc32c_add(0, &id, sizeof(id)), &number, sizeof(number));

        return crc32c_add(crc, block->entries, sizeof(block->entries));
}

uint32_t
run_header_crc(const struct run_header *header)
{
        struct run_header copy = *header;

        copy.crc = 0;
        return crc32c_add(0, &copy, sizeof(copy));
}

uint32_t
run_index_key(const uint8_t identity[DEDUP_IDENTITY_SIZE])
{
        return (uint32_t)identity[0] << 24 | (uint32_t)identity[1] << 16 | (uint32_t)identity[2] << 8 |
               identity[3];
}

/*
 * Return where the line of an identity begins. An identity is a cryptographic digest: any of its bits serve
 * as a hash.
 */
static uint64_t
line_of(uint64_t n_lines, const uint8_t identity[DEDUP_IDENTITY_SIZE])
{
        uint32_t hash;

        memcpy(&hash, identity + 4, sizeof(hash));
        return ((hash * n_lines) >> 32) * RUN_LINE_SIZE;
}

static uint64_t
bits_of(const uint8_t identity[DEDUP_IDENTITY_SIZE])
{
        uint64_t bits;

        memcpy(&bits, identity + 8, sizeof(bits));
        return bits;
}

void
run_filter_add(uint8_t *lines, uint64_t n_lines, const uint8_t identity[DEDUP_IDENTITY_SIZE])
{
        uint8_t *line = lines + line_of(n_lines, identity);
        uint64_t bits = bits_of(identity);

        for (int i = 0; i < BITS_AN_IDENTITY; i++) {
                line[bits % BITS_A_LINE / 8] |= (uint8_t)(1 << bits % 8);
                bits /= BITS_A_LINE;
        }
}

int
run_filter_has(const uint8_t *lines, uint64_t n_lines, const uint8_t identity[DEDUP_IDENTITY_SIZE])
{
        const uint8_t *line = run_filter_line(lines, n_lines, identity);
        uint64_t bits = bits_of(identity);

        for (int i = 0; i < BITS_AN_IDENTITY; i++) {
                if ((line[bits % BITS_A_LINE / 8] & 1 << bits % 8) == 0)
                        return 0;
                bits /= BITS_A_LINE;
        }
        return 1;
}

const uint8_t *
run_filter_line(const uint8_t *lines, uint64_t n_lines, const uint8_t identity[DEDUP_IDENTITY_SIZE])
{
        return lines + line_of(n_lines, identity);
}

uint64_t
run_n_blocks(const struct run_header *header)
{
        return (header->n_entries + RUN_BLOCK_ENTRIES - 1) / RUN_BLOCK_ENTRIES;
}

uint64_t
run_size(const struct run_header *header)
{
        return RUN_BLOCK_SIZE + run_n_blocks(header) * (RUN_BLOCK_SIZE + sizeof(uint32_t)) +
               header->n_lines * RUN_LINE_SIZE;
}

const char *
run_header_fault(const struct run_header *header, const uint8_t owner[16], uint64_t file_size)
{
        const struct run_range *range = &header->range;

        if (memcmp(header->magic, RUN_MAGIC, sizeof(header->magic)) != 0 || header->version != RUN_VERSION)
                return "it has another format";
        if (header->crc != run_header_crc(header))
                return "the checksum of its header is wrong";
        if (memcmp(range->owner, owner, sizeof(range->owner)) != 0)
                return "it belongs to another topic, or the key was replaced";
        if (range->from < 0 || range->to <= range->from || range->to - range->from > RUN_MAX_RECORDS ||
            range->partition < 0 || range->last.offset < range->from || range->last.offset >= range->to ||
            header->n_entries == 0 || header->n_entries > MAX_ENTRIES || header->n_lines == 0 ||
            header->n_lines > UINT32_MAX)
                return "its header makes no sense";
        if (file_size != run_size(header))
                return "it has another size than its header says";
        return NULL;
}
