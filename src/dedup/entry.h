#ifndef DEDUP_ENTRY_H
#define DEDUP_ENTRY_H

#include <stdint.h>
#include <string.h>

/* What the parts of a dedup table know, and how they are asked. */

#define DEDUP_IDENTITY_SIZE 16

/* What a part knows of the records with one identity and one body. */
struct dedup_entry {
        uint8_t identity[DEDUP_IDENTITY_SIZE];
        uint64_t body; /* a digest */
        int64_t first_offset;
        int64_t last_ms; /* timestamp of the last one */
};

/* In place of a body: the entry is for all bodies of an identity that has more than one. */
#define DEDUP_ANY_BODY UINT64_MAX

enum dedup_answer {
        DEDUP_NEW,      /* no earlier record in the window */
        DEDUP_REPEAT,   /* an earlier record with the same body */
        DEDUP_CONFLICT, /* only earlier records with other bodies */
};

/* Which earlier records are there of a record? */
struct dedup_question {
        uint8_t identity[DEDUP_IDENTITY_SIZE];
        uint64_t body;
        int64_t offset;
        int64_t oldest_ms; /* the start of its window */
};

/* Return whether an entry has an earlier record in the window of the question. */
static inline int
dedup_is_earlier(int64_t first_offset, int64_t last_ms, const struct dedup_question *question)
{
        return first_offset < question->offset && last_ms >= question->oldest_ms;
}

/* Compare entries by identity, then by body. Return a number below, equal to or above 0. */
static inline int
dedup_entry_compare(const struct dedup_entry *a, const struct dedup_entry *b)
{
        int order = memcmp(a->identity, b->identity, sizeof(a->identity));

        return order != 0 ? order : (a->body > b->body) - (a->body < b->body);
}

/* Add what another entry knows of the same records, or of other bodies of their identity. */
static inline void
dedup_entry_add(struct dedup_entry *entry, const struct dedup_entry *other)
{
        if (other->first_offset < entry->first_offset)
                entry->first_offset = other->first_offset;
        if (other->last_ms > entry->last_ms)
                entry->last_ms = other->last_ms;
}

#endif
