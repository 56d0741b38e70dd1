#include <check.h>
#include <string.h>

#include "base/compiler.h"
#include "model/digest.h"
#include "spans.h"
#include "suites.h"

static struct digest *digest;

static void
set_up(void)
{
        digest = digest_new(NULL);
        ck_assert_ptr_nonnull(digest);
}

static void
tear_down(void)
{
        digest_free(digest);
}

/* Whether two records have the same identity. */
static int
same_identity(const struct record *record, const struct record *other)
{
        uint8_t one[DEDUP_IDENTITY_SIZE], two[DEDUP_IDENTITY_SIZE];

        ck_assert_int_eq(digest_identity(digest, record, one), 0);
        ck_assert_int_eq(digest_identity(digest, other, two), 0);
        return memcmp(one, two, sizeof(one)) == 0;
}

START_TEST(test_identity_is_source_delivery_id_and_released)
{
        struct record record = {.source = SPAN("invoicing"), .key = SPAN("d-1")}, other = record;

        ck_assert(same_identity(&record, &other));
        other.source = SPAN("billing");
        ck_assert(!same_identity(&record, &other));
        other = record;
        other.key = SPAN("d-2");
        ck_assert(!same_identity(&record, &other));
        other = record;
        other.released = SPAN("0-17");
        ck_assert(!same_identity(&record, &other));
        record.released = SPAN("0-17");
        ck_assert(same_identity(&record, &other));
        record.released = SPAN("0-18");
        ck_assert(!same_identity(&record, &other));
}
END_TEST

START_TEST(test_identity_ignores_other_fields)
{
        struct record record = {.source = SPAN("invoicing"), .key = SPAN("d-1")}, other = record;

        other.partition = 3;
        other.offset = 12345;
        other.timestamp_ms = 1795230245000;
        other.body = SPAN("{}");
        other.webhook_id = SPAN("w-1");
        other.timestamp = SPAN("1795230245");
        other.replay_of = SPAN("d-0");
        other.traceparent = SPAN("00");
        ck_assert(same_identity(&record, &other));
}
END_TEST

START_TEST(test_marked_record_has_a_different_identity)
{
        struct record record = {.source = SPAN("invoicing"), .key = SPAN("d-1")}, other = record;
        uint8_t plain[DEDUP_IDENTITY_SIZE], replay[DEDUP_IDENTITY_SIZE], second[DEDUP_IDENTITY_SIZE];

        ck_assert_int_eq(digest_identity(digest, &record, plain), 0);
        ck_assert_int_eq(digest_marked(digest, &record, "replay", 17, replay), 0);
        ck_assert_mem_ne(plain, replay, sizeof(plain));
        ck_assert_int_eq(digest_marked(digest, &record, "replay", 17, second), 0);
        ck_assert_mem_eq(replay, second, sizeof(replay));
        ck_assert_int_eq(digest_marked(digest, &record, "replay", 18, second), 0);
        ck_assert_mem_ne(replay, second, sizeof(replay));
        other.key = SPAN("d-2");
        ck_assert_int_eq(digest_marked(digest, &other, "replay", 17, second), 0);
        ck_assert_mem_ne(replay, second, sizeof(replay));
        other = record;
        other.source = SPAN("billing");
        ck_assert_int_eq(digest_marked(digest, &other, "replay", 17, second), 0);
        ck_assert_mem_ne(replay, second, sizeof(replay));
        other = record;
        other.released = SPAN("0-17");
        ck_assert_int_eq(digest_marked(digest, &other, "replay", 17, second), 0);
        ck_assert_mem_ne(replay, second, sizeof(replay));
        ck_assert_int_eq(digest_marked(digest, &record, "doubt", 17, second), 0);
        ck_assert_mem_ne(replay, second, sizeof(replay));
        other.released = SPAN("replay");
        ck_assert_int_eq(digest_identity(digest, &other, plain), 0);
        ck_assert_mem_ne(plain, second, sizeof(plain));
}
END_TEST

START_TEST(test_parts_of_an_identity_are_delimited)
{
        struct record record = {.source = SPAN("ab"), .key = SPAN("c")};
        struct record other = {.source = SPAN("a"), .key = SPAN("bc")};

        ck_assert(!same_identity(&record, &other));
        record = (struct record){.source = SPAN("a"), .key = SPAN("b0-1")};
        other = (struct record){.source = SPAN("a"), .key = SPAN("b"), .released = SPAN("0-1")};
        ck_assert(!same_identity(&record, &other));
        record = (struct record){.source = SPAN("a"), .key = SPAN("b\0")};
        other = (struct record){.source = SPAN("a"), .key = SPAN("b")};
        ck_assert(!same_identity(&record, &other));
}
END_TEST

START_TEST(test_missing_parts_equal_empty_ones)
{
        struct record record = {.source = NO_SPAN, .key = SPAN("d-1")};
        struct record other = {.source = SPAN(""), .key = SPAN("d-1"), .released = SPAN("")};

        ck_assert(same_identity(&record, &other));
}
END_TEST

static uint64_t
body_of(struct digest *with, const void *data, size_t len)
{
        const struct record record = {.key = SPAN("d-1"), .body = {data, len}};
        uint64_t body;

        ck_assert_int_eq(digest_body(with, &record, &body), 0);
        return body;
}

START_TEST(test_bodies_differing_in_a_bit_or_length_have_different_digests)
{
        static const size_t lengths[] = {1, 15, 16, 17, 1000};
        char body[1001] = "";

        for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
                uint64_t known = body_of(digest, body, lengths[i]);

                ck_assert(body_of(digest, body, lengths[i]) == known);
                ck_assert(body_of(digest, body, lengths[i] - 1) != known);
                ck_assert(body_of(digest, body, lengths[i] + 1) != known);
                body[lengths[i] - 1] ^= 1;
                ck_assert(body_of(digest, body, lengths[i]) != known);
        }
}
END_TEST

START_TEST(test_body_digest_depends_on_the_body_only)
{
        const struct record other = {.key = SPAN("d-2"), .source = SPAN("billing"), .body = SPAN("abc")};
        uint64_t body;

        ck_assert_int_eq(digest_body(digest, &other, &body), 0);
        ck_assert(body == body_of(digest, "abc", 3));
        ck_assert(body_of(digest, NULL, 0) == body_of(digest, "", 0));
}
END_TEST

START_TEST(test_every_digest_has_its_own_key)
{
        struct digest *other = digest_new(NULL);

        ck_assert_ptr_nonnull(other);
        ck_assert(body_of(digest, "abc", 3) != body_of(other, "abc", 3));
        digest_free(other);
}
END_TEST

/* The fingerprint of a record with up to two headers. */
static const uint8_t *
fingerprint(const char *topic, struct span key, struct span value, const struct record_header headers[2])
{
        static uint8_t bytes[2][DIGEST_FINGERPRINT_SIZE];
        static int turn;

        turn = !turn;
        ck_assert_int_eq(digest_begin(digest, topic, key, value), 0);
        for (size_t i = 0; i < 2 && headers[i].name != NULL; i++)
                ck_assert_int_eq(digest_header(digest, headers[i].name, headers[i].value), 0);
        ck_assert_int_eq(digest_end(digest, bytes[turn]), 0);
        return bytes[turn];
}

static int
same_fingerprint(const uint8_t *one, const uint8_t *other)
{
        return memcmp(one, other, DIGEST_FINGERPRINT_SIZE) == 0;
}

START_TEST(test_fingerprint_depends_on_every_part_of_a_record)
{
        const struct record_header ab[2] = {{"a", SPAN_OF("1")}, {"b", SPAN_OF("2")}};
        const struct record_header ba[2] = {{"b", SPAN_OF("2")}, {"a", SPAN_OF("1")}};
        const struct record_header joined[2] = {{"a", SPAN_OF("1b2")}, {NULL, {NULL, 0}}};
        const struct record_header none[2] = {{NULL, {NULL, 0}}, {NULL, {NULL, 0}}};
        const struct record_header detail[2] = {{RECORD_DETAIL, SPAN_OF("words")}, {NULL, {NULL, 0}}};
        struct span k = SPAN("k"), v = SPAN("v");

        ck_assert(same_fingerprint(fingerprint("t", k, v, ab), fingerprint("t", k, v, ab)));
        ck_assert(!same_fingerprint(fingerprint("t", k, v, ab), fingerprint("u", k, v, ab)));
        ck_assert(!same_fingerprint(fingerprint("t", k, v, ab), fingerprint("t", v, v, ab)));
        ck_assert(!same_fingerprint(fingerprint("t", k, v, ab), fingerprint("t", k, k, ab)));
        ck_assert(!same_fingerprint(fingerprint("t", k, v, ab), fingerprint("t", k, v, ba)));
        ck_assert(!same_fingerprint(fingerprint("t", k, v, ab), fingerprint("t", k, v, joined)));
        ck_assert(same_fingerprint(fingerprint("t", k, v, none), fingerprint("t", k, v, detail)));
        ck_assert(!same_fingerprint(fingerprint("t", k, v, ab), fingerprint("t", k, v, none)));
        ck_assert(!same_fingerprint(fingerprint("t", SPAN("kv"), NO_SPAN, none),
                                    fingerprint("t", SPAN("k"), SPAN("v"), none)));
}
END_TEST

START_TEST(test_fingerprint_treats_null_as_empty)
{
        const struct record_header null[2] = {{"a", {NULL, 0}}, {NULL, {NULL, 0}}};
        const struct record_header empty[2] = {{"a", {"", 0}}, {NULL, {NULL, 0}}};

        ck_assert(same_fingerprint(fingerprint("t", NO_SPAN, NO_SPAN, null),
                                   fingerprint("t", SPAN(""), SPAN(""), empty)));
}
END_TEST

START_TEST(test_digest_free_accepts_null)
{
        digest_free(NULL);
}
END_TEST

Suite *
suite_digest(void)
{
        Suite *suite = suite_create("digest");
        TCase *tcase = tcase_create("digest");

        tcase_add_checked_fixture(tcase, set_up, tear_down);
        tcase_add_test(tcase, test_identity_is_source_delivery_id_and_released);
        tcase_add_test(tcase, test_identity_ignores_other_fields);
        tcase_add_test(tcase, test_marked_record_has_a_different_identity);
        tcase_add_test(tcase, test_parts_of_an_identity_are_delimited);
        tcase_add_test(tcase, test_missing_parts_equal_empty_ones);
        tcase_add_test(tcase, test_bodies_differing_in_a_bit_or_length_have_different_digests);
        tcase_add_test(tcase, test_body_digest_depends_on_the_body_only);
        tcase_add_test(tcase, test_every_digest_has_its_own_key);
        tcase_add_test(tcase, test_fingerprint_depends_on_every_part_of_a_record);
        tcase_add_test(tcase, test_fingerprint_treats_null_as_empty);
        tcase_add_test(tcase, test_digest_free_accepts_null);
        suite_add_tcase(suite, tcase);
        return suite;
}
