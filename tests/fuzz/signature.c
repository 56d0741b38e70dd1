/*
 * The signature header: each signature has exactly one valid text, and only the correct signature is genuine.
 */
#include <stdio.h>
#include <string.h>

#include "model/signature.h"
#include "transcript.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
        static struct signature_key *key;
        uint8_t signature[SIGNATURE_SIZE], right[SIGNATURE_SIZE];
        char text[SIGNATURE_HEADER_LEN + 1], *exact = malloc(len > 0 ? len : 1);

        if (key == NULL)
                key = signature_key_new("a secret of the fuzzer, long enough", 35);
        MUST(key != NULL);
        memcpy(exact, data, len);
        if (signature_parse(exact, len, signature) == 0) {
                signature_format(signature, text);
                MUST(len == SIGNATURE_HEADER_LEN && memcmp(text, exact, len) == 0);
                MUST(signature_verify(&key, 1, "1790000000", exact, len, signature) == 0);
        }
        MUST(signature_compute(key, "1790000000", exact, len, right) == 0);
        signature_format(right, text);
        MUST(signature_parse(text, strlen(text), signature) == 0 &&
             memcmp(signature, right, sizeof(right)) == 0);
        MUST(signature_verify(&key, 1, "1790000000", exact, len, right) == 1);
        right[len % SIGNATURE_SIZE] ^= (uint8_t)(1u << len % 8);
        MUST(signature_verify(&key, 1, "1790000000", exact, len, right) == 0);
        free(exact);
        return 0;
}
