#include "sandbox/outcome.h"

#include <stddef.h>
#include <string.h>

#include "base/compiler.h"

const struct outcome outcome_submitted = {"submitted", NULL, "SUBMITTED", 0};

static const struct outcome outcomes[] = {
    {"accepted", "invoice.accepted", "ACCEPTED", 1},    {"rejected", "invoice.rejected", "REJECTED", 1},
    {"pending", "invoice.pending", "PENDING", 0},       {"amended", "invoice.amended", "AMENDED", 1},
    {"cancelled", "invoice.cancelled", "CANCELLED", 1}, {"held", "held_unmapped_decision", "HELD", 0},
};

const struct outcome *
outcome_find(const char *name)
{
        if (name == NULL)
                return &outcomes[0];
        for (size_t i = 0; i < ARRAY_LEN(outcomes); i++) {
                if (strcmp(outcomes[i].name, name) == 0)
                        return &outcomes[i];
        }
        return NULL;
}

const char *
outcome_authority(const char *country)
{
        static const struct {
                const char *country;
                const char *authority;
        } authorities[] = {{"ES", "AEAT SII"}, {"FR", "PPF"}, {"IT", "SdI"}, {"PL", "KSeF"}};

        for (size_t i = 0; country != NULL && i < ARRAY_LEN(authorities); i++) {
                if (strcmp(authorities[i].country, country) == 0)
                        return authorities[i].authority;
        }
        return "Peppol";
}
