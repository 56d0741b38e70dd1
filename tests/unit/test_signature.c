#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "model/signature.h"
#include "suites.h"

#define TIMESTAMP "1795230245"
#define BODY "{\"event\":\"invoice.accepted\",\"data\":{\"invoiceId\":\"42\"}}"
#define LEN(literal) (sizeof(literal) - 1)

static const char secret[] = "0123456789abcdef0123456789abcdef";
static const char other_secret[] = "another-secret-of-the-rotation";

/* From Python: hmac.new(secret, timestamp + b'.' + body, hashlib.sha256).hexdigest() */
static const struct {
        const char *secret;
        const char *body;
        size_t len;
        const char *hex;
} known[] = {
    {secret, BODY, LEN(BODY), "589dc268294595fcab9d2f8e1c772f29abd80aed10327ce597fbbdf47f82dc68"},
    {other_secret, BODY, LEN(BODY), "83627d5cfe93d321cc81c045a413ecdbe5101f4d71f36f5e4ced1f3da2d4994b"},
    {secret, "", 0, "208cb2aae3cdb0761f251ab39a2ecdebbb79b8b4f29b6c10171e9985298fc807"},
    {secret, "a\0b\xff", 4, "dd88a1da0223ab0fa77cabb9afe207826cd60fbcf3dc194e0f6da9813713c575"},
};

static struct signature_key *
key_of(const char *text)
{
        struct signature_key *key = signature_key_new(text, strlen(text));

        ck_assert_ptr_nonnull(key);
        return key;
}

START_TEST(test_signature_matches_an_independent_hmac)
{
        struct signature_key *key = key_of(known[_i].secret);
        uint8_t signature[SIGNATURE_SIZE];
        char hex[2 * SIGNATURE_SIZE + 1];

        for (int round = 0; round < 2; round++) {
                ck_assert_int_eq(signature_compute(key, TIMESTAMP, known[_i].body, known[_i].len, signature),
                                 0);
                bytes_to_hex(signature, sizeof(signature), hex);
                ck_assert_str_eq(hex, known[_i].hex);
        }
        signature_key_free(key);
}
END_TEST

START_TEST(test_secret_may_be_binary_and_longer_than_a_hash_block)
{
        uint8_t long_secret[100], signature[SIGNATURE_SIZE];
        char hex[2 * SIGNATURE_SIZE + 1];
        struct signature_key *key;

        for (size_t i = 0; i < sizeof(long_secret); i++)
                long_secret[i] = (uint8_t)i;
        key = signature_key_new(long_secret, sizeof(long_secret));
        ck_assert_ptr_nonnull(key);
        memset(long_secret, 0, sizeof(long_secret)); /* the key must not need it any longer */
        ck_assert_int_eq(signature_compute(key, TIMESTAMP, BODY, LEN(BODY), signature), 0);
        bytes_to_hex(signature, sizeof(signature), hex);
        ck_assert_str_eq(hex, "aef949da8238bfbb6ab35e76d681c4d4139a333f801b92e17259401c0d1be99a");
        signature_key_free(key);
}
END_TEST

START_TEST(test_signature_under_any_of_several_keys_is_genuine)
{
        struct signature_key *keys[] = {key_of("a secret that signs nothing"), key_of(secret),
                                        key_of(other_secret), key_of("one more that signs nothing")};
        uint8_t signature[SIGNATURE_SIZE];

        for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
                ck_assert_int_eq(signature_compute(keys[i], TIMESTAMP, BODY, LEN(BODY), signature), 0);
                ck_assert_int_eq(signature_verify(keys, ARRAY_LEN(keys), TIMESTAMP, BODY, LEN(BODY),
                                                  signature),
                                 (int)i + 1);
        }
        /* The last key is unrelated to the others. */
        ck_assert_int_eq(signature_verify(keys, ARRAY_LEN(keys) - 1, TIMESTAMP, BODY, LEN(BODY), signature),
                         0);
        ck_assert_int_eq(signature_verify(keys, 0, TIMESTAMP, BODY, LEN(BODY), signature), 0);
        for (size_t i = 0; i < ARRAY_LEN(keys); i++)
                signature_key_free(keys[i]);
}
END_TEST

START_TEST(test_signature_covers_timestamp_body_and_their_boundary)
{
        struct signature_key *key = key_of(secret);
        uint8_t signature[SIGNATURE_SIZE];

        ck_assert_int_eq(signature_compute(key, TIMESTAMP, BODY, LEN(BODY), signature), 0);
        ck_assert_int_eq(signature_verify(&key, 1, TIMESTAMP, BODY, LEN(BODY), signature), 1);
        ck_assert_int_eq(signature_verify(&key, 1, "1795230246", BODY, LEN(BODY), signature), 0);
        ck_assert_int_eq(signature_verify(&key, 1, TIMESTAMP, BODY, LEN(BODY) - 1, signature), 0);
        ck_assert_int_eq(signature_verify(&key, 1, TIMESTAMP, BODY " ", LEN(BODY) + 1, signature), 0);
        ck_assert_int_eq(signature_verify(&key, 1, "179523024", "5." BODY, LEN(BODY) + 2, signature), 0);
        signature_key_free(key);
}
END_TEST

START_TEST(test_every_bit_of_a_signature_is_verified)
{
        struct signature_key *key = key_of(secret);
        uint8_t signature[SIGNATURE_SIZE];

        ck_assert_int_eq(signature_compute(key, TIMESTAMP, BODY, LEN(BODY), signature), 0);
        for (size_t bit = 0; bit < 8 * SIGNATURE_SIZE; bit++) {
                signature[bit / 8] ^= (uint8_t)(1u << bit % 8);
                ck_assert_int_eq(signature_verify(&key, 1, TIMESTAMP, BODY, LEN(BODY), signature), 0);
                signature[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        signature_key_free(key);
}
END_TEST

static void *
verify_often(void *arg)
{
        struct signature_key *key = arg;
        uint8_t signature[SIGNATURE_SIZE];
        intptr_t n_wrong = bytes_from_hex(known[0].hex, signature, sizeof(signature)) != 0;

        for (int i = 0; i < 2000; i++)
                n_wrong += signature_verify(&key, 1, TIMESTAMP, BODY, LEN(BODY), signature) != 1;
        return (void *)n_wrong;
}

START_TEST(test_key_can_be_shared_by_threads)
{
        struct signature_key *key = key_of(secret);
        pthread_t threads[4];

        for (size_t i = 0; i < ARRAY_LEN(threads); i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, verify_often, key), 0);
        for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
                void *n_wrong;

                ck_assert_int_eq(pthread_join(threads[i], &n_wrong), 0);
                ck_assert_ptr_null(n_wrong);
        }
        signature_key_free(key);
}
END_TEST

#define DIGITS_62 "9dc268294595fcab9d2f8e1c772f29abd80aed10327ce597fbbdf47f82dc68"

START_TEST(test_signature_header_is_formatted_as_parsed)
{
        uint8_t signature[SIGNATURE_SIZE];
        char text[SIGNATURE_HEADER_LEN + 1];

        ck_assert_int_eq(signature_parse("sha256=58" DIGITS_62, SIGNATURE_HEADER_LEN, signature), 0);
        ck_assert_uint_eq(signature[0], 0x58);
        ck_assert_uint_eq(signature[SIGNATURE_SIZE - 1], 0x68);
        signature_format(signature, text);
        ck_assert_str_eq(text, "sha256=58" DIGITS_62);
}
END_TEST

static const char *const malformed[] = {
    "",
    "sha256=",
    "58" DIGITS_62,
    "sha256=5" DIGITS_62,
    "sha256=5800" DIGITS_62,
    "sha256=5A" DIGITS_62,
    "sha256=5g" DIGITS_62,
    "sha256=5 " DIGITS_62,
    "SHA256=58" DIGITS_62,
    "sha512=58" DIGITS_62,
    "sha256:58" DIGITS_62,
    " sha256=5" DIGITS_62,
    "sha256=58" DIGITS_62 " ",
    "sha256=0x" DIGITS_62,
};

START_TEST(test_malformed_signature_header_is_refused)
{
        size_t len = strlen(malformed[_i]);
        char *exact =
            malloc(len > 0 ? len : 1); /* not NUL-terminated, so that the sanitizer detects reads beyond it */
        uint8_t signature[SIGNATURE_SIZE];

        ck_assert_ptr_nonnull(exact);
        memcpy(exact, malformed[_i], len);
        ck_assert_int_eq(signature_parse(exact, len, signature), -1);
        free(exact);
}
END_TEST

START_TEST(test_signature_key_free_accepts_null)
{
        signature_key_free(NULL);
}
END_TEST

START_TEST(test_signature_matches_only_the_signed_bytes)
{
        struct signature_key *key = key_of(secret);
        uint8_t signature[SIGNATURE_SIZE];

        ck_assert_int_eq(signature_compute(key, TIMESTAMP, BODY, LEN(BODY), signature), 0);
        ck_assert_int_eq(signature_matches(key, TIMESTAMP ".", LEN(TIMESTAMP "."), BODY, LEN(BODY),
                                           signature),
                         1);
        ck_assert_int_eq(signature_matches(key, "", 0, TIMESTAMP "." BODY, LEN(TIMESTAMP "." BODY),
                                           signature),
                         1);
        ck_assert_int_eq(signature_matches(key, TIMESTAMP, LEN(TIMESTAMP), BODY, LEN(BODY), signature), 0);
        signature[31] ^= 1;
        ck_assert_int_eq(signature_matches(key, TIMESTAMP ".", LEN(TIMESTAMP "."), BODY, LEN(BODY),
                                           signature),
                         0);
        signature_key_free(key);
}
END_TEST

Suite *
suite_signature(void)
{
        Suite *suite = suite_create("signature");
        TCase *tcase = tcase_create("signature");

        tcase_add_loop_test(tcase, test_signature_matches_an_independent_hmac, 0, ARRAY_LEN(known));
        tcase_add_test(tcase, test_secret_may_be_binary_and_longer_than_a_hash_block);
        tcase_add_test(tcase, test_signature_under_any_of_several_keys_is_genuine);
        tcase_add_test(tcase, test_signature_covers_timestamp_body_and_their_boundary);
        tcase_add_test(tcase, test_every_bit_of_a_signature_is_verified);
        tcase_add_test(tcase, test_signature_matches_only_the_signed_bytes);
        tcase_add_test(tcase, test_key_can_be_shared_by_threads);
        tcase_add_test(tcase, test_signature_header_is_formatted_as_parsed);
        tcase_add_loop_test(tcase, test_malformed_signature_header_is_refused, 0, ARRAY_LEN(malformed));
        tcase_add_test(tcase, test_signature_key_free_accepts_null);
        suite_add_tcase(suite, tcase);
        return suite;
}
