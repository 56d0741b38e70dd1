#include <check.h>
#include <malloc.h>
#include <string.h>

#include "disk.h"
#include "scratch.h"
#include "segment_image.h"
#include "spool/segment_places.h"
#include "suites.h"

#define ROUNDS 2000

/* Damage a copy of the segment in one place. */
static void
damage(uint8_t *copy, size_t *len)
{
        const struct segment_record *from = &image_records[image_draw((uint32_t)image_n_records)],
                                    *to = &image_records[image_draw((uint32_t)image_n_records)];
        size_t at = image_draw((uint32_t)image_size), n = 1 + image_draw(600),
               other = image_draw((uint32_t)(image_size - 4096));

        n = at + n > image_size ? image_size - at : n;
        switch (image_draw(8)) {
        case 0:
                copy[at] ^= (uint8_t)(1 << image_draw(8));
                break;
        case 1:
                *len = at < *len ? at : *len;
                break;
        case 2:
                memset(copy + at, 0, n);
                break;
        case 3: /* a record over another one */
                n = segment_record_size(from) < image_size - to->offset ? segment_record_size(from)
                                                                        : image_size - to->offset;
                memmove(copy + to->offset, image_bytes + from->offset, n);
                break;
        case 4: /* a length, or a time, in a head */
                copy[to->offset + 4 + image_draw(36)] = (uint8_t)image_draw(256);
                break;
        case 5: /* blocks are exchanged */
                at = image_draw((uint32_t)(image_size - 4096)) / 512 * 512;
                memcpy(copy + at, image_bytes + other / 512 * 512, 512);
                memcpy(copy + other / 512 * 512, image_bytes + at, 512);
                break;
        case 6:
                memset(copy + at, 0, image_size - at);
                break;
        default:
                for (size_t i = 0; i < n; i++)
                        copy[at + i] = (uint8_t)image_draw(256);
                break;
        }
}

/* Read a damaged copy: each record must be one that was written. Return whether there is a gap, which must be reported. */
static int
read_copy(const uint8_t *copy, size_t len, struct segment_summary *summary)
{
        size_t n = 0, last = 0;
        struct segment_record record;
        struct segment_reader *reader = image_open(copy, len);
        int found;

        while ((found = segment_reader_next(reader, &record)) > 0) {
                const struct segment_record *written = image_find(record.offset);

                ck_assert_ptr_nonnull(written);
                ck_assert_int_eq(record.received_ms, written->received_ms);
                ck_assert_uint_eq(record.synced, written->synced);
                ck_assert_uint_eq(record.fields.len, written->fields.len);
                ck_assert_uint_eq(record.body.len, written->body.len);
                ck_assert_int_eq(memcmp(record.fields.data, written->fields.data,
                                        record.fields.len + record.body.len),
                                 0);
                last = (size_t)(written - image_records) + 1;
                n++;
        }
        ck_assert_int_eq(found, 0);
        segment_reader_summary(reader, summary);
        segment_reader_close(reader);
        ck_assert_uint_le(summary->damaged_bytes + summary->torn_bytes, len);
        /* Each record, and the seal, says that all before it was synced. */
        if (len == image_size &&
            memcmp(copy + image_size - SEGMENT_HEAD_SIZE, image_seal, SEGMENT_HEAD_SIZE) == 0)
                return n < image_n_records;
        return n < last;
}

START_TEST(test_damage_is_reported_and_no_record_is_changed)
{
        static uint8_t copy[IMAGE_MAX_SIZE];
        unsigned n_damaged = 0;

        image_make();
        for (unsigned round = 0; round < ROUNDS; round++) {
                size_t len = image_size;
                struct segment_summary summary;
                int has_gap;

                memcpy(copy, image_bytes, image_size);
                for (unsigned places = 1 + image_draw(3); places > 0; places--)
                        damage(copy, &len);
                has_gap = read_copy(copy, len, &summary);
                if (has_gap)
                        ck_assert_msg(summary.damaged_bytes > 0, "round %u", round);
                n_damaged += summary.damaged_bytes > 0;
        }
        ck_assert_uint_gt(n_damaged, ROUNDS / 4);
}
END_TEST

/* What a crash leaves of records that were not synced is no damage. */
START_TEST(test_missing_end_is_no_damage)
{
        static uint8_t copy[IMAGE_MAX_SIZE];
        struct segment_summary summary;

        image_make();
        for (size_t at = SEGMENT_HEADER_SIZE; at < image_size; at += 1 + image_draw(100)) {
                memset(copy, 0, sizeof(copy));
                memcpy(copy, image_bytes, at);
                ck_assert(!read_copy(copy, at, &summary));
                ck_assert_uint_eq(summary.damaged_bytes, 0);
                ck_assert(!read_copy(copy, image_size, &summary));
                ck_assert_uint_eq(summary.damaged_bytes, 0);
        }
}
END_TEST

START_TEST(test_failing_sectors_cost_only_the_records_in_them)
{
        image_make();
        for (uint64_t at = 0; at < image_size; at += 4096) {
                struct segment_summary summary;
                struct segment_record record;
                struct segment_reader *reader;
                uint8_t seen[IMAGE_RECORDS] = {0};

                disk_unreadable_from = at;
                disk_unreadable_to = at + 4096;
                reader = image_open(image_bytes, image_size);
                while (segment_reader_next(reader, &record) > 0)
                        seen[image_find(record.offset) - image_records] = 1;
                disk_unreadable_from = disk_unreadable_to = 0;
                segment_reader_summary(reader, &summary);
                segment_reader_close(reader);
                for (size_t i = 0; i < image_n_records; i++) {
                        uint64_t end = image_records[i].offset + segment_record_size(&image_records[i]);

                        if (end <= at || image_records[i].offset >= at + 4096)
                                ck_assert_msg(seen[i], "record %zu, without bytes from %zu", i, (size_t)at);
                }
                ck_assert_uint_gt(summary.unreadable_bytes, 0);
                ck_assert_uint_eq(summary.damaged_bytes + summary.torn_bytes, 0);
        }
}
END_TEST

/* A failing disk may take a second for each attempt. */
START_TEST(test_no_failing_sector_is_read_twice)
{
        struct segment_record record;
        struct segment_reader *reader;
        unsigned n_blocks = 0;

        image_make();
        disk_unreadable_from = 4096;
        disk_unreadable_to = image_size - 4096;
        for (uint64_t at = disk_unreadable_from; at < disk_unreadable_to; at += 4096)
                n_blocks++;
        ck_assert_uint_ge(n_blocks, 3);
        reader = image_open(image_bytes, image_size);
        while (segment_reader_next(reader, &record) > 0)
                ;
        segment_reader_close(reader);
        /* And one attempt to read them all. */
        ck_assert_uint_eq(atomic_load(&disk_n_unreadable), n_blocks + 1);
}
END_TEST

/* The list of a segment that stays takes no more than that. */
START_TEST(test_list_of_records_takes_8_bytes_each)
{
        struct segment_reader *reader;
        struct segment_places places = {NULL, 0};

        image_make();
        reader = image_open(image_bytes, image_size);
        ck_assert_int_eq(segment_places_read(&places, reader), 0);
        ck_assert_uint_eq(places.n, image_n_records);
        ck_assert_uint_le(malloc_usable_size(places.items), 8 * image_n_records + 32);
        segment_places_free(&places);
        segment_reader_close(reader);
}
END_TEST

Suite *
suite_segment_damage(void)
{
        Suite *suite = suite_create("segment_damage");
        TCase *tcase = tcase_create("segment_damage");

        tcase_add_checked_fixture(tcase, scratch_setup, scratch_teardown);
        tcase_set_timeout(tcase, 120);
        tcase_add_test(tcase, test_damage_is_reported_and_no_record_is_changed);
        tcase_add_test(tcase, test_failing_sectors_cost_only_the_records_in_them);
        tcase_add_test(tcase, test_missing_end_is_no_damage);
        tcase_add_test(tcase, test_no_failing_sector_is_read_twice);
        tcase_add_test(tcase, test_list_of_records_takes_8_bytes_each);
        suite_add_tcase(suite, tcase);
        return suite;
}
