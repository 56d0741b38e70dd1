#include "cli/diagnosis.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/secrets.h"

/* Bytes to hash: a few seconds' work. A trial costs some besides its body's. */
#define MAX_HASHED (UINT64_C(1) << 30)
#define TRIAL_COST 256

static const struct {
        const char *cause, *ending;
} endings[] = {
    {NULL, ""},
    {"a newline at the end of the body was removed", "\n"},
    {"a CR LF at the end of the body was removed", "\r\n"},
};

struct search {
        const struct config *config;
        const struct config_source *source;
        const char *timestamp, *body;
        size_t len;
        uint8_t signature[SIGNATURE_SIZE];
        uint64_t n_hashed;
        struct diagnosis *diagnosis;
};

/* What may have been signed, head before body, and how it differs from the delivery; NULL: not at all. */
struct candidate {
        const char *head, *head_cause;
        const char *body, *ending_cause;
        size_t len;
};

void
diagnosis_add(struct diagnosis *diagnosis, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        (void)vsnprintf(diagnosis->causes[diagnosis->n_causes++], DIAGNOSIS_CAUSE_SIZE, format, args);
        va_end(args);
}

/* Try all configured secrets, the source's first. */
static int
try_secrets(struct search *search, const struct candidate *candidate)
{
        const struct config *config = search->config;
        const struct config_source *own = search->source;
        struct diagnosis *diagnosis = search->diagnosis;

        for (size_t s = 0; s <= config->n_sources; s++) {
                const struct config_source *source = s == 0 ? own : &config->sources[s - 1];

                for (size_t k = 0; k < source->n_keys && (s == 0 || source != own); k++) {
                        search->n_hashed += candidate->len + TRIAL_COST;
                        diagnosis->gave_up |= search->n_hashed > MAX_HASHED;
                        if (search->n_hashed > MAX_HASHED)
                                return 0;
                        diagnosis->n_tried++;
                        if (signature_matches(source->keys[k], candidate->head, strlen(candidate->head),
                                              candidate->body, candidate->len, search->signature) <= 0)
                                continue;
                        diagnosis->is_found = 1;
                        if (candidate->ending_cause != NULL)
                                diagnosis_add(diagnosis, "%s", candidate->ending_cause);
                        if (candidate->head_cause != NULL)
                                diagnosis_add(diagnosis, "%s", candidate->head_cause);
                        if (source != own)
                                diagnosis_add(diagnosis, "it was signed with the secret of the source %s",
                                              source->name);
                        return 1;
                }
        }
        return 0;
}

/* Try what may have been signed before the body. */
static int
try_heads(struct search *search, struct candidate *candidate)
{
        const char *timestamp = search->timestamp;
        int is_in_ms = strlen(timestamp) == 13, is_hit = 0;
        char *with_stop = mem_printf("%s.", timestamp);
        const struct {
                const char *cause, *head;
        } heads[] = {
            {is_in_ms ? "the timestamp header is in milliseconds instead of seconds" : NULL, with_stop},
            {"the timestamp was not signed", ""},
            {"the full stop between timestamp and body was not signed", timestamp},
        };

        for (size_t h = 0; h < ARRAY_LEN(heads) && !is_hit; h++) {
                candidate->head = heads[h].head;
                candidate->head_cause = heads[h].cause;
                is_hit = try_secrets(search, candidate);
        }
        free(with_stop);
        return is_hit;
}

/* Try a body of len bytes, with room for two more, with and without a newline at its end. */
static int
try_body(struct search *search, char *body, size_t len)
{
        struct candidate candidate = {.body = body};

        for (size_t e = 0; e < ARRAY_LEN(endings); e++) {
                memcpy(body + len, endings[e].ending, strlen(endings[e].ending));
                candidate.len = len + strlen(endings[e].ending);
                candidate.ending_cause = endings[e].cause;
                if (try_heads(search, &candidate))
                        return 1;
        }
        if (len == 0 || body[len - 1] != '\n')
                return 0;
        candidate.len = len - (len > 1 && body[len - 2] == '\r' ? 2 : 1);
        candidate.ending_cause = "a newline was added to the end of the body";
        return try_heads(search, &candidate);
}

static int
try_unchanged(struct search *search)
{
        char *body = mem_alloc(search->len + 2);
        int is_hit;

        memcpy(body, search->body, search->len);
        is_hit = try_body(search, body, search->len);
        free(body);
        return is_hit;
}

/* Try a text as the secret. */
static int
try_text(struct search *search, const char *text, const char *what)
{
        struct signature_key *key = signature_key_new(text, strlen(text));
        char *head = mem_printf("%s.", search->timestamp);
        int is_hit = key != NULL && signature_matches(key, head, strlen(head), search->body, search->len,
                                                      search->signature) > 0;

        search->diagnosis->n_tried++;
        if (is_hit) {
                search->diagnosis->is_found = 1;
                diagnosis_add(search->diagnosis,
                              "the webhook was registered with %s: register it with the secret alone, by "
                              "gatepost subscriptions ensure --rotate",
                              what);
        }
        signature_key_free(key);
        free(head);
        return is_hit;
}

/* Try the secret files of the source as somebody may have registered them who did not use this program. */
static int
try_files(struct search *search)
{
        static const struct {
                const char *before, *after, *what;
        } forms[] = {
            {"", "\n", "the newline at the end of the secret file"},
            {"", "\r\n", "a CR LF behind the secret"},
            {"", " ", "a blank behind the secret"},
            {"\"", "\"", "the secret in quotes"},
        };
        int is_hit = 0;

        for (size_t i = 0; i < search->source->n_secret_files && !is_hit; i++) {
                const char *path = search->source->secret_files[i].path;
                struct error ignored;
                size_t len;
                char *secret = secrets_read_signing(path, &len, NULL, &ignored);

                is_hit = try_text(search, path, "the path of the secret file");
                for (size_t f = 0; f < ARRAY_LEN(forms) && secret != NULL && !is_hit; f++) {
                        char *text = mem_printf("%s%s%s", forms[f].before, secret, forms[f].after);

                        is_hit = try_text(search, text, forms[f].what);
                        secrets_free(text, strlen(text));
                }
                if (secret != NULL)
                        secrets_free(secret, len);
        }
        return is_hit;
}

void
diagnosis_find(const struct config *config, const struct config_source *source,
               const struct delivery_subject *delivery, struct diagnosis *diagnosis)
{
        const char *signature = delivery->headers.values[DELIVERY_SIGNATURE];
        struct search search = {.config = config,
                                .source = source,
                                .timestamp = delivery->headers.values[DELIVERY_TIMESTAMP],
                                .body = delivery->body,
                                .len = delivery->len,
                                .diagnosis = diagnosis};

        if (search.timestamp != NULL && signature != NULL &&
            signature_parse(signature, strlen(signature), search.signature) == 0 && !try_unchanged(&search))
                (void)try_files(&search);
}
