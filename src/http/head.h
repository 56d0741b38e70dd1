#ifndef HTTP_HEAD_H
#define HTTP_HEAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/*
 * The head of a request: its request line and its header lines, read strictly by RFC 9112. Whatever two readers might take
 * differently is refused (RFC 9112 sections 2.2, 3, 5, 6 and 11.2). Each line is judged and classified once, as it comes.
 */

#define HEAD_METHOD_MAX 16
#define HEAD_TEXT_MAX UINT16_MAX /* bytes of a head */

/* A header line or a trailer line. The spans point into the line. */
struct head_field {
        const char *name;
        size_t name_len;
        const char *value; /* without the white space around it */
        size_t value_len;
};

/* A header line of a head, as offsets into the head's text. */
struct head_span {
        uint16_t name;
        uint16_t name_len;
        uint16_t value;
        uint16_t value_len;
};

struct head {
        char method[HEAD_METHOD_MAX + 1];
        uint16_t
            path; /* offset of the target's bytes before `?`; of an absolute-form target, of those after the authority */
        uint16_t path_len;
        uint64_t content_length; /* 0 when there is none */
        struct head_span *fields;
        uint16_t n_fields;
        uint8_t minor; /* of the version HTTP/1.x */
        uint8_t chunked;
        uint8_t expects_continue; /* Expect: 100-continue */
        uint8_t closes;           /* Connection lists close */
        uint8_t keeps_alive;      /* Connection lists keep-alive */

        /* For head.c: */
        uint8_t n_hosts;
        uint8_t n_lengths;
        uint8_t n_encodings;
        uint8_t expects_more; /* than 100-continue */
        uint16_t fields_size;
};

/* Why a head is refused: status 400; 417 for an expectation; 501 for an unknown method; 503 when memory fails. */
struct head_fault {
        int status;
        const char *reason;
};

/**
 * head_take(head, text, line, len, fault):
 * Read the line of len bytes at offset line of text, without its CR LF. The first line, for a head that is all zero, is the
 * request line. A line contains no bare CR or LF and no NUL, and ends within HEAD_TEXT_MAX. Returns 0, or -1 with the fault.
 */
int head_take(struct head *head, const char *text, size_t line, size_t len,
              struct head_fault *fault) MUST_CHECK;

/* The empty line has come: judge what only all lines together say. Returns 0, or -1 with the fault. */
int head_end(const struct head *head, struct head_fault *fault) MUST_CHECK;

/* Free the list of fields and begin again. */
void head_clear(struct head *head);

/* Whether a body follows. */
int head_has_body(const struct head *head);

/**
 * head_field_parse(line, len, field):
 * Read a header or trailer line, without its CR LF, by RFC 9112 section 5: no folding, no space before the colon, no control
 * characters. Returns NULL, or the reason to refuse it.
 */
const char *head_field_parse(const char *line, size_t len, struct head_field *field) MUST_CHECK;

/**
 * head_field_may_trail(field):
 * Whether a field may appear in a trailer section. Trailer fields are discarded here, but a proxy might take from one how a
 * message is framed or where it goes (RFC 9110 section 6.5.1).
 */
int head_field_may_trail(const struct head_field *field);

/* Number of bytes at the beginning that are those of a token (RFC 9110 section 5.6.2). */
size_t head_token_len(const char *text, size_t len);

/* Remove white space at both ends (OWS, RFC 9110 section 5.6.3). */
void head_trim(const char **text, size_t *len);

/**
 * head_check_target(method, target, len):
 * Whether a request target has one of the forms of RFC 9112 section 3.2: origin-form; absolute-form for http and https; with
 * OPTIONS, asterisk-form. User information and fragments are refused, percent-encoding must be complete. Returns NULL, or
 * the reason to refuse it.
 */
const char *head_check_target(const char *method, const char *target, size_t len) MUST_CHECK;

/* Whether the text is host [ ":" port ] with a host that is not empty, as in Host and in a target (RFC 3986 section 3.2). */
int head_is_authority(const char *text, size_t len);

/* The path of a request target: where it begins, and its length. */
const char *head_path(const char *target, size_t len, size_t *path_len);

#endif
