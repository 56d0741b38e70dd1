#include "receiver/screen.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "model/delivery.h"

#define SHOWN_PATH 100 /* bytes of a path */
#define SHOWN_PREFIX 64

static int
refuse(struct screen_refusal *refusal, enum metrics_outcome outcome, int status, const char *code,
       const char *message)
{
        refusal->outcome = outcome;
        refusal->near_source = NULL;
        refusal->error = (struct http_error){.status = status, .code = code, .message = message};
        refusal->found.detail[0] = '\0';
        return -1;
}

static void explain(struct screen_refusal *refusal, const char *format, ...) PRINTF_LIKE(2, 3);

/* Append to the detail. */
static void
explain(struct screen_refusal *refusal, const char *format, ...)
{
        char *detail = refusal->found.detail;
        size_t len = strlen(detail);
        va_list args;

        va_start(args, format);
        (void)vsnprintf(detail + len, DELIVERY_DETAIL_SIZE - len, format, args);
        va_end(args);
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

/*
 * Return how much a path has in common with a source's, in characters; 0 unless one is the other with
 * something inserted in one place, or with up to two characters changed there: a slash at the end, a prefix
 * that a proxy adds or removes, a misspelling, upper case.
 */
static size_t
likeness(const char *wanted, const char *path, size_t len)
{
        size_t wanted_len = strlen(wanted), least = wanted_len < len ? wanted_len : len;
        size_t n_head = 0, n_tail = 0;

        while (n_head < least && strncasecmp(wanted + n_head, path + n_head, 1) == 0)
                n_head++;
        while (n_head + n_tail < least &&
               strncasecmp(wanted + wanted_len - 1 - n_tail, path + len - 1 - n_tail, 1) == 0)
                n_tail++;
        return n_head + n_tail > 3 && n_head + n_tail + 2 >= least ? n_head + n_tail : 0;
}

/* Whether monitoring was probably to ask the admin endpoint. */
static int
is_of_admin(const char *path, size_t len)
{
        static const char *const paths[] = {"/status", "/metrics", "/healthz", "/readyz"};

        for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
                if (strlen(paths[i]) == len && memcmp(path, paths[i], len) == 0)
                        return 1;
        }
        return 0;
}

/* Explain that no source has a path. Its query may contain secrets, and is not part of it. */
static void
explain_path(const struct config *config, const char *path, size_t len, struct screen_refusal *refusal)
{
        const struct config_source *nearest = NULL;
        size_t most = 0;

        for (size_t i = 0; i < config->n_sources; i++) {
                size_t n = likeness(config->sources[i].path, path, len);

                if (n > most) {
                        most = n;
                        nearest = &config->sources[i];
                }
        }
        explain(refusal, "the path is %.*s%s", (int)(len > SHOWN_PATH ? SHOWN_PATH : len), path,
                len > SHOWN_PATH ? "..." : "");
        refusal->near_source = nearest == NULL ? NULL : nearest->name;
        if (nearest != NULL)
                explain(refusal, "; that of the source %s is %.*s", nearest->name, SHOWN_PATH, nearest->path);
        else if (is_of_admin(path, len))
                explain(refusal, ", which the address of `listen` in [admin] has");
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

/* A search for a delivery header with another prefix. */
struct prefix_search {
        enum delivery_header header;
        const char *found; /* the name */
        size_t len;        /* of its prefix */
};

static void
look_for_prefix(const struct http_header *header, void *arg)
{
        struct prefix_search *search = arg;
        size_t len = search->found == NULL ? delivery_header_prefix(search->header, header->name) : 0;

        if (len == 0)
                return;
        search->found = header->name;
        search->len = len;
}

/* If the first missing header is there with another prefix, header_prefix is probably wrong: add that. */
static void
explain_prefix(const struct http_request *request, const struct collected *collected,
               struct screen_refusal *refusal)
{
        struct prefix_search search = {.header = DELIVERY_SIGNATURE};

        while (search.header < DELIVERY_N_HEADERS && collected->subject.headers.counts[search.header] > 0)
                search.header++;
        if (search.header == DELIVERY_N_HEADERS)
                return;
        http_request_headers(request, look_for_prefix, &search);
        if (search.found != NULL)
                explain(refusal, "; the request has %.*s-%s, but header_prefix is %.64s",
                        (int)(search.len > SHOWN_PREFIX ? SHOWN_PREFIX : search.len), search.found,
                        delivery_header_suffix(search.header), collected->prefix);
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
        refusal->near_source = NULL;
        refusal->outcome = found->status == 500 ? OUTCOME_ERROR : outcomes[which];
        refusal->error =
            (struct http_error){.status = found->status, .code = found->code, .message = found->message};
        for (size_t i = 0; i < found->n_violations; i++)
                refusal->violations[i] =
                    (struct http_violation){found->violations[i].field, found->violations[i].message};
        refusal->error.violations = refusal->violations;
        refusal->error.n_violations = found->n_violations;
        return -1;
}

static void
look_for_agent(const struct http_header *header, void *arg)
{
        int *is_of_doctor = arg;

        if (strcasecmp(header->name, "user-agent") == 0)
                *is_of_doctor = strcmp(header->value, DELIVERY_PROBE_AGENT) == 0;
}

int
screen_is_of_doctor(const struct http_request *request)
{
        int result = 0;

        http_request_headers(request, look_for_agent, &result);
        return result;
}

const char *
screen_mark(char marked[DELIVERY_DETAIL_SIZE], const char *why)
{
        (void)snprintf(marked, DELIVERY_DETAIL_SIZE, DELIVERY_PROBE_MARK "%.*s",
                       (int)(DELIVERY_DETAIL_SIZE - sizeof(DELIVERY_PROBE_MARK)), why);
        return marked;
}

/*
 * Return whether the request is that by which `gatepost doctor` finds out who listens. Anybody can send one,
 * and gains nothing: it is refused like every GET, by its request line.
 */
static int
is_probe(const struct http_request *request)
{
        return strcmp(http_request_method(request), "GET") == 0 && screen_is_of_doctor(request);
}

int
screen_line(const struct config *config, const struct http_request *request, struct screened *screened,
            struct screen_refusal *refusal)
{
        size_t len;
        const char *path = http_request_path(request, &len);

        screened->source = find_source(config, path, len);
        if (screened->source == NULL) {
                (void)refuse(refusal, OUTCOME_NOT_FOUND, 404, "NOT_FOUND", "no source has this path");
                explain_path(config, path, len, refusal);
                if (is_probe(request))
                        refusal->outcome = OUTCOME_PROBE;
                return -1;
        }
        if (strcmp(http_request_method(request), "POST") != 0) {
                (void)refuse(refusal, is_probe(request) ? OUTCOME_PROBE : OUTCOME_METHOD_NOT_ALLOWED, 405,
                             "METHOD_NOT_ALLOWED", "deliveries come by POST");
                explain(refusal, "the method is %s; deliveries come by POST", http_request_method(request));
                return -1;
        }
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
                if (check((enum delivery_check)which, &collected.subject, screened, refusal) == 0)
                        continue;
                if (which == DELIVERY_CHECK_HEADERS)
                        explain_prefix(request, &collected, refusal);
                return -1;
        }
        return 0;
}

/* Only an old timestamp can be that of a late retry. */
static const char *
explain_genuine(const struct delivery *delivery)
{
        return delivery->timestamp > clock_now_ms() / 1000
                   ? "the signature matches: the sender's clock is ahead, or this machine's is behind"
                   : "the signature matches: a late retry, or a clock is wrong, or tolerance is too short";
}

void
screen_classify_stale(const struct screened *screened, enum metrics_outcome outcome,
                      struct screen_refusal *refusal)
{
        refusal->outcome = outcome;
        explain(refusal, "; %s",
                outcome == OUTCOME_STALE_GENUINE ? explain_genuine(&screened->delivery)
                : outcome == OUTCOME_STALE       ? "the signature does not match, either"
                                                 : "the signature was not checked");
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
