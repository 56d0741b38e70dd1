#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "disk.h"
#include "scratch.h"
#include "segment_image.h"
#include "spool/segment.h"
#include "spool/spool_directory.h"
#include "suites.h"

START_TEST(test_records_are_read_as_they_were_written)
{
        struct segment_summary summary;
        struct segment_record record;
        struct segment_reader *reader;
        size_t n = 0;

        image_make();
        reader = image_open(image_bytes, image_size);
        while (segment_reader_next(reader, &record) > 0) {
                ck_assert_uint_lt(n, image_n_records);
                ck_assert_int_eq(record.received_ms, image_records[n].received_ms);
                ck_assert_uint_eq(record.offset, image_records[n].offset);
                ck_assert_uint_eq(record.body.len, image_records[n].body.len);
                ck_assert_int_eq(memcmp(record.body.data, image_records[n].body.data, record.body.len), 0);
                n++;
        }
        ck_assert_uint_eq(n, image_n_records);
        segment_reader_summary(reader, &summary);
        ck_assert_uint_eq(summary.damaged_bytes + summary.torn_bytes, 0);
        ck_assert_int_eq(summary.oldest_ms, image_records[0].received_ms);
        ck_assert_int_eq(summary.newest_ms, image_records[n - 1].received_ms);
        segment_reader_close(reader);
}
END_TEST

START_TEST(test_fields_are_read_as_they_were_written)
{
        uint8_t fields[100];
        struct record_header field;
        size_t len = 0, at = 0;

        ck_assert_int_eq(segment_add_field(fields, sizeof(fields), &len, "", (struct span){"key", 3}), 0);
        ck_assert_int_eq(segment_add_field(fields, sizeof(fields), &len, "name", (struct span){NULL, 0}), 0);
        ck_assert_int_eq(segment_add_field(fields, sizeof(fields), &len, "too long",
                                           (struct span){(const char *)image_bytes, 90}),
                         -1);
        ck_assert_int_eq(segment_next_field((struct span){(const char *)fields, len}, &at, &field), 1);
        ck_assert_str_eq(field.name, "");
        ck_assert_int_eq(memcmp(field.value.data, "key", 3), 0);
        ck_assert_int_eq(segment_next_field((struct span){(const char *)fields, len}, &at, &field), 1);
        ck_assert_str_eq(field.name, "name");
        ck_assert_uint_eq(field.value.len, 0);
        ck_assert_int_eq(segment_next_field((struct span){(const char *)fields, len}, &at, &field), 0);
        at = 0;
        fields[0] = 200; /* a name beyond the end */
        ck_assert_int_eq(segment_next_field((struct span){(const char *)fields, len}, &at, &field), -1);
}
END_TEST

START_TEST(test_names_and_values_have_up_to_65535_bytes)
{
        size_t size_of_both = 4 + 65535 + 65535, len = 0, at = 0;
        uint8_t *fields = mem_alloc(size_of_both);
        char *name = mem_alloc(65536), *value = mem_alloc(65536);
        struct record_header field;

        memset(name, 'n', 65535);
        memset(value, 'v', 65536);
        ck_assert_int_eq(segment_add_field(fields, size_of_both, &len, name, (struct span){value, 1}), -1);
        name[65534] = '\0';
        ck_assert_int_eq(segment_add_field(fields, size_of_both, &len, name, (struct span){value, 65536}),
                         -1);
        ck_assert_int_eq(segment_add_field(fields, size_of_both - 1, &len, name, (struct span){value, 65535}),
                         -1);
        ck_assert_uint_eq(len, 0);
        ck_assert_int_eq(segment_add_field(fields, size_of_both, &len, name, (struct span){value, 65535}), 0);
        ck_assert_uint_eq(len, size_of_both);
        ck_assert_int_eq(segment_add_field(fields, size_of_both, &len, "", (struct span){NULL, 0}), -1);
        ck_assert_int_eq(segment_next_field((struct span){(const char *)fields, len}, &at, &field), 1);
        ck_assert_str_eq(field.name, name);
        ck_assert_uint_eq(field.value.len, 65535);
        ck_assert_int_eq(memcmp(field.value.data, value, 65535), 0);
        at = 0;
        ck_assert_int_eq(segment_next_field((struct span){(const char *)fields, len - 1}, &at, &field), -1);
        free(fields);
        free(name);
        free(value);
}
END_TEST

/* Make a segment with one record, and read it. Return whether the record was returned. */
static int
is_read(size_t n_fields, size_t len, uint64_t *damaged)
{
        char *field = mem_alloc(n_fields), *body = mem_alloc(len + 1);
        struct segment_record record = {.received_ms = 1,
                                        .fields = {field, n_fields},
                                        .body = {body, len},
                                        .offset = SEGMENT_HEADER_SIZE};
        uint64_t all = segment_record_size(&record);
        uint8_t *content = mem_alloc(SEGMENT_HEADER_SIZE + all + SEGMENT_HEAD_SIZE);
        struct segment_record sealing = {.synced = SEGMENT_HEADER_SIZE + all,
                                         .offset = SEGMENT_HEADER_SIZE + all};
        struct segment_summary summary;
        struct segment_reader *reader;
        int found;

        ck_assert_uint_eq(all % 8, 0);
        ck_assert_uint_lt(all - SEGMENT_HEAD_SIZE - n_fields - len, 8);
        memset(body, 'b', len);
        segment_write_header(image_id, content);
        segment_write_head(image_id, &record, content + SEGMENT_HEADER_SIZE);
        memcpy(content + SEGMENT_HEADER_SIZE + SEGMENT_HEAD_SIZE, field, n_fields);
        memcpy(content + SEGMENT_HEADER_SIZE + SEGMENT_HEAD_SIZE + n_fields, body, len);
        segment_write_head(image_id, &sealing, content + sealing.offset);
        reader = image_open(content, sealing.offset + SEGMENT_HEAD_SIZE);
        found = segment_reader_next(reader, &record);
        ck_assert_int_ge(found, 0);
        if (found) {
                ck_assert_uint_eq(record.fields.len, n_fields);
                ck_assert_uint_eq(record.body.len, len);
                ck_assert_int_eq(memcmp(record.body.data, body, len), 0);
                ck_assert_int_eq(segment_reader_next(reader, &record), 0);
        }
        segment_reader_summary(reader, &summary);
        *damaged = summary.damaged_bytes;
        ck_assert_uint_eq(summary.torn_bytes, 0);
        segment_reader_close(reader);
        free(content);
        free(field);
        free(body);
        return found;
}

START_TEST(test_bodies_have_up_to_64_mib)
{
        static const size_t lengths[] = {0, 1, 7, 8, 9, (1 << 20) - 1, 1 << 20, SEGMENT_BODY_MAX};
        uint64_t damaged;

        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
                ck_assert(is_read(1, lengths[i], &damaged));
                ck_assert_uint_eq(damaged, 0);
        }
        ck_assert(is_read(SEGMENT_FIELDS_MAX, 1, &damaged));
        ck_assert_uint_eq(damaged, 0);
        ck_assert(!is_read(1, SEGMENT_BODY_MAX + 1, &damaged));
        ck_assert_uint_gt(damaged, SEGMENT_BODY_MAX);
        ck_assert(!is_read(SEGMENT_FIELDS_MAX + 1, 1, &damaged));
        ck_assert_uint_gt(damaged, SEGMENT_FIELDS_MAX);
}
END_TEST

/* Heads that are intact, each of which claims what follows it as its body, or more than there is. */
START_TEST(test_forged_heads_take_no_time)
{
        struct segment_record record = {.fields = {"x", 1}};
        struct segment_reader *reader;
        char *body = mem_alloc(IMAGE_MAX_SIZE);

        image_begin();
        while (image_size + SEGMENT_HEAD_SIZE < IMAGE_MAX_SIZE) {
                record.offset = image_size;
                record.body = (struct span){body, _i == 0   ? IMAGE_MAX_SIZE - 100 - image_size
                                                  : _i == 1 ? 30000
                                                            : IMAGE_MAX_SIZE};
                segment_write_head(image_id, &record, image_bytes + image_size);
                image_size += _i == 0 ? SEGMENT_HEAD_SIZE << 5 : SEGMENT_HEAD_SIZE;
                if (_i != 0 && image_size > 40960)
                        break;
        }
        image_size = IMAGE_MAX_SIZE;
        disk_n_read = 0;
        reader = image_open(image_bytes, image_size);
        ck_assert_int_eq(segment_reader_next(reader, &record), 0);
        segment_reader_close(reader);
        ck_assert_uint_le(disk_n_read, 3 * image_size);
        free(body);
}
END_TEST

/* Bytes that look like heads at each place, but are not. */
START_TEST(test_forged_magic_takes_no_time)
{
        struct segment_record record;
        struct segment_reader *reader;

        image_begin();
        for (image_size = 40; image_size + 4 <= IMAGE_MAX_SIZE; image_size += 8)
                memcpy(image_bytes + image_size, "GPRC", 4);
        disk_n_read = 0;
        reader = image_open(image_bytes, IMAGE_MAX_SIZE);
        ck_assert_int_eq(segment_reader_next(reader, &record), 0);
        segment_reader_close(reader);
        ck_assert_uint_le(disk_n_read, 3 * IMAGE_MAX_SIZE);
}
END_TEST

START_TEST(test_only_regular_files_are_read)
{
        const char *fifo = scratch_path("fifo"), *link = scratch_path("link"),
                   *directory = scratch_path("directory");
        struct error error;

        ck_assert_int_eq(mkfifo(fifo, 0600), 0);
        ck_assert_int_eq(symlink("/etc/passwd", link), 0);
        ck_assert_int_eq(mkdir(directory, 0700), 0);
        ck_assert_ptr_null(segment_reader_open(AT_FDCWD, fifo, &error));
        ck_assert_str_eq(error.text, "it is not a regular file");
        ck_assert_ptr_null(segment_reader_open(AT_FDCWD, link, &error));
        ck_assert_ptr_null(segment_reader_open(AT_FDCWD, directory, &error));
        ck_assert_int_eq(rmdir(directory), 0);
}
END_TEST

START_TEST(test_short_files_have_no_records)
{
        struct segment_record record;
        struct segment_reader *reader;

        image_begin();
        reader = image_open(image_bytes, (size_t)_i);
        ck_assert_int_eq(segment_reader_next(reader, &record), 0);
        segment_reader_close(reader);
}
END_TEST

START_TEST(test_names_have_sixteen_digits_and_room_for_later_ones)
{
        char name[SPOOL_NAME_SIZE];
        uint64_t number;

        ck_assert_int_eq(spool_directory_parse(spool_directory_name(255, name), &number), 0);
        ck_assert_uint_eq(number, 255);
        ck_assert_int_eq(spool_directory_parse("00000000000000ff.spool.damaged", &number), -1);
        ck_assert_int_eq(spool_directory_parse("00000000000000FF.spool", &number), -1);
        ck_assert_int_eq(spool_directory_parse("ff.spool", &number), -1);
        ck_assert_int_eq(spool_directory_parse("ffffffffffffffff.spool", &number), -1);
        ck_assert_int_eq(spool_directory_parse("4000000000000000.spool", &number), 0);
}
END_TEST

Suite *
suite_segment(void)
{
        Suite *suite = suite_create("segment");
        TCase *tcase = tcase_create("segment");

        tcase_add_checked_fixture(tcase, scratch_setup, scratch_teardown);
        tcase_set_timeout(tcase, 120);
        tcase_add_test(tcase, test_records_are_read_as_they_were_written);
        tcase_add_test(tcase, test_fields_are_read_as_they_were_written);
        tcase_add_test(tcase, test_names_and_values_have_up_to_65535_bytes);
        tcase_add_test(tcase, test_bodies_have_up_to_64_mib);
        tcase_add_loop_test(tcase, test_forged_heads_take_no_time, 0, 3);
        tcase_add_test(tcase, test_forged_magic_takes_no_time);
        tcase_add_test(tcase, test_only_regular_files_are_read);
        tcase_add_loop_test(tcase, test_short_files_have_no_records, 0, SEGMENT_HEADER_SIZE + 1);
        tcase_add_test(tcase, test_names_have_sixteen_digits_and_room_for_later_ones);
        suite_add_tcase(suite, tcase);
        return suite;
}
