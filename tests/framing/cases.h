#ifndef TESTS_FRAMING_CASES_H
#define TESTS_FRAMING_CASES_H

#include <stddef.h>

#include "http/framing.h"

/* The bytes of a connection, and the expected result. */
struct framing_case {
        const char *section; /* of RFC 9112, or of RFC 9110 or 3986 if named; or the name of a limit */
        const char *bytes;
        size_t len;
        int n_messages; /* complete messages before the end or the error */
        int status;     /* of the error; 0: none */
};

/* The limits for the cases: small, so that cases that exceed them are short. */
#define FRAMING_CASES_LIMITS \
        { \
                .max_header_bytes = 512, .max_headers = 20, .max_body = 100 \
        }

extern const struct framing_case framing_cases[];
extern const size_t n_framing_cases;

#endif
