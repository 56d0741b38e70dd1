#ifndef SANDBOX_OUTCOME_H
#define SANDBOX_OUTCOME_H

/* What the authority makes of an invoice. A row of a constant table. */
struct outcome {
        const char *name;   /* as an invoice's `outcome` asks for it */
        const char *kind;   /* of the event */
        const char *status; /* clearanceStatus */
        int terminal;
};

/* The one with a name; NULL: none. Without a name: accepted. */
const struct outcome *outcome_find(const char *name);

/* The one before the authority has decided; it has no kind. */
extern const struct outcome outcome_submitted;

/* Who rejects, in the record of a rejection, for an invoice of a country (NULL: of none). */
const char *outcome_authority(const char *country);

#endif
