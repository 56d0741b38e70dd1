#include "model/delivery_check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/signature.h"

static int
refuse(struct delivery_refusal *refusal, int status, const char *code, const char *message)
{
        refusal->status = status;
        refusal->code = code;
        refusal->message = message;
        refusal->n_violations = 0;
        refusal->detail[0] = '\0';
        return -1;
}

static void explain(struct delivery_refusal *refusal, const char *format, ...) PRINTF_LIKE(2, 3);

/* Append to the detail. */
static void
explain(struct delivery_refusal *refusal, const char *format, ...)
{
        size_t len = strlen(refusal->detail);
        va_list args;

        va_start(args, format);
        (void)vsnprintf(refusal->detail + len, sizeof(refusal->detail) - len, format, args);
        va_end(args);
}

/* Explain the first fault. Of a signature, which may be valid elsewhere, only the length is shown. */
static void
explain_fault(const struct delivery_headers *headers, enum delivery_header h,
              struct delivery_refusal *refusal)
{
        const struct delivery_violation *first = &refusal->violations[0];

        explain(refusal, "%s %s", first->field, first->message);
        if (headers->counts[h] == 1 && h == DELIVERY_SIGNATURE)
                explain(refusal, "; it has %zu characters", strlen(headers->values[h]));
        else if (headers->counts[h] == 1)
                explain(refusal, "; it is %.40s", *headers->values[h] == '\0' ? "empty" : headers->values[h]);
        if (refusal->n_violations > 1)
                explain(refusal, "; %zu more header%s wrong", refusal->n_violations - 1,
                        refusal->n_violations == 2 ? " is" : "s are");
}

static int
check_headers(const struct delivery_policy *policy, const struct delivery_subject *subject,
              struct delivery *delivery, struct delivery_refusal *refusal)
{
        const char *faults[DELIVERY_N_HEADERS];
        size_t first = DELIVERY_N_HEADERS;

        if (delivery_parse(&subject->headers, delivery, faults) == 0)
                return 0;
        (void)refuse(refusal, 400, "VALIDATION_ERROR", "the delivery's headers are missing or malformed");
        for (size_t h = 0; h < DELIVERY_N_HEADERS; h++) {
                struct delivery_violation *violation = &refusal->violations[refusal->n_violations];

                if (faults[h] == NULL)
                        continue;
                (void)snprintf(violation->field, sizeof(violation->field), "%s-%s", policy->header_prefix,
                               delivery_header_suffix((enum delivery_header)h));
                violation->message = faults[h];
                refusal->n_violations++;
                if (first == DELIVERY_N_HEADERS)
                        first = h;
        }
        explain_fault(&subject->headers, (enum delivery_header)first, refusal);
        return -1;
}

static int
check_webhook_id(const struct delivery_policy *policy, const struct delivery_subject *subject,
                 struct delivery *delivery, struct delivery_refusal *refusal)
{
        (void)subject;
        for (size_t i = 0; i < policy->n_webhook_ids; i++) {
                if (strcmp(policy->webhook_ids[i], delivery->webhook_id) == 0)
                        return 0;
        }
        if (policy->n_webhook_ids == 0)
                return 0;
        (void)refuse(refusal, 403, "FORBIDDEN", "this webhook-id is not one of the source's");
        explain(refusal, "the webhook-id is %s; webhook_id lists %zu other%s", delivery->webhook_id,
                policy->n_webhook_ids, policy->n_webhook_ids == 1 ? "" : "s");
        return -1;
}

/* Write an age in a unit that keeps the number short: the details of similar refusals are then equal. */
static void
explain_age(struct delivery_refusal *refusal, int64_t age_s)
{
        static const struct {
                int64_t seconds;
                const char *name;
        } units[] = {{86400, "days"}, {3600, "hours"}, {60, "minutes"}, {1, "seconds"}};
        int64_t distance = age_s < 0 ? -age_s : age_s;
        size_t u = 0;

        while (units[u].seconds > 1 && distance < 2 * units[u].seconds)
                u++;
        explain(refusal, "the timestamp is %" PRId64 " %s %s", distance / units[u].seconds, units[u].name,
                age_s < 0 ? "in the future" : "old");
}

static int
check_timestamp(const struct delivery_policy *policy, const struct delivery_subject *subject,
                struct delivery *delivery, struct delivery_refusal *refusal)
{
        if (delivery_is_fresh(delivery, subject->now_ms, policy->tolerance_ms))
                return 0;
        (void)refuse(refusal, 401, "STALE_TIMESTAMP", "the signed timestamp is too far from now");
        explain_age(refusal, subject->now_ms / 1000 - delivery->timestamp);
        explain(refusal, "; tolerance is %" PRIu64 " s", policy->tolerance_ms / 1000);
        return -1;
}

static int
check_signature(const struct delivery_policy *policy, const struct delivery_subject *subject,
                struct delivery *delivery, struct delivery_refusal *refusal)
{
        int found = signature_verify(policy->keys, policy->n_keys, delivery->timestamp_text, subject->body,
                                     subject->len, delivery->signature);

        if (found > 0) {
                delivery->key = policy->keys[found - 1];
                return 0;
        }
        if (found < 0)
                return refuse(refusal, 500, "INTERNAL_ERROR", "the signature could not be checked");
        (void)refuse(refusal, 401, "INVALID_SIGNATURE", "the signature does not match");
        explain(refusal, subject->len == 0 ? "the body is empty: the sender or a proxy has left it out"
                                           : "the sender has another secret, or a proxy changes bodies; see "
                                             "gatepost verify");
        return -1;
}

static int (*const checks[DELIVERY_N_CHECKS])(const struct delivery_policy *policy,
                                              const struct delivery_subject *subject,
                                              struct delivery *delivery, struct delivery_refusal *refusal) = {
    [DELIVERY_CHECK_HEADERS] = check_headers,
    [DELIVERY_CHECK_WEBHOOK_ID] = check_webhook_id,
    [DELIVERY_CHECK_TIMESTAMP] = check_timestamp,
    [DELIVERY_CHECK_SIGNATURE] = check_signature,
};

int
delivery_check_make(enum delivery_check check, const struct delivery_policy *policy,
                    const struct delivery_subject *subject, struct delivery *delivery,
                    struct delivery_refusal *refusal)
{
        return checks[check](policy, subject, delivery, refusal);
}
