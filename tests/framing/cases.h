#ifndef TESTS_FRAMING_CASES_H
#define TESTS_FRAMING_CASES_H

#include <stddef.h>

#include "http/framing.h"

/* One connection's bytes, and what is to come of them. */
struct framing_case {
        const char *section; /* of the RFC 9112, or 9110 or 3986 where that is named, or a limit's name */
        const char *bytes;
        size_t len;
        int n_messages; /* complete ones before the end or the refusal */
        int status;     /* of the refusal; 0: none */
};

/* By which the cases are judged: small, so that cases beyond them are. */
#define FRAMING_CASES_LIMITS \
        { \
                .max_header_bytes = 512, .max_headers = 20, .max_body = 100 \
        }

extern const struct framing_case framing_cases[];
extern const size_t n_framing_cases;

#endif
