#include "model/delivery_check.h"

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
        return -1;
}

static int
check_headers(const struct delivery_policy *policy, const struct delivery_subject *subject,
              struct delivery *delivery, struct delivery_refusal *refusal)
{
        const char *faults[DELIVERY_N_HEADERS];

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
        }
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
        return refuse(refusal, 403, "FORBIDDEN", "this webhook-id is not one of the source's");
}

static int
check_timestamp(const struct delivery_policy *policy, const struct delivery_subject *subject,
                struct delivery *delivery, struct delivery_refusal *refusal)
{
        if (delivery_is_fresh(delivery, subject->now_ms, policy->tolerance_ms))
                return 0;
        return refuse(refusal, 401, "STALE_TIMESTAMP", "the signed timestamp is too far from now");
}

static int
check_signature(const struct delivery_policy *policy, const struct delivery_subject *subject,
                struct delivery *delivery, struct delivery_refusal *refusal)
{
        int genuine = signature_verify(policy->keys, policy->n_keys, delivery->timestamp_text, subject->body,
                                       subject->len, delivery->signature);

        if (genuine > 0)
                return 0;
        if (genuine < 0)
                return refuse(refusal, 500, "INTERNAL_ERROR", "the signature could not be checked");
        return refuse(refusal, 401, "INVALID_SIGNATURE", "the signature does not match");
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
