#ifndef CLI_QUARANTINE_H
#define CLI_QUARANTINE_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "config/config.h"
#include "kafka/offsets.h"
#include "kafka/range.h"
#include "model/release.h"

/*
 * What `gatepost quarantine` works with: records of quarantine, and what `deliveries` tells of their releases. It is a look at
 * one moment: what is written later is not in it. Bodies are not kept.
 */

enum quarantine_state {
        QUARANTINE_WAITING,
        QUARANTINE_RELEASED,
        QUARANTINE_UNSURE, /* `deliveries` cannot tell; the doubt says why */
};

/* Why `deliveries` cannot tell that a record was not released. */
enum quarantine_doubt {
        QUARANTINE_NO_DOUBT,
        QUARANTINE_NO_PLACE,     /* the record does not say where its delivery is */
        QUARANTINE_DELETED,      /* its delivery was deleted */
        QUARANTINE_ENDS_BEFORE,  /* the partition ends before the place of its delivery, or is not there */
        QUARANTINE_NO_RECORD,    /* nothing can be read at that place */
        QUARANTINE_OTHER_RECORD, /* another record is there */
        QUARANTINE_PARTLY_DELETED /* a partition to which a release may have gone has lost records of that time */
};

/* A record of quarantine. What comes from its headers may be anything, and is NULL where there is no header. */
struct quarantined {
        struct release_id id;
        int64_t timestamp_ms;
        char *key; /* the delivery-id */
        size_t key_len;
        char *signature;
        size_t signature_len;
        char *source;
        size_t source_len;
        char *reason;
        char *detail;
        struct release_id
            delivery; /* where it stands in `deliveries`; the partition is -1 when it does not say */

        int is_stub; /* of a delivery that no topic takes: its body is in `deliveries` only */
        int is_twin; /* not wished for, but of the same delivery as one that is; gone after quarantine_look() */
        enum quarantine_state state;
        enum quarantine_doubt doubt;
        struct release_id
            doubted;     /* the place that the doubt is about: of its own delivery, or of a twin's */
        int may_be_lost; /* a release may have been deleted from a partition that its key once had */
        struct release_id
            release; /* where its first release stands in `deliveries`; partition -1: not known */
        struct release_id came_back; /* the record that came of it; partition -1: none did */
        struct release_id came_of;   /* the record whose release it was; partition -1: none */
        struct release_id
            twin; /* the same delivery, quarantined before and not released; partition -1: none */
};

/* What to look for. */
struct quarantine_wish {
        const char *command;    /* its name, for messages */
        const char *bootstrap;  /* NULL: the configured brokers */
        const char *reason;     /* NULL: any */
        int64_t since_ms;       /* QUARANTINE_FROM_BEGINNING: all that there is */
        struct release_id *ids; /* these only, unless there are none; sorted by quarantine_add_id() */
        size_t n_ids;
};

#define QUARANTINE_FROM_BEGINNING INT64_MIN

/* A record of quarantine that came of a release. */
struct quarantine_return {
        struct release_id of; /* the record that was released */
        struct release_id id;
        char *key;
        size_t key_len;
        char *source;
        size_t source_len;
};

struct quarantine {
        const struct config *config;
        const struct quarantine_wish *wish;
        struct range *ranges; /* of the topic's partitions, the index is the number */
        size_t n_ranges;
        struct quarantined *records; /* by ID */
        size_t n;
        struct quarantine_return *returns;
        size_t n_returns;
};

/**
 * quarantine_parse_reason(text, wish, error), quarantine_add_id(text, wish, error):
 * Read arguments into a wish, whose ids the caller frees. Each returns 0, or -1 with what is wrong.
 */
int quarantine_parse_reason(const char *text, struct quarantine_wish *wish, struct error *error) MUST_CHECK;
int quarantine_add_id(const char *text, struct quarantine_wish *wish, struct error *error) MUST_CHECK;

/**
 * quarantine_look(quarantine, config, wish):
 * Read what is wished for, and what became of it. Every ID must be there. Returns 0, or an exit status after saying why;
 * quarantine_clear() in either case.
 */
int quarantine_look(struct quarantine *quarantine, const struct config *config,
                    const struct quarantine_wish *wish) MUST_CHECK;
void quarantine_clear(struct quarantine *quarantine);

/* The record with this ID, or NULL. */
struct quarantined *quarantine_find(const struct quarantine *quarantine, const struct release_id *id);

#define QUARANTINE_DOUBT_SIZE 512

/* Write why nobody can tell whether a record was released, as a clause; for QUARANTINE_UNSURE. Returns text. */
char *quarantine_doubt_text(const struct quarantine *quarantine, const struct quarantined *record,
                            char text[QUARANTINE_DOUBT_SIZE]);

/* Says on stderr why the command ends with this exit status, and returns it. */
int quarantine_refuse(const struct quarantine_wish *wish, int status, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Write where the body of a stub is, as a clause. Returns text. */
char *quarantine_stub_text(const struct quarantine *quarantine, const struct quarantined *record,
                           char text[QUARANTINE_DOUBT_SIZE]);

/* For a reading that failed. */
int quarantine_failed(const struct quarantine_wish *wish, enum range_result result,
                      const struct error *error);

#endif
