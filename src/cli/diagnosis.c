#include "cli/diagnosis.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/secrets.h"

/* A delivery whose signature does not match. */
struct subject {
        const struct config *config;
        const struct config_source *source;
        const char *timestamp;
        uint8_t signature[SIGNATURE_SIZE];
        struct diagnosis *diagnosis;
};

void
diagnosis_add(struct diagnosis *diagnosis, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        (void)vsnprintf(diagnosis->causes[diagnosis->n_causes++], DIAGNOSIS_CAUSE_SIZE, format, args);
        va_end(args);
}

/* Try all configured secrets, the source's own first. Returns the source that signed the text, or NULL. */
static const struct config_source *
find_signer(const struct subject *subject, const char *head, const char *body, size_t len)
{
        const struct config *config = subject->config;
        const struct config_source *own = subject->source;

        for (size_t s = 0; s <= config->n_sources; s++) {
                const struct config_source *source = s == 0 ? own : &config->sources[s - 1];

                for (size_t k = 0; k < source->n_keys && (s == 0 || source != own); k++) {
                        if (signature_matches(source->keys[k], head, strlen(head), body, len,
                                              subject->signature) > 0)
                                return source;
                }
        }
        return NULL;
}

/* Try a text. Its cause is NULL if that is what should be signed. Returns whether it was signed. */
static int
try_text(struct subject *subject, const char *cause, const char *head, const char *body, size_t len)
{
        const struct config_source *signer = find_signer(subject, head, body, len);

        if (signer == NULL)
                return 0;
        if (cause != NULL)
                diagnosis_add(subject->diagnosis, "%s", cause);
        if (signer != subject->source)
                diagnosis_add(subject->diagnosis, "it was signed with the secret of the source %s",
                              signer->name);
        return 1;
}

/* Return the length of a body without the newline, or CR LF, at its end. */
static size_t
length_without_newline(const char *body, size_t len)
{
        if (len == 0 || body[len - 1] != '\n')
                return len;
        return len - (len > 1 && body[len - 2] == '\r' ? 2 : 1);
}

/* Try what senders and proxies commonly make of a delivery. */
static int
try_texts(struct subject *subject, const char *received, size_t len)
{
        size_t timestamp_len = strlen(subject->timestamp), bare_len = length_without_newline(received, len);
        char *body = mem_alloc(len + timestamp_len + 2), *head = mem_printf("%s.", subject->timestamp);
        int is_found;

        memcpy(body, received, len);
        is_found = try_text(subject, NULL, head, body, len) ||
                   try_text(subject, "the timestamp was not signed", "", body, len) ||
                   (bare_len < len &&
                    try_text(subject, "a newline was added to the end of the body", head, body, bare_len));
        if (!is_found) {
                memcpy(body + len, "\r\n", 2);
                is_found =
                    try_text(subject, "a CR LF at the end of the body was removed", head, body, len + 2);
        }
        if (!is_found) {
                body[len] = '\n';
                is_found =
                    try_text(subject, "a newline at the end of the body was removed", head, body, len + 1);
        }
        if (!is_found) {
                body[len] = '.';
                memcpy(body + len + 1, subject->timestamp, timestamp_len);
                is_found = try_text(subject, "the timestamp was signed after the body", "", body,
                                    len + 1 + timestamp_len);
        }
        free(body);
        free(head);
        return is_found;
}

/* Return a secret as a person sees it: printable ASCII, without control sequences and blanks around it. */
static char *
keep_visible(const char *secret)
{
        char *visible = mem_alloc(strlen(secret) + 1), *end = visible;

        for (secret += strspn(secret, " "); *secret != '\0'; secret++) {
                if (strncmp(secret, "\033[", 2) == 0 && strpbrk(secret, "mK") != NULL)
                        secret = strpbrk(secret, "mK");
                else if (*secret >= ' ' && *secret < 0x7f)
                        *end++ = *secret;
        }
        while (end > visible && end[-1] == ' ')
                end--;
        *end = '\0';
        return visible;
}

static int
is_secret(const struct subject *subject, const char *secret, const char *body, size_t len)
{
        struct signature_key *key = signature_key_new(secret, strlen(secret));
        char *head = mem_printf("%s.", subject->timestamp);
        int is_match =
            key != NULL && signature_matches(key, head, strlen(head), body, len, subject->signature) > 0;

        signature_key_free(key);
        free(head);
        return is_match;
}

/* Try the secret in a file as a person sees it, and with the newline at its end. */
static int
try_file(struct subject *subject, const char *path, const char *body, size_t len)
{
        struct error ignored;
        size_t secret_len;
        char *secret = secrets_read_signing(path, &secret_len, NULL, &ignored);
        char *visible = secret == NULL ? NULL : keep_visible(secret),
             *line = secret == NULL ? NULL : mem_printf("%s\n", secret);
        int is_found = 1;

        if (secret == NULL)
                return 0;
        if (is_secret(subject, visible, body, len))
                diagnosis_add(subject->diagnosis,
                              "%.150s has invisible characters, which the sender's secret does not have",
                              path);
        else if (is_secret(subject, line, body, len))
                diagnosis_add(subject->diagnosis,
                              "the webhook was registered with the newline at the end of the secret file");
        else
                is_found = 0;
        secrets_free(visible, strlen(visible));
        secrets_free(line, strlen(line));
        secrets_free(secret, secret_len);
        return is_found;
}

int
diagnosis_find(const struct config *config, const struct config_source *source,
               const struct delivery_subject *delivery, struct diagnosis *diagnosis)
{
        const char *signature = delivery->headers.values[DELIVERY_SIGNATURE];
        struct subject subject = {.config = config,
                                  .source = source,
                                  .timestamp = delivery->headers.values[DELIVERY_TIMESTAMP],
                                  .diagnosis = diagnosis};
        int is_found;

        if (subject.timestamp == NULL || signature == NULL ||
            signature_parse(signature, strlen(signature), subject.signature) != 0)
                return 0;
        is_found = try_texts(&subject, delivery->body, delivery->len);
        for (size_t i = 0; i < source->n_secret_files && !is_found; i++)
                is_found = try_file(&subject, source->secret_files[i].path, delivery->body, delivery->len);
        return is_found;
}
