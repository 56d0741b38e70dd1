#include "cli/verification.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/number.h"

#define BIT(header) (1u << (header))

static const struct {
        const char *name;
        unsigned needs; /* bits of the headers without which it cannot be made */
        const char *success;
} checks[SCREEN_N_CHECKS] = {
    [SCREEN_HEADERS] = {"headers", 0, "all four are there, once and well formed"},
    [SCREEN_WEBHOOK_ID] = {"webhook-id", BIT(DELIVERY_WEBHOOK_ID), "accepted by the source"},
    [SCREEN_TIMESTAMP] = {"timestamp", BIT(DELIVERY_TIMESTAMP), NULL},
    [SCREEN_SIGNATURE] = {"signature", BIT(DELIVERY_TIMESTAMP) | BIT(DELIVERY_SIGNATURE), "matches the body"},
};

static const char *const outcomes[] = {
    [VERIFICATION_OK] = "ok", [VERIFICATION_FAILED] = "failed", [VERIFICATION_UNKNOWN] = "unknown"};

/* Return bits of the headers that are missing or malformed. */
static unsigned
find_faulty(const struct screen_subject *subject)
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

/* Return what a check found, as a clause; the caller frees it. */
static char *
describe(const struct verification *verification, enum screen_check c)
{
        const struct verification_check *check = &verification->checks[c];
        int64_t s = verification->age_ms / 1000;
        char tolerance[NUMBER_TEXT_SIZE];

        if (check->outcome == VERIFICATION_UNKNOWN)
                return mem_strdup("not checked: a header is missing or malformed");
        if (c == SCREEN_TIMESTAMP)
                return mem_printf("%" PRId64 " s %s; the tolerance is %s", s < 0 ? -s : s,
                                  s < 0 ? "in the future" : "ago",
                                  number_format_duration(verification->source->tolerance_ms, tolerance));
        return mem_strdup(check->outcome == VERIFICATION_OK ? checks[c].success
                                                            : check->refusal.error.message);
}

static void
diagnose(const struct config *config, const struct screen_subject *subject, struct verification *verification)
{
        const struct diagnosis_subject failed = {
            .config = config,
            .source = verification->source,
            .signature = subject->headers.values[DELIVERY_SIGNATURE],
            .timestamp = subject->headers.values[DELIVERY_TIMESTAMP],
            .body = subject->body,
            .len = subject->len,
        };

        if (failed.signature != NULL && failed.timestamp != NULL)
                diagnosis_find(&failed, &verification->diagnosis);
}

/*
 * Return why the timestamp is stale; NULL if it is not, or nothing proves that it is the sender's. The
 * caller frees it.
 */
static char *
describe_clock(const struct verification *verification)
{
        int64_t s = verification->age_ms / 1000;

        if (verification->checks[SCREEN_TIMESTAMP].outcome != VERIFICATION_FAILED)
                return NULL;
        if (verification->checks[SCREEN_SIGNATURE].outcome != VERIFICATION_OK &&
            !verification->diagnosis.is_found)
                return NULL;
        if (s < 0)
                return mem_printf("the sender's clock or this one is off by %" PRId64 " s", -s);
        return mem_printf("the delivery is %" PRId64
                          " s old, or a clock is off; --at verifies it as of another time",
                          s);
}

/* Answer as the receiver does, by the first check that fails. */
static void
find_answer(struct verification *verification)
{
        verification->status = 200;
        if (verification->is_too_large) {
                verification->status = 413;
                verification->code = "PAYLOAD_TOO_LARGE";
                return;
        }
        for (int c = 0; c < SCREEN_N_CHECKS; c++) {
                if (verification->checks[c].outcome == VERIFICATION_FAILED) {
                        verification->status = verification->checks[c].refusal.error.status;
                        verification->code = verification->checks[c].refusal.error.code;
                        return;
                }
        }
}

void
verification_make(const struct config *config, const struct config_source *source,
                  const struct screen_subject *subject, uint64_t max_body, struct verification *verification)
{
        struct screened screened = {.source = source};
        unsigned faulty = find_faulty(subject);

        *verification = (struct verification){.source = source};
        for (int c = 0; c < SCREEN_N_CHECKS; c++) {
                struct verification_check *check = &verification->checks[c];

                if (checks[c].needs & faulty)
                        check->outcome = VERIFICATION_UNKNOWN;
                else if (screen_check((enum screen_check)c, subject, &screened, &check->refusal) != 0)
                        check->outcome = VERIFICATION_FAILED;
        }
        verification->age_ms = subject->now_ms - screened.delivery.timestamp * 1000;
        for (int c = 0; c < SCREEN_N_CHECKS; c++)
                verification->checks[c].message = describe(verification, (enum screen_check)c);
        if (verification->checks[SCREEN_SIGNATURE].outcome != VERIFICATION_OK)
                diagnose(config, subject, verification);
        diagnosis_add(&verification->diagnosis, describe_clock(verification));
        verification->is_too_large = max_body != 0 && subject->len > max_body;
        find_answer(verification);
}

void
verification_clear(struct verification *verification)
{
        for (int c = 0; c < SCREEN_N_CHECKS; c++)
                free(verification->checks[c].message);
        diagnosis_clear(&verification->diagnosis);
}

void
verification_print(const struct verification *verification)
{
        const struct diagnosis *diagnosis = &verification->diagnosis;

        for (int c = 0; c < SCREEN_N_CHECKS; c++) {
                const struct verification_check *check = &verification->checks[c];

                printf("%-10s  %-7s  %s\n", checks[c].name, outcomes[check->outcome], check->message);
                for (size_t v = 0; v < check->refusal.error.n_violations; v++)
                        printf("%-10s  %-7s  %s %s\n", "", "", check->refusal.violations[v].field,
                               check->refusal.violations[v].message);
        }
        if (verification->is_too_large)
                printf("%-10s  %-7s  larger than max_body\n", "body", "failed");
        if (verification->code != NULL)
                printf("answer: %d %s\n", verification->status, verification->code);
        else
                printf("answer: 200, unless it cannot be stored\n");
        for (size_t i = 0; i < diagnosis->n_causes; i++)
                printf("cause: %s\n", diagnosis->causes[i]);
        if (diagnosis->n_tried > 0 && !diagnosis->is_found)
                printf("cause: unknown; tried %zu combinations of body, timestamp and secret%s\n",
                       diagnosis->n_tried, diagnosis->gave_up ? ", not all, because the body is large" : "");
}

static void
put_check(yajl_gen json, const struct verification_check *check, const char *name)
{
        (void)yajl_gen_map_open(json);
        json_member(json, "check", name);
        json_member(json, "outcome", outcomes[check->outcome]);
        json_member(json, "message", check->message);
        json_text(json, "violations");
        (void)yajl_gen_array_open(json);
        for (size_t v = 0; v < check->refusal.error.n_violations; v++) {
                (void)yajl_gen_map_open(json);
                json_member(json, "field", check->refusal.violations[v].field);
                json_member(json, "message", check->refusal.violations[v].message);
                (void)yajl_gen_map_close(json);
        }
        (void)yajl_gen_array_close(json);
        (void)yajl_gen_map_close(json);
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
        for (int c = 0; c < SCREEN_N_CHECKS; c++)
                put_check(json, &verification->checks[c], checks[c].name);
        (void)yajl_gen_array_close(json);
        json_text(json, "causes");
        (void)yajl_gen_array_open(json);
        for (size_t i = 0; i < verification->diagnosis.n_causes; i++)
                json_text(json, verification->diagnosis.causes[i]);
        (void)yajl_gen_array_close(json);
        (void)yajl_gen_map_close(json);
        json_print(json);
}
