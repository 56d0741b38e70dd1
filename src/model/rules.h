#ifndef MODEL_RULES_H
#define MODEL_RULES_H

#include <stdint.h>

#include "model/pointer.h"
#include "model/signature.h"

/* The origin of the key of an event's record. */
enum event_key { EVENT_KEY_KIND, EVENT_KEY_DELIVERY_ID, EVENT_KEY_WEBHOOK_ID, EVENT_KEY_POINTER };

/* How deliveries of a source become events. A plain value; the configuration owns its pointers. */
struct event_rules {
        const char *source;  /* the source's name: letters, digits, - and _ */
        struct pointer kind; /* of the event kind in the body */
        enum event_key key_from;
        struct pointer key;     /* for EVENT_KEY_POINTER; else no segments */
        struct pointer subject; /* no segments: events have no subject */

        /* The secrets for the router to verify signatures; none: the router trusts the receiver. */
        struct signature_key *const *keys;
        size_t n_keys;
        uint64_t tolerance_ms; /* for the signed timestamp */
};

#endif
