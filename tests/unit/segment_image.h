#ifndef TESTS_SEGMENT_IMAGE_H
#define TESTS_SEGMENT_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "spool/segment.h"

/* A segment in memory, and its records. */
#define IMAGE_RECORDS 40
#define IMAGE_MAX_SIZE (1 << 20)

extern const uint8_t image_id[SEGMENT_ID_SIZE];
extern uint8_t image_bytes[IMAGE_MAX_SIZE], image_seal[SEGMENT_HEAD_SIZE]; /* the last bytes are the seal */
extern size_t image_size, image_n_records;
extern struct segment_record image_records[IMAGE_RECORDS + 1];

/* Make it a header only. */
void image_begin(void);

/* Make it a segment with records of various sizes, each of which says that all before was synced, and a seal. */
void image_make(void);

/* Return a random number below another, the same in each run. */
uint32_t image_draw(uint32_t below);

/* Write a segment to a file, and open it. */
struct segment_reader *image_open(const uint8_t *content, size_t len);

/* Return the record at an offset, or NULL. */
const struct segment_record *image_find(uint64_t offset);

#endif
