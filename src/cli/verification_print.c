#include "cli/verification.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/number.h"

static const char *const check_names[DELIVERY_N_CHECKS] = {
    [DELIVERY_CHECK_HEADERS] = "headers",
    [DELIVERY_CHECK_WEBHOOK_ID] = "webhook-id",
    [DELIVERY_CHECK_TIMESTAMP] = "timestamp",
    [DELIVERY_CHECK_SIGNATURE] = "signature",
};

static const char *const outcome_names[] = {
    [VERIFICATION_OK] = "ok", [VERIFICATION_FAILED] = "failed", [VERIFICATION_UNKNOWN] = "unknown"};

/* What a check found, as a clause. The caller frees it. */
static char *
describe(const struct verification *verification, enum delivery_check check)
{
        const struct verification_check *found = &verification->checks[check];
        const struct config_source *source = verification->source;
        int64_t s = verification->age_ms / 1000;
        char tolerance[NUMBER_TEXT_SIZE];

        if (found->outcome == VERIFICATION_UNKNOWN)
                return mem_strdup("cannot be told, for a header is missing or malformed");
        if (check == DELIVERY_CHECK_TIMESTAMP)
                return mem_printf("%" PRId64 " s %s now; %s either way are tolerated", s < 0 ? -s : s,
                                  s < 0 ? "ahead of" : "before",
                                  number_format_duration(source->tolerance_ms, tolerance));
        if (found->outcome == VERIFICATION_FAILED)
                return mem_strdup(found->refusal.message);
        switch (check) {
        case DELIVERY_CHECK_HEADERS:
                return mem_strdup("all four are there, once and well formed");
        case DELIVERY_CHECK_WEBHOOK_ID:
                return mem_strdup(source->n_webhook_ids == 0 ? "any is let in" : "one of the source's");
        default:
                return mem_strdup("matches the body");
        }
}

/* What the timestamp tells, as a sentence; NULL when it tells nothing. The caller frees it. */
static char *
describe_clock(const struct verification *verification)
{
        int64_t s = verification->age_ms / 1000;

        if (verification->checks[DELIVERY_CHECK_TIMESTAMP].outcome != VERIFICATION_FAILED)
                return NULL;
        if (verification->checks[DELIVERY_CHECK_SIGNATURE].outcome != VERIFICATION_OK &&
            !verification->guess.is_found)
                return NULL; /* nothing says that the timestamp is the sender's */
        if (s < 0)
                return mem_printf("a clock, the sender's or this one's, is off by %" PRId64 " s", -s);
        return mem_printf("the delivery is %" PRId64 " s old, or a clock is off by %" PRId64
                          " s; --at judges it at the time when it came",
                          s, s);
}

static void
print_causes(const struct verification *verification)
{
        const struct guess *guess = &verification->guess;
        char *clock = describe_clock(verification);

        for (size_t i = 0; i < guess->n_causes; i++)
                printf("cause: %s\n", guess->causes[i]);
        if (clock != NULL)
                printf("cause: %s\n", clock);
        if (guess->n_tried > 0 && !guess->is_found)
                printf("cause: not found; none of %" PRIu64
                       " variants of body, timestamp and secret has this "
                       "signature%s\n",
                       guess->n_tried, guess->gave_up ? ", and of so large a body no more were tried" : "");
        free(clock);
}

void
verification_print(const struct verification *verification)
{
        for (int c = 0; c < DELIVERY_N_CHECKS; c++) {
                const struct verification_check *check = &verification->checks[c];
                char *text = describe(verification, (enum delivery_check)c);

                printf("%-10s  %-7s  %s\n", check_names[c], outcome_names[check->outcome], text);
                free(text);
                for (size_t v = 0; check->outcome == VERIFICATION_FAILED && v < check->refusal.n_violations;
                     v++)
                        printf("%-10s  %-7s  %s %s\n", "", "", check->refusal.violations[v].field,
                               check->refusal.violations[v].message);
        }
        if (verification->is_too_large)
                printf("%-10s  %-7s  larger than max_body\n", "body", "failed");
        if (verification->code != NULL)
                printf("answer: %d %s\n", verification->status, verification->code);
        else
                printf("answer: 200, unless it cannot be stored\n");
        print_causes(verification);
}

static void
put_check(yajl_gen json, const struct verification *verification, enum delivery_check c)
{
        const struct verification_check *check = &verification->checks[c];
        char *text = describe(verification, c);

        (void)yajl_gen_map_open(json);
        json_member(json, "check", check_names[c]);
        json_member(json, "outcome", outcome_names[check->outcome]);
        json_member(json, "message", text);
        json_text(json, "violations");
        (void)yajl_gen_array_open(json);
        for (size_t v = 0; check->outcome == VERIFICATION_FAILED && v < check->refusal.n_violations; v++) {
                (void)yajl_gen_map_open(json);
                json_member(json, "field", check->refusal.violations[v].field);
                json_member(json, "message", check->refusal.violations[v].message);
                (void)yajl_gen_map_close(json);
        }
        (void)yajl_gen_array_close(json);
        (void)yajl_gen_map_close(json);
        free(text);
}

static void
put_causes(yajl_gen json, const struct verification *verification)
{
        char *clock = describe_clock(verification);

        json_text(json, "causes");
        (void)yajl_gen_array_open(json);
        for (size_t i = 0; i < verification->guess.n_causes; i++)
                json_text(json, verification->guess.causes[i]);
        if (clock != NULL)
                json_text(json, clock);
        (void)yajl_gen_array_close(json);
        free(clock);
}

void
verification_print_json(const struct verification *verification)
{
        yajl_gen json = json_new(1);

        (void)yajl_gen_map_open(json);
        json_flag(json, "ok", verification->code == NULL);
        json_member(json, "source", verification->source->name);
        json_number(json, "status", verification->status);
        json_member(json, "code", verification->code);
        json_text(json, "checks");
        (void)yajl_gen_array_open(json);
        for (int c = 0; c < DELIVERY_N_CHECKS; c++)
                put_check(json, verification, (enum delivery_check)c);
        (void)yajl_gen_array_close(json);
        put_causes(json, verification);
        (void)yajl_gen_map_close(json);
        json_print(json);
}
