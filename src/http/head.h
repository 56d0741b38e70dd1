#ifndef HTTP_HEAD_H
#define HTTP_HEAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/*
 * Parses the head of a request, the request line and the header lines, strictly by RFC 9112. Anything that
 * two parsers might read differently is refused (RFC 9112 §2.2, 3, 5, 6, 11.2). Each line is parsed and
 * classified once.
 */

#define HEAD_METHOD_MAX 16
#define HEAD_TEXT_MAX UINT16_MAX /* maximum length of a head in bytes */

/* A header or trailer line. The pointers point into the line. */
struct head_field {
        const char *name;
        size_t name_len;
        const char *value; /* without surrounding white space */
        size_t value_len;
};

/* A header line as offsets into the head's text. */
struct head_span {
        uint16_t name;
        uint16_t name_len;
        uint16_t value;
        uint16_t value_len;
};

struct head {
        char method[HEAD_METHOD_MAX + 1];
        /*
         * Offset of the target's path: up to `?`, and without the scheme and authority of an absolute-form
         * target.
         */
        uint16_t path;
        uint16_t path_len;
        uint64_t content_length; /* 0 without the header */
        struct head_span *fields;
        uint16_t n_fields;
        uint8_t minor; /* x of the version HTTP/1.x */
        uint8_t chunked;
        uint8_t expects_continue; /* Expect: 100-continue */
        uint8_t closes;           /* Connection lists close */
        uint8_t keeps_alive;      /* Connection lists keep-alive */
        uint8_t is_forwarded;     /* it has X-Forwarded-For */

        /* Private to head.c: */
        uint8_t n_hosts;
        uint8_t n_lengths;
        uint8_t n_encodings;
        uint8_t expects_more; /* Expect lists something besides 100-continue */
        uint16_t fields_size;
};

/*
 * Why a head is refused. Status 400; 417 for an expectation; 501 for an unknown method; 503 when memory
 * fails.
 */
struct head_fault {
        int status;
        const char *reason;
        /* The reason on a listener that requires the PROXY protocol; NULL: the same. */
        const char *reason_behind_proxy;
};

/**
 * head_take(head, text, line, len, fault):
 * Parse the line of len bytes, without CR LF, at offset `line` of text. For a zeroed head it is the request
 * line. The caller guarantees no bare CR, LF or NUL, and an end within HEAD_TEXT_MAX. Returns 0, or -1 with
 * the fault.
 */
int head_take(struct head *head, const char *text, size_t line, size_t len,
              struct head_fault *fault) MUST_CHECK;

/* Check the head as a whole, at the empty line. Returns 0, or -1 with the fault. */
int head_end(const struct head *head, struct head_fault *fault) MUST_CHECK;

/* Free the list of fields and zero the head. */
void head_clear(struct head *head);

/* Returns 1 when the request has a body. */
int head_has_body(const struct head *head);

/**
 * head_field_parse(line, len, field):
 * Parse a header or trailer line without its CR LF (RFC 9112 §5): no folding, no space before the colon, no
 * control characters. Returns NULL, or the reason to refuse it.
 */
const char *head_field_parse(const char *line, size_t len, struct head_field *field) MUST_CHECK;

/**
 * head_field_may_trail(field):
 * Returns 1 when a trailer section may contain the field. Trailer fields are discarded here, but a proxy
 * might take framing or routing from one (RFC 9110 §6.5.1).
 */
int head_field_may_trail(const struct head_field *field);

/* Return the length of the token that text begins with (RFC 9110 §5.6.2). */
size_t head_token_len(const char *text, size_t len);

/* Remove white space from both ends (OWS, RFC 9110 §5.6.3). */
void head_trim(const char **text, size_t *len);

/**
 * head_check_target(method, target, len):
 * Check a request target (RFC 9112 §3.2): origin-form; absolute-form with http or https; asterisk-form with
 * OPTIONS. User information, fragments and incomplete percent-encoding are refused. Returns NULL, or the
 * reason.
 */
const char *head_check_target(const char *method, const char *target, size_t len) MUST_CHECK;

/* Returns 1 for host [ ":" port ] with a non-empty host, as in Host and in a target (RFC 3986 §3.2). */
int head_is_authority(const char *text, size_t len);

/* Return the beginning of a request target's path, and its length. */
const char *head_path(const char *target, size_t len, size_t *path_len);

#endif
