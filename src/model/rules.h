#ifndef MODEL_RULES_H
#define MODEL_RULES_H

#include <stdint.h>

#include "model/pointer.h"
#include "model/signature.h"

/* Where the key of an event's record comes from. */
enum event_key { EVENT_KEY_KIND, EVENT_KEY_DELIVERY_ID, EVENT_KEY_WEBHOOK_ID, EVENT_KEY_POINTER };

/* How the deliveries of one source become events. A plain value; the configuration owns its pointers. */
struct event_rules {
        const char *source;  /* the source's name: letters, digits, - and _ */
        struct pointer kind; /* where the body names the kind */
        enum event_key key_from;
        struct pointer key;     /* for EVENT_KEY_POINTER; else no segments */
        struct pointer subject; /* no segments: events have no subject */

        /* The secrets under which the router verifies records again; none: it takes the receiver's word. */
        struct signature_key *const *keys;
        size_t n_keys;
        uint64_t tolerance_ms; /* of the receiver, for the signed timestamp */
};

#endif
