#include "segment_image.h"

#include <check.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "scratch.h"

const uint8_t image_id[SEGMENT_ID_SIZE] = {1, 2, 3, 4, 5, 6, 7, 8};
uint8_t image_bytes[IMAGE_MAX_SIZE], image_seal[SEGMENT_HEAD_SIZE];
size_t image_size, image_n_records;
struct segment_record image_records[IMAGE_RECORDS + 1];

static uint64_t seed = 7;

uint32_t
image_draw(uint32_t below)
{
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (uint32_t)(seed >> 33) % below;
}

void
image_begin(void)
{
        segment_write_header(image_id, image_bytes);
        image_size = SEGMENT_HEADER_SIZE;
        image_n_records = 0;
}

/* Append a record that says that all before it was synced. */
static void
append(const char *fields, size_t n_fields, const char *body, size_t len)
{
        struct segment_record record = {.received_ms = 1795600000000 + (int64_t)image_n_records,
                                        .fields = {fields, n_fields},
                                        .body = {body, len},
                                        .synced = image_size,
                                        .offset = image_size};

        segment_write_head(image_id, &record, image_bytes + image_size);
        memcpy(image_bytes + image_size + SEGMENT_HEAD_SIZE, fields, n_fields);
        memcpy(image_bytes + image_size + SEGMENT_HEAD_SIZE + n_fields, body, len);
        record.fields.data = (const char *)image_bytes + image_size + SEGMENT_HEAD_SIZE;
        record.body.data = record.fields.data + n_fields;
        image_records[image_n_records++] = record;
        image_size += segment_record_size(&record);
        ck_assert_uint_lt(image_size, IMAGE_MAX_SIZE);
}

void
image_make(void)
{
        static char text[4096];

        memset(image_bytes, 0, sizeof(image_bytes));
        image_begin();
        for (size_t i = 0; i < sizeof(text); i++)
                text[i] = (char)image_draw(256);
        for (unsigned i = 0; i < IMAGE_RECORDS; i++)
                append(text, 1 + image_draw(60), text + image_draw(1000), image_draw(2000));
        append("", 0, "", 0);
        image_n_records--;
        memcpy(image_seal, image_bytes + image_size - SEGMENT_HEAD_SIZE, SEGMENT_HEAD_SIZE);
}

struct segment_reader *
image_open(const uint8_t *content, size_t len)
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

const struct segment_record *
image_find(uint64_t offset)
{
        for (size_t i = 0; i < image_n_records; i++) {
                if (image_records[i].offset == offset)
                        return &image_records[i];
        }
        return NULL;
}
