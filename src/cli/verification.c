#include "cli/verification.h"

#include <string.h>

/* The headers that a check looks at, as bits; DELIVERY_CHECK_HEADERS says of all what is wrong. */
static const unsigned needs[DELIVERY_N_CHECKS] = {
    [DELIVERY_CHECK_HEADERS] = 0,
    [DELIVERY_CHECK_WEBHOOK_ID] = 1u << DELIVERY_WEBHOOK_ID,
    [DELIVERY_CHECK_TIMESTAMP] = 1u << DELIVERY_TIMESTAMP,
    [DELIVERY_CHECK_SIGNATURE] = 1u << DELIVERY_TIMESTAMP | 1u << DELIVERY_SIGNATURE,
};

/* Bits of the headers that have a fault. */
static unsigned
find_faulty(const struct delivery_subject *subject)
{
        const char *faults[DELIVERY_N_HEADERS];
        struct delivery delivery;
        unsigned faulty = 0;

        if (delivery_parse(&subject->headers, &delivery, faults) == 0)
                return 0;
        for (unsigned h = 0; h < DELIVERY_N_HEADERS; h++)
                faulty |= (unsigned)(faults[h] != NULL) << h;
        return faulty;
}

static void
find_cause(const struct delivery_subject *subject, const struct guess_secrets *secrets,
           struct verification *verification)
{
        const struct guess_case failed = {
            .signature = subject->headers.values[DELIVERY_SIGNATURE],
            .timestamp = subject->headers.values[DELIVERY_TIMESTAMP],
            .body = subject->body,
            .len = subject->len,
            .secrets = secrets,
            .reach = verification->source->tolerance_ms / 1000,
        };

        if (failed.signature != NULL && failed.timestamp != NULL)
                guess_find(&failed, &verification->guess);
}

/* What the receiver answers, by the first check that fails. */
static void
find_answer(struct verification *verification)
{
        const struct delivery_refusal *refusal =
            verification->first_failed == DELIVERY_N_CHECKS
                ? NULL
                : &verification->checks[verification->first_failed].refusal;

        verification->status = verification->is_too_large ? 413 : refusal == NULL ? 200 : refusal->status;
        verification->code = verification->is_too_large ? "PAYLOAD_TOO_LARGE"
                             : refusal == NULL          ? NULL
                                                        : refusal->code;
}

void
verification_make(const struct config_source *source, const struct delivery_subject *subject,
                  uint64_t max_body, const struct guess_secrets *secrets, struct verification *verification)
{
        const struct delivery_policy policy = config_delivery_policy(source);
        struct delivery delivery = {0};
        unsigned faulty = find_faulty(subject);

        memset(verification, 0, sizeof(*verification));
        verification->source = source;
        verification->first_failed = DELIVERY_N_CHECKS;
        for (int c = 0; c < DELIVERY_N_CHECKS; c++) {
                struct verification_check *check = &verification->checks[c];

                if (needs[c] & faulty)
                        check->outcome = VERIFICATION_UNKNOWN;
                else if (delivery_check_make((enum delivery_check)c, &policy, subject, &delivery,
                                             &check->refusal) != 0)
                        check->outcome = VERIFICATION_FAILED;
                if (check->outcome == VERIFICATION_FAILED && verification->first_failed == DELIVERY_N_CHECKS)
                        verification->first_failed = c;
        }
        verification->has_age = !(faulty & needs[DELIVERY_CHECK_TIMESTAMP]);
        if (verification->has_age)
                verification->age_ms = subject->now_ms - delivery.timestamp * 1000;
        if (verification->checks[DELIVERY_CHECK_SIGNATURE].outcome != VERIFICATION_OK)
                find_cause(subject, secrets, verification);
        verification->is_too_large = max_body != 0 && subject->len > max_body;
        find_answer(verification);
}

void
verification_clear(struct verification *verification)
{
        guess_clear(&verification->guess);
}
