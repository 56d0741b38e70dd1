#include "receiver/screen.h"

#include <string.h>
#include <strings.h>

#include "model/delivery.h"

static int
refuse(struct screen_refusal *refusal, enum metrics_outcome outcome, int status, const char *code,
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

/* The delivery and trace headers, collected in one pass. */
struct collected {
        const char *prefix;
        struct delivery_subject subject;
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

/* Make one of the delivery's checks, and turn its refusal into an answer. */
static int
check(enum delivery_check which, const struct delivery_subject *subject, struct screened *screened,
      struct screen_refusal *refusal)
{
        static const enum metrics_outcome outcomes[DELIVERY_N_CHECKS] = {
            [DELIVERY_CHECK_HEADERS] = OUTCOME_MALFORMED,
            [DELIVERY_CHECK_WEBHOOK_ID] = OUTCOME_FORBIDDEN,
            [DELIVERY_CHECK_TIMESTAMP] = OUTCOME_STALE,
            [DELIVERY_CHECK_SIGNATURE] = OUTCOME_FORGED,
        };
        const struct delivery_policy policy = config_delivery_policy(screened->source);
        const struct delivery_refusal *found = &refusal->found;

        if (delivery_check_make(which, &policy, subject, &screened->delivery, &refusal->found) == 0)
                return 0;
        (void)refuse(refusal, found->status == 500 ? OUTCOME_ERROR : outcomes[which], found->status,
                     found->code, found->message);
        for (size_t i = 0; i < found->n_violations; i++)
                refusal->violations[i] =
                    (struct http_violation){found->violations[i].field, found->violations[i].message};
        refusal->error.violations = refusal->violations;
        refusal->error.n_violations = found->n_violations;
        return -1;
}

int
screen_line(const struct config *config, const struct http_request *request, struct screened *screened,
            struct screen_refusal *refusal)
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
               struct screen_refusal *refusal)
{
        struct collected collected = {.prefix = screened->source->header_prefix,
                                      .subject = {.now_ms = now_ms}};

        http_request_headers(request, collect, &collected);
        keep_trace(&collected, screened);
        for (int which = DELIVERY_CHECK_HEADERS; which < DELIVERY_CHECK_SIGNATURE; which++) {
                if (check((enum delivery_check)which, &collected.subject, screened, refusal) != 0)
                        return -1;
        }
        return 0;
}

int
screen_verify(struct screened *screened, const void *body, size_t len, struct screen_refusal *refusal)
{
        const struct delivery_subject subject = {.body = body, .len = len};

        return check(DELIVERY_CHECK_SIGNATURE, &subject, screened, refusal);
}

int
screen_is_genuine(struct screened *screened, const void *body, size_t len)
{
        struct screen_refusal ignored;

        return screen_verify(screened, body, len, &ignored) == 0;
}
