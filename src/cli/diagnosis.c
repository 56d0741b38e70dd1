#include "cli/diagnosis.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/secrets.h"

/* Return whether one of the keys has signed the body at the time of the delivery. */
static int
is_signed(struct signature_key *const *keys, size_t n_keys, const struct delivery *delivery, const char *body,
          size_t len)
{
        return signature_verify(keys, n_keys, delivery->timestamp_text, body, len, delivery->signature) > 0;
}

/* Try the secrets of the other sources. */
static char *
try_sources(const struct config *config, const struct delivery *delivery, const char *body, size_t len)
{
        for (size_t s = 0; s < config->n_sources; s++) {
                const struct config_source *source = &config->sources[s];

                if (is_signed(source->keys, source->n_keys, delivery, body, len))
                        return mem_printf("it was signed with the secret of the source %s", source->name);
        }
        return NULL;
}

/* Try the body without the newline, or CR LF, at its end. */
static char *
try_shorter(const struct config_source *source, const struct delivery *delivery, const char *body, size_t len)
{
        if (len == 0 || body[len - 1] != '\n')
                return NULL;
        if (is_signed(source->keys, source->n_keys, delivery, body, len - 1) ||
            (len > 1 && body[len - 2] == '\r' &&
             is_signed(source->keys, source->n_keys, delivery, body, len - 2)))
                return mem_strdup("a newline was added to the end of the body");
        return NULL;
}

/* Try the body with a newline, or CR LF, at its end. */
static char *
try_longer(const struct config_source *source, const struct delivery *delivery, const char *body, size_t len)
{
        static const char *const endings[] = {"\n", "\r\n"};
        char *longer = mem_alloc(len + 2);
        int is_found = 0;

        memcpy(longer, body, len);
        for (size_t i = 0; i < ARRAY_LEN(endings) && !is_found; i++) {
                size_t ending_len = strlen(endings[i]);

                memcpy(longer + len, endings[i], ending_len);
                is_found = is_signed(source->keys, source->n_keys, delivery, longer, len + ending_len);
        }
        free(longer);
        return is_found ? mem_strdup("a newline was removed from the end of the body") : NULL;
}

/* Return a secret as a person sees it: printable ASCII, without blanks around it. */
static char *
keep_visible(const char *secret)
{
        char *visible = mem_alloc(strlen(secret) + 1), *end = visible;

        for (secret += strspn(secret, " "); *secret != '\0'; secret++) {
                if (*secret >= ' ' && *secret < 0x7f)
                        *end++ = *secret;
        }
        while (end > visible && end[-1] == ' ')
                end--;
        *end = '\0';
        return visible;
}

/* Try the secret in a file without its invisible characters. */
static char *
try_visible(const char *path, const struct delivery *delivery, const char *body, size_t len)
{
        struct error ignored;
        size_t secret_len;
        char *secret = secrets_read_signing(path, &secret_len, NULL, &ignored), *visible;
        struct signature_key *key;
        int is_found;

        if (secret == NULL)
                return NULL;
        visible = keep_visible(secret);
        key = signature_key_new(visible, strlen(visible));
        is_found = key != NULL && is_signed(&key, 1, delivery, body, len);
        signature_key_free(key);
        secrets_free(visible, strlen(visible));
        secrets_free(secret, secret_len);
        return is_found
                   ? mem_printf("%s has invisible characters, which the sender's secret does not have", path)
                   : NULL;
}

char *
diagnosis_find(const struct config *config, const struct config_source *source,
               const struct delivery *delivery, const char *body, size_t len)
{
        char *cause = try_sources(config, delivery, body, len);

        if (cause == NULL)
                cause = try_shorter(source, delivery, body, len);
        if (cause == NULL)
                cause = try_longer(source, delivery, body, len);
        for (size_t i = 0; i < source->n_secret_files && cause == NULL; i++)
                cause = try_visible(source->secret_files[i].path, delivery, body, len);
        return cause;
}
