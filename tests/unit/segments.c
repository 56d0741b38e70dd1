#include "segments.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "spool/segment_writer.h"

/* Store a record, and return its offset. */
static uint64_t
store(struct segment_writer *writer, int i, int is_malformed)
{
        struct segment_item item;
        struct segment_group group = {.n = 1};
        char body[SEGMENTS_BODY], key[16];
        uint8_t fields[64];
        size_t len = 0;

        (void)snprintf(key, sizeof(key), "%d", i);
        ck_assert_int_eq(segment_add_field(fields, sizeof(fields), &len, "", (struct span){key, strlen(key)}),
                         0);
        ck_assert_int_eq(segment_add_field(fields, sizeof(fields), &len, RECORD_SOURCE,
                                           (struct span){"test", 4}),
                         0);
        if (is_malformed)
                fields[0] = 200; /* a name that is longer than all fields */
        memset(body, i, sizeof(body));
        item.record = (struct segment_record){.received_ms = 1795600000000 + i,
                                              .fields = {(const char *)fields, len},
                                              .body = {body, sizeof(body)}};
        STAILQ_INIT(&group.items);
        STAILQ_INSERT_TAIL(&group.items, &item, entry);
        group.bytes = segment_record_size(&item.record);
        ck_assert_int_eq(segment_writer_store(writer, &group), 0);
        return item.record.offset;
}

void
segments_store(const struct spool_directory *directory, struct spool_stats *stats, uint64_t number, int first,
               int n, uint64_t *offsets)
{
        struct segment_writer *writer = segment_writer_new(directory, stats, number);

        for (int i = 0; i < n; i++) {
                uint64_t offset = store(writer, first + i, 0);

                if (offsets != NULL)
                        offsets[i] = offset;
        }
        segment_writer_free(writer);
}

void
segments_store_malformed(const struct spool_directory *directory, struct spool_stats *stats, uint64_t number,
                         int first, int n, int malformed)
{
        struct segment_writer *writer = segment_writer_new(directory, stats, number);

        for (int i = 0; i < n; i++)
                (void)store(writer, first + i, first + i == malformed);
        segment_writer_free(writer);
}

void
segments_damage(const struct spool_directory *directory, uint64_t number, uint64_t offset)
{
        char name[SPOOL_NAME_SIZE];
        int fd = openat(spool_directory_fd(directory), spool_directory_name(number, name), O_WRONLY);

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(pwrite(fd, "damage", 6, (off_t)offset + SEGMENT_HEAD_SIZE + 100), 6);
        ck_assert_int_eq(close(fd), 0);
}
