#include "cases.h"

#include "base/compiler.h"

#define GET "GET / HTTP/1.1\r\nHost: a\r\n"
#define POST "POST /hook HTTP/1.1\r\nHost: a\r\n"
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"
#define HELLO CHUNKED "5\r\nhello\r\n"
#define END "0\r\n\r\n"
#define TARGET(target) "GET " target " HTTP/1.1\r\nHost: a\r\n\r\n"
#define HOST(value) "GET / HTTP/1.1\r\nHost:" value "\r\n\r\n"
#define X10(text) text text text text text text text text text text
#define X50(text) X10(text) X10(text) X10(text) X10(text) X10(text)

/*
 * Bytes with n complete messages, possibly followed by an incomplete one; and bytes with an error, after n
 * messages.
 */
#define LEGAL(section, n, bytes) {section, bytes, sizeof(bytes) - 1, n, 0},
#define REFUSED(section, status, bytes) {section, bytes, sizeof(bytes) - 1, 0, status},
#define REFUSED_LATER(section, n, status, bytes) {section, bytes, sizeof(bytes) - 1, n, status},

const struct framing_case framing_cases[] = {
#include "head_cases.inc"

#include "body_cases.inc"
};

const size_t n_framing_cases = ARRAY_LEN(framing_cases);
