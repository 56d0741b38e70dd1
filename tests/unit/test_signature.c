#include <string.h>

#include "model/signature.h"
#include "suites.h"

/* Computed with: printf '%s.%s' 1795229045 BODY | openssl dgst -sha256 -hmac SECRET */
#define BODY "{\"event\":\"invoice.accepted\"}"
#define SECRET "0123456789abcdef"
#define TIMESTAMP "1795229045"
#define SIGNATURE "sha256=517025e30e0a6a334329ef869f9b6bf3a81b705c4e0cbe5c43e9a56db032633a"

static struct signature_key *keys[2];
static uint8_t right[SIGNATURE_SIZE];

static void
set_up(void)
{
        keys[0] = signature_key_new("another secret, as long", 23);
        keys[1] = signature_key_new(SECRET, strlen(SECRET));
        ck_assert_int_eq(signature_parse(SIGNATURE, strlen(SIGNATURE), right), 0);
}

static void
tear_down(void)
{
        signature_key_free(keys[0]);
        signature_key_free(keys[1]);
}

START_TEST(test_a_signature_is_as_openssl_computes_it)
{
        uint8_t signature[SIGNATURE_SIZE];
        char text[SIGNATURE_HEADER_LEN + 1];

        ck_assert_int_eq(signature_compute(keys[1], TIMESTAMP, BODY, strlen(BODY), signature), 0);
        signature_format(signature, text);
        ck_assert_str_eq(text, SIGNATURE);
}
END_TEST

START_TEST(test_any_of_several_secrets_lets_in)
{
        ck_assert_int_eq(signature_verify(keys, 2, TIMESTAMP, BODY, strlen(BODY), right), 1);
        ck_assert_int_eq(signature_verify(keys + 1, 1, TIMESTAMP, BODY, strlen(BODY), right), 1);
        ck_assert_int_eq(signature_verify(keys, 1, TIMESTAMP, BODY, strlen(BODY), right), 0);
        ck_assert_int_eq(signature_verify(keys, 0, TIMESTAMP, BODY, strlen(BODY), right), 0);
}
END_TEST

START_TEST(test_one_bit_anywhere_keeps_out)
{
        char body[] = BODY;

        ck_assert_int_eq(signature_verify(keys, 2, "1795229046", BODY, strlen(BODY), right), 0);
        ck_assert_int_eq(signature_verify(keys, 2, TIMESTAMP, BODY "\n", strlen(BODY) + 1, right), 0);
        body[5] ^= 1;
        ck_assert_int_eq(signature_verify(keys, 2, TIMESTAMP, body, strlen(BODY), right), 0);
        for (size_t i = 0; i < SIGNATURE_SIZE; i++) {
                right[i] ^= 0x80;
                ck_assert_int_eq(signature_verify(keys, 2, TIMESTAMP, BODY, strlen(BODY), right), 0);
                right[i] ^= 0x80;
        }
}
END_TEST

START_TEST(test_only_lowercase_hex_with_its_prefix_is_a_signature)
{
        char text[] = SIGNATURE "0";
        uint8_t signature[SIGNATURE_SIZE];

        ck_assert_int_eq(signature_parse(text, strlen(text), signature), -1);
        ck_assert_int_eq(signature_parse(text + 7, 64, signature), -1);
        ck_assert_int_eq(signature_parse(text, 70, signature), -1);
        text[20] = 'A';
        ck_assert_int_eq(signature_parse(text, SIGNATURE_HEADER_LEN, signature), -1);
        memcpy(text, "SHA256=", 7);
        ck_assert_int_eq(signature_parse(text, SIGNATURE_HEADER_LEN, signature), -1);
}
END_TEST

Suite *
suite_signature(void)
{
        Suite *suite = suite_create("signature");
        TCase *all = tcase_create("all");

        tcase_add_checked_fixture(all, set_up, tear_down);
        tcase_add_test(all, test_a_signature_is_as_openssl_computes_it);
        tcase_add_test(all, test_any_of_several_secrets_lets_in);
        tcase_add_test(all, test_one_bit_anywhere_keeps_out);
        tcase_add_test(all, test_only_lowercase_hex_with_its_prefix_is_a_signature);
        suite_add_tcase(suite, all);
        return suite;
}
