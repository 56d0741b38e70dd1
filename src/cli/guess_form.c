#include "cli/guess_form.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "base/mem.h"

#define DIGITS ((size_t)2 * SIGNATURE_SIZE)

static int
read_hex(const char *text, uint8_t signature[SIGNATURE_SIZE], const char **what)
{
        char lower[DIGITS + 1] = "";

        if (strlen(text) != DIGITS)
                return -1;
        for (size_t i = 0; i < DIGITS; i++)
                lower[i] = (char)tolower((unsigned char)text[i]);
        *what = memcmp(lower, text, DIGITS) == 0 ? NULL : "the signature's digits are in upper case";
        return bytes_from_hex(lower, signature, SIGNATURE_SIZE);
}

static int
read_base64(const char *text, uint8_t signature[SIGNATURE_SIZE], const char **what)
{
        size_t len = strlen(text);
        uint8_t *bytes;
        int is_one;

        if (len > DIGITS)
                return -1;
        bytes = mem_alloc(BYTES_BASE64_ROOM(len));
        is_one = bytes_from_base64(text, len, bytes) == SIGNATURE_SIZE;
        if (is_one)
                memcpy(signature, bytes, SIGNATURE_SIZE);
        free(bytes);
        *what = "the signature is in base64 instead of hexadecimal";
        return is_one ? 0 : -1;
}

int
guess_form_read(const char *text, uint8_t signature[SIGNATURE_SIZE], struct guess_form *form)
{
        static const char *const others[] = {"sha256:", "sha-256=", "hmac-sha256=", "v1="};

        form->prefix = NULL;
        if (strncmp(text, "sha256=", 7) == 0) {
                text += 7;
        } else if (strncasecmp(text, "sha256=", 7) == 0) {
                form->prefix = "the prefix sha256= is not in lower case";
                text += 7;
        } else {
                form->prefix = "the prefix sha256= is missing";
                for (size_t i = 0; i < ARRAY_LEN(others); i++) {
                        if (strncasecmp(text, others[i], strlen(others[i])) != 0)
                                continue;
                        form->prefix = "the prefix is another than sha256=";
                        text += strlen(others[i]);
                        break;
                }
        }
        if (read_hex(text, signature, &form->digits) == 0)
                return 0;
        return read_base64(text, signature, &form->digits);
}
