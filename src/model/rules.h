#ifndef MODEL_RULES_H
#define MODEL_RULES_H

#include <stdint.h>

#include "model/pointer.h"
#include "model/signature.h"

/* The origin of the key of an event's record. */
enum event_key { EVENT_KEY_KIND, EVENT_KEY_DELIVERY_ID, EVENT_KEY_WEBHOOK_ID, EVENT_KEY_POINTER };

/* What a JSON pointer looks up in bodies, for an event that does without it if it is missing. */
enum event_lookup { EVENT_LOOKUP_KEY, EVENT_LOOKUP_SUBJECT, EVENT_LOOKUP_N };

/* Longest names, because a record has room for the body and 64 KiB only. */
#define RULES_SOURCE_MAX 512
#define RULES_TYPE_PREFIX_MAX 128
#define RULES_SCHEMA_BASE_MAX 512

/* How deliveries of a source become events. A plain value; the configuration owns its pointers. */
struct event_rules {
        const char *source;  /* the source's name: letters, digits, - and _ */
        struct pointer kind; /* of the event kind in the body */
        enum event_key key_from;
        struct pointer key;             /* for EVENT_KEY_POINTER; else no segments */
        struct pointer subject;         /* no segments: events have no subject */
        const char *ce_source;          /* at most RULES_SOURCE_MAX bytes */
        const char *ce_type_prefix;     /* before the kind, at most RULES_TYPE_PREFIX_MAX bytes; NULL: none */
        const char *ce_dataschema_base; /* at most RULES_SCHEMA_BASE_MAX bytes; NULL: events have no schema */

        /* The secrets for the router to verify signatures; none: the router trusts the receiver. */
        struct signature_key *const *keys;
        size_t n_keys;
        uint64_t tolerance_ms; /* for the signed timestamp */
};

#endif
