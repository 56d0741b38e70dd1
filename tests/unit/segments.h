#ifndef TESTS_SEGMENTS_H
#define TESTS_SEGMENTS_H

#include <stdint.h>

#include "metrics/spool_stats.h"
#include "spool/spool_directory.h"

#define SEGMENTS_BODY 1000 /* bytes of a record's body, each of which is the record's number */

/* Store n records in a segment, each with its number as its key and a header. Write their offsets to offsets, unless NULL. */
void segments_store(const struct spool_directory *directory, struct spool_stats *stats, uint64_t number,
                    int first, int n, uint64_t *offsets);

/* As segments_store(), but the fields of this record are malformed. */
void segments_store_malformed(const struct spool_directory *directory, struct spool_stats *stats,
                              uint64_t number, int first, int n, int malformed);

/* Change some bytes of the body of the record at this offset. */
void segments_damage(const struct spool_directory *directory, uint64_t number, uint64_t offset);

#endif
