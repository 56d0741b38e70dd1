#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "disk.h"
#include "scratch.h"
#include "spool/segment.h"
#include "spool/spool_directory.h"
#include "suites.h"

#define RECORDS 40
#define MAX_SIZE (1 << 20)
#define ROUNDS 2000

static const uint8_t id[SEGMENT_ID_SIZE] = {1, 2, 3, 4, 5, 6, 7, 8};

/* A segment in memory, and its records. */
static uint8_t bytes[MAX_SIZE];
static size_t size;
static struct segment_record records[RECORDS + 1];
static size_t n_records;
static uint64_t seed = 7;

static uint32_t
draw(uint32_t below)
{
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (uint32_t)(seed >> 33) % below;
}

static void
begin(void)
{
        segment_write_header(id, bytes);
        size = SEGMENT_HEADER_SIZE;
        n_records = 0;
}

/* Append a record that says that all before it was synced. */
static void
append(const char *fields, size_t n_fields, const char *body, size_t len)
{
        struct segment_record record = {.received_ms = 1795600000000 + (int64_t)n_records,
                                        .fields = {fields, n_fields},
                                        .body = {body, len},
                                        .synced = size,
                                        .offset = size};

        segment_write_head(id, &record, bytes + size);
        memcpy(bytes + size + SEGMENT_HEAD_SIZE, fields, n_fields);
        memcpy(bytes + size + SEGMENT_HEAD_SIZE + n_fields, body, len);
        record.fields.data = (const char *)bytes + size + SEGMENT_HEAD_SIZE;
        record.body.data = record.fields.data + n_fields;
        records[n_records++] = record;
        size += segment_record_size(&record);
        ck_assert_uint_lt(size, MAX_SIZE);
}

/* A segment with records of various sizes, and a seal at its end. */
static void
make(void)
{
        static char text[4096];

        memset(bytes, 0, sizeof(bytes));
        begin();
        for (size_t i = 0; i < sizeof(text); i++)
                text[i] = (char)draw(256);
        for (unsigned i = 0; i < RECORDS; i++)
                append(text, 1 + draw(60), text + draw(1000), draw(2000));
        append("", 0, "", 0);
        n_records--;
}

/* Write the segment to a file, and open it. */
static struct segment_reader *
reopen(const uint8_t *content, size_t len)
{
        static const char *path;
        struct segment_reader *reader;
        struct error error;
        int fd;

        path = path == NULL ? scratch_path("segment") : path;
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        ck_assert_int_eq(write(fd, content, len), (ssize_t)len);
        ck_assert_int_eq(close(fd), 0);
        reader = segment_reader_open(AT_FDCWD, path, &error);
        ck_assert_ptr_nonnull(reader);
        return reader;
}

START_TEST(test_crc32c_of_the_examples_of_rfc_3720)
{
        uint8_t data[32];

        memset(data, 0, sizeof(data));
        ck_assert_uint_eq(crc32c_add(0, data, sizeof(data)), 0x8a9136aa);
        memset(data, 0xff, sizeof(data));
        ck_assert_uint_eq(crc32c_add(0, data, sizeof(data)), 0x62a8ab43);
        for (unsigned i = 0; i < sizeof(data); i++)
                data[i] = (uint8_t)i;
        ck_assert_uint_eq(crc32c_add(0, data, sizeof(data)), 0x46dd794e);
        ck_assert_uint_eq(crc32c_add(crc32c_add(0, data, 13), data + 13, sizeof(data) - 13), 0x46dd794e);
}
END_TEST

START_TEST(test_records_are_read_as_they_were_written)
{
        struct segment_summary summary;
        struct segment_record record;
        struct segment_reader *reader;
        size_t n = 0;

        make();
        reader = reopen(bytes, size);
        while (segment_reader_next(reader, &record) > 0) {
                ck_assert_uint_lt(n, n_records);
                ck_assert_int_eq(record.received_ms, records[n].received_ms);
                ck_assert_uint_eq(record.offset, records[n].offset);
                ck_assert_uint_eq(record.body.len, records[n].body.len);
                ck_assert_int_eq(memcmp(record.body.data, records[n].body.data, record.body.len), 0);
                n++;
        }
        ck_assert_uint_eq(n, n_records);
        segment_reader_summary(reader, &summary);
        ck_assert_uint_eq(summary.damaged_bytes + summary.torn_bytes, 0);
        ck_assert_int_eq(summary.oldest_ms, records[0].received_ms);
        ck_assert_int_eq(summary.newest_ms, records[n - 1].received_ms);
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
                                           (struct span){(const char *)bytes, 90}),
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

/* Damage a copy of the segment. Return the first byte that is damaged, or `len` if nothing is. */
static size_t
damage(uint8_t *copy, size_t *len)
{
        const struct segment_record *from = &records[draw((uint32_t)n_records)],
                                    *to = &records[draw((uint32_t)n_records)];
        size_t at = draw((uint32_t)size), n = 1 + draw(600);

        n = at + n > size ? size - at : n;
        switch (draw(6)) {
        case 0:
                copy[at] ^= (uint8_t)(1 << draw(8));
                break;
        case 1:
                *len = at;
                break;
        case 2:
                memset(copy + at, 0, n);
                break;
        case 3: /* a record over another one */
                at = to->offset;
                n = segment_record_size(from) < size - at ? segment_record_size(from) : size - at;
                memmove(copy + at, bytes + from->offset, n);
                break;
        case 4: /* a length, or a time, in a head */
                at = to->offset + 4 + draw(36);
                copy[at] = (uint8_t)draw(256);
                break;
        default:
                for (size_t i = 0; i < n; i++)
                        copy[at + i] = (uint8_t)draw(256);
                break;
        }
        for (size_t i = 0; i < *len; i++) {
                if (copy[i] != bytes[i])
                        return i;
        }
        return *len;
}

static const struct segment_record *
find(uint64_t offset)
{
        for (size_t i = 0; i < n_records; i++) {
                if (records[i].offset == offset)
                        return &records[i];
        }
        return NULL;
}

START_TEST(test_damage_is_reported_and_no_record_is_changed)
{
        static uint8_t copy[MAX_SIZE];

        make();
        for (unsigned round = 0; round < ROUNDS; round++) {
                size_t len = size, first, n = 0;
                struct segment_summary summary;
                struct segment_record record;
                struct segment_reader *reader;

                memcpy(copy, bytes, size);
                first = damage(copy, &len);
                reader = reopen(copy, len);
                while (segment_reader_next(reader, &record) > 0) {
                        const struct segment_record *written = find(record.offset);

                        ck_assert_ptr_nonnull(written);
                        ck_assert_int_eq(record.received_ms, written->received_ms);
                        ck_assert_uint_eq(record.fields.len, written->fields.len);
                        ck_assert_uint_eq(record.body.len, written->body.len);
                        ck_assert_int_eq(memcmp(record.fields.data, written->fields.data,
                                                record.fields.len + record.body.len),
                                         0);
                        n++;
                }
                segment_reader_summary(reader, &summary);
                segment_reader_close(reader);
                /* Without the seal, damage at the end looks like the tail of a crash. */
                if (n < n_records && len == size &&
                    memcmp(copy + size - SEGMENT_HEAD_SIZE, bytes + size - SEGMENT_HEAD_SIZE,
                           SEGMENT_HEAD_SIZE) == 0)
                        ck_assert_msg(summary.damaged_bytes > 0,
                                      "round %u: %zu of %zu records, damaged from %zu", round, n, n_records,
                                      first);
                if (first == len && len == size)
                        ck_assert_uint_eq(summary.damaged_bytes, 0);
        }
}
END_TEST

START_TEST(test_failing_sectors_cost_only_the_records_in_them)
{
        struct segment_summary summary;
        struct segment_record record;
        struct segment_reader *reader;
        size_t n = 0;

        make();
        disk_unreadable_from = 8192;
        disk_unreadable_to = 12288;
        reader = reopen(bytes, size);
        while (segment_reader_next(reader, &record) > 0)
                n++;
        disk_unreadable_from = disk_unreadable_to = 0;
        segment_reader_summary(reader, &summary);
        segment_reader_close(reader);
        ck_assert_uint_lt(n, n_records);
        ck_assert_uint_gt(n, n_records - 15);
        ck_assert_uint_gt(summary.damaged_bytes, 4000);
}
END_TEST

/* Heads that are intact, with lengths that lead beyond each other. */
START_TEST(test_forged_heads_take_no_time)
{
        int64_t begun_ms = clock_monotonic_ms();
        struct segment_record record = {.fields = {"x", 1}, .body = {NULL, 0}};
        struct segment_reader *reader;

        begin();
        while (size < 40960) {
                static const uint8_t body[4096];

                record.offset = size;
                record.body = (struct span){(const char *)body, sizeof(body)};
                segment_write_head(id, &record, bytes + size);
                bytes[size + 40] ^=
                    1; /* so that the CRC of the body does not match; that of the head is wrong, too */
                size += SEGMENT_HEAD_SIZE;
        }
        reader = reopen(bytes, size);
        ck_assert_int_eq(segment_reader_next(reader, &record), 0);
        segment_reader_close(reader);
        ck_assert_int_lt(clock_monotonic_ms() - begun_ms, 5000);
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

        begin();
        reader = reopen(bytes, (size_t)_i);
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
        tcase_add_test(tcase, test_crc32c_of_the_examples_of_rfc_3720);
        tcase_add_test(tcase, test_records_are_read_as_they_were_written);
        tcase_add_test(tcase, test_fields_are_read_as_they_were_written);
        tcase_add_test(tcase, test_damage_is_reported_and_no_record_is_changed);
        tcase_add_test(tcase, test_failing_sectors_cost_only_the_records_in_them);
        tcase_add_test(tcase, test_forged_heads_take_no_time);
        tcase_add_test(tcase, test_only_regular_files_are_read);
        tcase_add_loop_test(tcase, test_short_files_have_no_records, 0, SEGMENT_HEADER_SIZE + 1);
        tcase_add_test(tcase, test_names_have_sixteen_digits_and_room_for_later_ones);
        suite_add_tcase(suite, tcase);
        return suite;
}
