#include "receiver/screen.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "model/delivery.h"

static int
refuse(struct refusal *refusal, enum metrics_outcome outcome, int status, const char *code,
       const char *message)
{
        refusal->outcome = outcome;
        refusal->error = (struct http_error){.status = status, .code = code, .message = message};
        return -1;
}

static const struct config_source *
find_source(const struct config *config, const char *path, size_t len)
{
        for (size_t i = 0; i < config->n_sources; i++) {
                const struct config_source *source = &config->sources[i];

                if (strlen(source->path) == len && memcmp(source->path, path, len) == 0)
                        return source;
        }
        return NULL;
}

/* What is collected in one pass over the headers. */
struct collected {
        const char *prefix;
        struct screen_subject subject;
        const char *traceparent;
        const char *tracestate;
        unsigned n_traceparents;
};

static void
collect(const struct http_header *header, void *arg)
{
        struct collected *collected = arg;

        delivery_headers_add(&collected->subject.headers, collected->prefix, header->name, header->value);
        if (strcasecmp(header->name, "traceparent") == 0) {
                collected->traceparent = header->value;
                collected->n_traceparents++;
        } else if (strcasecmp(header->name, "tracestate") == 0 && collected->tracestate == NULL) {
                collected->tracestate = header->value;
        }
}

static void
keep_trace(const struct collected *collected, struct screened *screened)
{
        screened->traceparent = NULL;
        screened->tracestate = NULL;
        if (collected->n_traceparents != 1 || !delivery_traceparent_is_valid(collected->traceparent))
                return;
        screened->traceparent = collected->traceparent;
        if (collected->tracestate != NULL && delivery_tracestate_is_valid(collected->tracestate))
                screened->tracestate = collected->tracestate;
}

static int
check_headers(const struct screen_subject *subject, struct screened *screened, struct refusal *refusal)
{
        const char *faults[DELIVERY_N_HEADERS];
        size_t n = 0;

        if (delivery_parse(&subject->headers, &screened->delivery, faults) == 0)
                return 0;
        (void)refuse(refusal, OUTCOME_MALFORMED, 400, "VALIDATION_ERROR",
                     "the delivery's headers are missing or malformed");
        for (size_t h = 0; h < DELIVERY_N_HEADERS; h++) {
                if (faults[h] == NULL)
                        continue;
                (void)snprintf(refusal->fields[n], SCREEN_FIELD_SIZE, "%s-%s",
                               screened->source->header_prefix,
                               delivery_header_suffix((enum delivery_header)h));
                refusal->violations[n] = (struct http_violation){refusal->fields[n], faults[h]};
                n++;
        }
        refusal->error.violations = refusal->violations;
        refusal->error.n_violations = n;
        return -1;
}

static int
check_webhook_id(const struct screen_subject *subject, struct screened *screened, struct refusal *refusal)
{
        const struct config_source *source = screened->source;

        (void)subject;
        for (size_t i = 0; i < source->n_webhook_ids; i++) {
                if (strcmp(source->webhook_ids[i], screened->delivery.webhook_id) == 0)
                        return 0;
        }
        if (source->n_webhook_ids == 0)
                return 0;
        return refuse(refusal, OUTCOME_FORBIDDEN, 403, "FORBIDDEN",
                      "this webhook-id is not one of the source's");
}

static int
check_timestamp(const struct screen_subject *subject, struct screened *screened, struct refusal *refusal)
{
        if (delivery_is_fresh(&screened->delivery, subject->now_ms, screened->source->tolerance_ms))
                return 0;
        return refuse(refusal, OUTCOME_STALE, 401, "STALE_TIMESTAMP",
                      "the signed timestamp is too far from now");
}

static int
check_signature(const struct screen_subject *subject, struct screened *screened, struct refusal *refusal)
{
        const struct config_source *source = screened->source;
        int genuine = signature_verify(source->keys, source->n_keys, screened->delivery.timestamp_text,
                                       subject->body, subject->len, screened->delivery.signature);

        if (genuine > 0)
                return 0;
        if (genuine < 0)
                return refuse(refusal, OUTCOME_ERROR, 500, "INTERNAL_ERROR",
                              "the signature could not be checked");
        return refuse(refusal, OUTCOME_FORGED, 401, "INVALID_SIGNATURE", "the signature does not match");
}

static int (*const checks[SCREEN_N_CHECKS])(const struct screen_subject *subject, struct screened *screened,
                                            struct refusal *refusal) = {
    [SCREEN_HEADERS] = check_headers,
    [SCREEN_WEBHOOK_ID] = check_webhook_id,
    [SCREEN_TIMESTAMP] = check_timestamp,
    [SCREEN_SIGNATURE] = check_signature,
};

int
screen_check(enum screen_check check, const struct screen_subject *subject, struct screened *screened,
             struct refusal *refusal)
{
        return checks[check](subject, screened, refusal);
}

int
screen_line(const struct config *config, const struct http_request *request, struct screened *screened,
            struct refusal *refusal)
{
        size_t len;
        const char *path = http_request_path(request, &len);

        screened->source = find_source(config, path, len);
        if (screened->source == NULL)
                return refuse(refusal, OUTCOME_NOT_FOUND, 404, "NOT_FOUND", "no source has this path");
        if (strcmp(http_request_method(request), "POST") != 0)
                return refuse(refusal, OUTCOME_METHOD_NOT_ALLOWED, 405, "METHOD_NOT_ALLOWED",
                              "deliveries come by POST");
        return 0;
}

int
screen_headers(const struct http_request *request, int64_t now_ms, struct screened *screened,
               struct refusal *refusal)
{
        struct collected collected = {.prefix = screened->source->header_prefix,
                                      .subject = {.now_ms = now_ms}};

        http_request_headers(request, collect, &collected);
        keep_trace(&collected, screened);
        for (int check = SCREEN_HEADERS; check < SCREEN_SIGNATURE; check++) {
                if (screen_check((enum screen_check)check, &collected.subject, screened, refusal) != 0)
                        return -1;
        }
        return 0;
}

int
screen_verify(struct screened *screened, const void *body, size_t len, struct refusal *refusal)
{
        const struct screen_subject subject = {.body = body, .len = len};

        return screen_check(SCREEN_SIGNATURE, &subject, screened, refusal);
}

int
screen_is_genuine(struct screened *screened, const void *body, size_t len)
{
        struct refusal ignored;

        return screen_verify(screened, body, len, &ignored) == 0;
}
