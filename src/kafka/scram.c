#include "kafka/scram.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/bytes.h"
#include "base/mem.h"

#define GS2_HEADER "n,,"  /* no channel binding */
#define GS2_BASE64 "biws" /* GS2_HEADER in base64 */
#define MIN_ITERATIONS 1
#define MAX_ITERATIONS 1000000 /* a hostile server must not keep us busy */

struct scram {
        const EVP_MD *digest;
        const char *password;
        char nonce[BYTES_UUID_SIZE];
        char *first; /* with its GS2 header */
        char *final;
        uint8_t server_signature[EVP_MAX_MD_SIZE];
};

/* Escape a user name (RFC 5802, section 5.1). The caller frees it. */
static char *
escape(const char *user)
{
        char *escaped = mem_alloc(3 * strlen(user) + 1), *end = escaped;

        for (; *user != '\0'; user++) {
                if (*user == ',')
                        end = stpcpy(end, "=2C");
                else if (*user == '=')
                        end = stpcpy(end, "=3D");
                else
                        *end++ = *user;
        }
        return escaped;
}

struct scram *
scram_new(const char *mechanism, const char *user, const char *password)
{
        struct scram *scram = mem_alloc(sizeof(*scram));
        char *escaped = escape(user);

        scram->digest = strcmp(mechanism, "SCRAM-SHA-512") == 0 ? EVP_sha512() : EVP_sha256();
        scram->password = password;
        scram->first = mem_printf(GS2_HEADER "n=%s,r=%s", escaped, bytes_random_uuid(scram->nonce));
        free(escaped);
        return scram;
}

void
scram_free(struct scram *scram)
{
        if (scram == NULL)
                return;
        free(scram->first);
        free(scram->final);
        free(scram);
}

const char *
scram_first(const struct scram *scram)
{
        return scram->first;
}

/* Return the value of an attribute of a message, which the caller frees; NULL: missing. */
static char *
attribute(const char *message, char name)
{
        while (message != NULL && (message[0] != name || message[1] != '=')) {
                message = strchr(message, ',');
                message = message == NULL ? NULL : message + 1;
        }
        return message == NULL ? NULL : mem_strndup(message + 2, strcspn(message + 2, ","));
}

/* Decode base64. Returns *len bytes, which the caller frees, or NULL. */
static uint8_t *
decode(const char *text, size_t *len)
{
        size_t n = strlen(text), padding = 0;
        uint8_t *bytes = mem_alloc(n + 1);
        int decoded = n == 0 || n > 4096 ? -1 : EVP_DecodeBlock(bytes, (const uint8_t *)text, (int)n);

        while (padding < 2 && padding < n && text[n - 1 - padding] == '=')
                padding++;
        if (decoded >= (int)padding) {
                *len = (size_t)decoded - padding;
                return bytes;
        }
        free(bytes);
        return NULL;
}

static int
mac(const struct scram *scram, const uint8_t *key, const char *text, uint8_t result[EVP_MAX_MD_SIZE])
{
        return HMAC(scram->digest, key, EVP_MD_get_size(scram->digest), (const uint8_t *)text, strlen(text),
                    result, NULL) == NULL
                   ? -1
                   : 0;
}

/* Compute the client's proof and the signature that the server must send. */
static int
prove(struct scram *scram, const uint8_t *salted, const char *messages, uint8_t proof[EVP_MAX_MD_SIZE])
{
        uint8_t client[EVP_MAX_MD_SIZE], stored[EVP_MAX_MD_SIZE], server[EVP_MAX_MD_SIZE];
        size_t size = (size_t)EVP_MD_get_size(scram->digest);
        int result = -1;

        if (mac(scram, salted, "Client Key", client) == 0 &&
            EVP_Digest(client, size, stored, NULL, scram->digest, NULL) == 1 &&
            mac(scram, stored, messages, proof) == 0 && mac(scram, salted, "Server Key", server) == 0 &&
            mac(scram, server, messages, scram->server_signature) == 0)
                result = 0;
        for (size_t i = 0; i < size && result == 0; i++)
                proof[i] ^= client[i];
        OPENSSL_cleanse(client, sizeof(client));
        OPENSSL_cleanse(stored, sizeof(stored));
        OPENSSL_cleanse(server, sizeof(server));
        return result;
}

/* Write the final message, for the server's nonce, salt and number of iterations. */
static int
finish(struct scram *scram, const char *server_first, const char *nonce, const uint8_t *salt, size_t salt_len,
       int iterations)
{
        char *without_proof = mem_printf("c=" GS2_BASE64 ",r=%s", nonce), *proof_text;
        char *messages =
            mem_printf("%s,%s,%s", scram->first + strlen(GS2_HEADER), server_first, without_proof);
        uint8_t salted[EVP_MAX_MD_SIZE], proof[EVP_MAX_MD_SIZE];
        int size = EVP_MD_get_size(scram->digest), result = -1;

        if (PKCS5_PBKDF2_HMAC(scram->password, (int)strlen(scram->password), salt, (int)salt_len, iterations,
                              scram->digest, size, salted) == 1)
                result = prove(scram, salted, messages, proof);
        if (result == 0) {
                proof_text = bytes_to_base64(proof, (size_t)size);
                scram->final = mem_printf("%s,p=%s", without_proof, proof_text);
                free(proof_text);
        }
        OPENSSL_cleanse(salted, sizeof(salted));
        free(without_proof);
        free(messages);
        return result;
}

const char *
scram_final(struct scram *scram, const char *server_first, struct error *error)
{
        char *nonce = attribute(server_first, 'r'), *salt_text = attribute(server_first, 's'),
             *iterations_text = attribute(server_first, 'i');
        size_t salt_len = 0;
        uint8_t *salt = salt_text == NULL ? NULL : decode(salt_text, &salt_len);
        long iterations = iterations_text == NULL ? 0 : strtol(iterations_text, NULL, 10);

        if (nonce == NULL || salt == NULL || iterations < MIN_ITERATIONS || iterations > MAX_ITERATIONS ||
            strncmp(nonce, scram->nonce, strlen(scram->nonce)) != 0)
                (void)error_set(error, "the broker's part of SCRAM is invalid");
        else if (finish(scram, server_first, nonce, salt, salt_len, (int)iterations) != 0)
                (void)error_set_openssl(error, "SCRAM");
        free(nonce);
        free(salt_text);
        free(iterations_text);
        free(salt);
        return scram->final;
}

int
scram_check(const struct scram *scram, const char *server_final, struct error *error)
{
        char *text = attribute(server_final, 'v');
        size_t len = 0;
        uint8_t *signature = text == NULL ? NULL : decode(text, &len);
        int is_right = signature != NULL && len == (size_t)EVP_MD_get_size(scram->digest) &&
                       CRYPTO_memcmp(signature, scram->server_signature, len) == 0;

        free(text);
        free(signature);
        return is_right ? 0 : error_set(error, "the broker does not prove that it knows the password");
}
