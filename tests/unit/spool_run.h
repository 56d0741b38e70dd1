#ifndef TESTS_SPOOL_RUN_H
#define TESTS_SPOOL_RUN_H

#include <stddef.h>

#include "spool/segment.h"
#include "spool/spool_writer.h"

/*
 * A run of the real writer, recorded by disk.h: several threads put deliveries and wait for their answers. Meanwhile another
 * thread may drain segments that have ended: it reads and deletes them.
 */
#define RUN_THREADS 3
#define RUN_EACH 70 /* deliveries of a thread */
#define RUN_DELIVERIES (RUN_THREADS * RUN_EACH)
#define RUN_MAX_BODY 3000

struct run_delivery {
        struct spool_item item;
        char fields[64];
        size_t n_fields;
        char body[RUN_MAX_BODY];
        int is_answered;
};

extern struct run_delivery run_deliveries[RUN_DELIVERIES];

/* Run in a directory, which must exist and be empty. */
void run_record(const char *path, int drains);

/* Return the number of deliveries that were answered. */
unsigned run_count_answered(void);

/* Return the number of the delivery that equals a record, or -1 if there is none. */
int run_identify(const struct segment_record *record);

#endif
