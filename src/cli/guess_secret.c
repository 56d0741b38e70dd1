#include "cli/guess_secret.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "config/secrets.h"

/* Takes what. A key that cannot be made is left out. */
static void
add(struct guess_secrets *secrets, const void *secret, size_t len, char *what)
{
        struct signature_key *key = len == 0 ? NULL : signature_key_new(secret, len);

        if (key == NULL) {
                free(what);
                return;
        }
        secrets->items = mem_resize(secrets->items, secrets->n + 1, sizeof(*secrets->items));
        secrets->items[secrets->n++] = (struct guess_secret){key, what};
}

void
guess_secrets_add(struct guess_secrets *secrets, const char *secret, size_t len)
{
        add(secrets, secret, len, NULL);
}

void
guess_secrets_add_foreign(struct guess_secrets *secrets, const char *source, const char *secret, size_t len)
{
        add(secrets, secret, len, mem_printf("it was signed with the secret of the source %s", source));
}

static void
add_with(struct guess_secrets *secrets, const char *secret, size_t len, const char *end, const char *what)
{
        char *longer = mem_alloc(len + 3);

        memcpy(longer, secret, len);
        memcpy(longer + len, end, strlen(end));
        add(secrets, longer, len + strlen(end), mem_strdup(what));
        secrets_free(longer, len + 2);
}

/* Without white space, and without quotes, around it. */
static void
add_bare(struct guess_secrets *secrets, const char *secret, size_t len)
{
        const char *around = " \t\r\n\"'";
        size_t from = 0, to = len;

        while (to > 0 && strchr(around, secret[to - 1]) != NULL)
                to--;
        while (from < to && strchr(around, secret[from]) != NULL)
                from++;
        if (to - from < len)
                add(secrets, secret + from, to - from,
                    mem_strdup(
                        "the secret here has white space or quotes around it, and the sender's has none"));
}

static void
add_decoded(struct guess_secrets *secrets, const char *secret, size_t len)
{
        uint8_t *bytes = mem_alloc(BYTES_BASE64_ROOM(len));
        char *lower = mem_strndup(secret, len);
        size_t n;

        for (size_t i = 0; i < len; i++)
                lower[i] = (char)tolower((unsigned char)lower[i]);
        if (len % 2 == 0 && bytes_from_hex(lower, bytes, len / 2) == 0)
                add(secrets, bytes, len / 2,
                    mem_strdup("the sender decodes the secret from hexadecimal text, and here it is taken as "
                               "it is"));
        n = bytes_from_base64(secret, len, bytes);
        add(secrets, bytes, n,
            mem_strdup("the sender decodes the secret from base64, and here it is taken as it is"));
        secrets_free(lower, len);
        secrets_free((char *)bytes, BYTES_BASE64_ROOM(len));
}

static void
add_encoded(struct guess_secrets *secrets, const char *secret, size_t len)
{
        char *text = mem_alloc(2 * len + 1);

        bytes_to_hex((const uint8_t *)secret, len, text);
        add(secrets, text, 2 * len,
            mem_strdup("the sender takes the secret's hexadecimal text for the secret"));
        secrets_free(text, 2 * len);
        text = bytes_to_base64(secret, len);
        add(secrets, text, strlen(text),
            mem_strdup("the sender takes the secret's base64 text for the secret"));
        secrets_free(text, strlen(text));
}

void
guess_secrets_add_variants(struct guess_secrets *secrets, const char *secret, size_t len)
{
        add_with(secrets, secret, len, "\n", "the sender's secret has a newline at its end");
        add_with(secrets, secret, len, "\r\n", "the sender's secret has a newline, CR LF, at its end");
        add_bare(secrets, secret, len);
        add_decoded(secrets, secret, len);
        add_encoded(secrets, secret, len);
}

void
guess_secrets_clear(struct guess_secrets *secrets)
{
        for (size_t i = 0; i < secrets->n; i++) {
                signature_key_free(secrets->items[i].key);
                free(secrets->items[i].what);
        }
        free(secrets->items);
        *secrets = (struct guess_secrets){NULL, 0};
}
