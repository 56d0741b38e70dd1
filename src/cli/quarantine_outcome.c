#include "cli/quarantine_outcome.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/quarantine_print.h"

static const char *const names[OUTCOME_N] = {
    [OUTCOME_PENDING] = "failed",    [OUTCOME_POSSIBLE] = "would-be-released",
    [OUTCOME_RELEASED] = "released", [OUTCOME_BEFORE] = "released-before",
    [OUTCOME_REFUSED] = "refused",   [OUTCOME_FAILED] = "failed",
};

/* What comes of it, so far as can be told. */
static void
print_outlook(const struct releasing *releasing)
{
        if (releasing->topic != NULL) {
                printf(", to be published in %s", releasing->topic);
        } else if (releasing->quarantine_reason != NULL) {
                printf(", but by this configuration it comes back: %s, ", releasing->quarantine_reason);
                text_print(stdout, releasing->quarantine_detail, strlen(releasing->quarantine_detail));
        }
}

void
outcome_print_text(const struct releasing *releasing, const struct config *config)
{
        const struct quarantined *record = releasing->record;
        char text[RELEASE_ID_SIZE];

        printf("%s ", release_id_format(&record->id, text));
        switch (releasing->outcome) {
        case OUTCOME_POSSIBLE:
        case OUTCOME_RELEASED:
                printf("%s", releasing->outcome == OUTCOME_POSSIBLE ? "would be released" : "released");
                print_outlook(releasing);
                break;
        case OUTCOME_BEFORE:
                printf("was released before");
                if (record->release.partition >= 0)
                        printf(", as %s of %s", quarantine_print_place(&record->release, text),
                               config->deliveries_topic);
                if (record->came_back.partition >= 0)
                        printf(", and came back as %s", release_id_format(&record->came_back, text));
                break;
        case OUTCOME_PENDING:
        case OUTCOME_REFUSED:
        case OUTCOME_FAILED:
        case OUTCOME_N:
                printf("not released: %s", releasing->reason == NULL ? "interrupted" : releasing->reason);
                break;
        }
        putchar('\n');
}

void
outcome_print_json(const struct releasing *all, size_t n)
{
        yajl_gen json = json_new(1);

        (void)yajl_gen_array_open(json);
        for (size_t i = 0; i < n; i++) {
                const struct releasing *releasing = &all[i];

                (void)yajl_gen_map_open(json);
                quarantine_print_members(json, releasing->record);
                json_member(json, "outcome", names[releasing->outcome]);
                json_member(json, "why", releasing->reason);
                json_member(json, "topic", releasing->topic);
                json_member(json, "comesBack", releasing->quarantine_reason);
                if (releasing->quarantine_detail == NULL)
                        json_null(json, "comesBackDetail");
                else
                        json_bytes(json, "comesBackDetail", releasing->quarantine_detail,
                                   strlen(releasing->quarantine_detail));
                (void)yajl_gen_map_close(json);
        }
        (void)yajl_gen_array_close(json);
        json_print(json);
}

int
outcome_sum_up(const struct releasing *all, size_t n)
{
        size_t counts[OUTCOME_N] = {0}, n_failed;

        for (size_t i = 0; i < n; i++)
                counts[all[i].outcome]++;
        n_failed = counts[OUTCOME_FAILED] + counts[OUTCOME_PENDING];
        if (n == 0)
                fprintf(stderr, "gatepost quarantine release: there is nothing to release\n");
        else
                fprintf(stderr, "%zu %s, %zu released before, %zu not released\n",
                        counts[OUTCOME_RELEASED] + counts[OUTCOME_POSSIBLE],
                        counts[OUTCOME_POSSIBLE] > 0 ? "would be released" : "released",
                        counts[OUTCOME_BEFORE], n_failed + counts[OUTCOME_REFUSED]);
        if (n_failed > 0)
                return EX_TEMPFAIL;
        return counts[OUTCOME_REFUSED] > 0 ? EX_DATAERR : 0;
}
