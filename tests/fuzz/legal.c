/*
 * Valid messages, generated from the grammar of RFC 9112 by the fuzzer's choices: framing must accept each
 * with its exact body, and a handler behind evhttp must get it.
 */
#include <stdio.h>
#include <string.h>

#include "choices.h"
#include "transcript.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Large limits, as every message must be accepted. */
static const struct framing_limits limits = {.max_header_bytes = 8192, .max_headers = 20, .max_body = 100};

/* The generator: the bytes of a connection, and the body of the current message. */
struct maker {
        struct choices choices;
        FILE *out;
        char body[64];
        size_t body_len;
};

static const char *
space(struct maker *maker)
{
        static const char *const spaces[] = {"", " ", "\t", " \t ", "\t\t"};

        return CHOOSE(&maker->choices, spaces);
}

static const char *
word(struct maker *maker)
{
        static const char *const words[] = {
            "a", "0", "5", "chunked", "x-y_z", "!#$%&'*+-.^_`|~", "Content-Length"};

        return CHOOSE(&maker->choices, words);
}

static const char *
value(struct maker *maker)
{
        static const char *const values[] = {"",  "b",     "b\tc",  "0\t 5;a=\"",  "\xc5\xbc",
                                             ":", "\x80,", "close", "100-continue"};

        return CHOOSE(&maker->choices, values);
}

static void
make_target(struct maker *maker)
{
        static const char *const targets[] = {"/", "/hook", "//", "//a/b", "/%41?b=%20/?", "/a:b@c;d=e,f"};
        static const char *const absolute[] = {"http://a/hook", "HTTPS://[::1]:80?x", "http://a.b:?c",
                                               "https://a"};

        if (choose(&maker->choices, 4) > 0)
                fputs(CHOOSE(&maker->choices, targets), maker->out);
        else
                fputs(CHOOSE(&maker->choices, absolute), maker->out);
}

/* Generate up to three fields that do not affect framing. */
static void
make_fields(struct maker *maker, const char *prefix)
{
        for (unsigned n = choose(&maker->choices, 4); n > 0; n--) {
                const char *before = space(maker), *name = word(maker), *text = value(maker);

                fprintf(maker->out, "%s%s:%s%s%s\r\n", prefix, name, before, text, space(maker));
        }
}

static void
make_body(struct maker *maker)
{
        static const char bytes[] = "\r\n\t \0;0:aP\xff";

        maker->body_len = choose(&maker->choices, sizeof(maker->body));
        for (size_t i = 0; i < maker->body_len; i++)
                maker->body[i] = bytes[choose(&maker->choices, sizeof(bytes) - 1)];
}

static void
make_extensions(struct maker *maker)
{
        static const char *const quoted[] = {"\"\"", "\"a\"", "\"\\\"\\\\\t;=\"", "\"\xff 0\""};

        for (unsigned n = choose(&maker->choices, 3); n > 0; n--) {
                const char *before = space(maker), *after = space(maker), *name = word(maker);
                unsigned kind = choose(&maker->choices, 3);

                fprintf(maker->out, "%s;%s%s", before, after, name);
                if (kind == 0)
                        continue;
                before = space(maker);
                after = space(maker);
                fprintf(maker->out, "%s=%s%s", before, after,
                        kind == 1 ? word(maker) : CHOOSE(&maker->choices, quoted));
        }
}

static void
make_chunks(struct maker *maker)
{
        static const char *const zeros[] = {"", "0", "000"};

        for (size_t at = 0, n; at < maker->body_len; at += n) {
                n = 1 + choose(&maker->choices, 20);
                if (n > maker->body_len - at)
                        n = maker->body_len - at;
                fprintf(maker->out, choose(&maker->choices, 2) ? "%s%zx" : "%s%zX",
                        CHOOSE(&maker->choices, zeros), n);
                make_extensions(maker);
                fputs("\r\n", maker->out);
                fwrite(maker->body + at, 1, n, maker->out);
                fputs("\r\n", maker->out);
        }
        fprintf(maker->out, "0%s", CHOOSE(&maker->choices, zeros));
        make_extensions(maker);
        fputs("\r\n", maker->out);
        make_fields(maker, "t-");
        fputs("\r\n", maker->out);
}

static void
make_message(struct maker *maker)
{
        static const char *const methods[] = {"POST", "GET", "PUT", "DELETE", "OPTIONS", "PATCH"};
        static const char *const chunked[] = {"chunked", "Chunked", "CHUNKED"};
        unsigned kind = choose(&maker->choices, 3);

        maker->body_len = 0;
        fprintf(maker->out, "%s ", CHOOSE(&maker->choices, methods));
        make_target(maker);
        fprintf(maker->out, " HTTP/1.1\r\nHost:%sa%s\r\n", space(maker), space(maker));
        make_fields(maker, "h-");
        if (kind > 0)
                make_body(maker);
        if (kind == 1)
                fprintf(maker->out, "Content-Length:%s%zu%s\r\n", space(maker), maker->body_len,
                        space(maker));
        if (kind == 2)
                fprintf(maker->out, "Transfer-Encoding:%s%s%s\r\n", space(maker),
                        CHOOSE(&maker->choices, chunked), space(maker));
        fputs("\r\n", maker->out);
        if (kind == 1)
                fwrite(maker->body, 1, maker->body_len, maker->out);
        if (kind == 2)
                make_chunks(maker);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
        static const size_t steps[] = {8192, 200, 64, 17, 5, 1};
        struct maker maker = {.choices = {data, len}};
        struct transcript framed, served;
        char *bytes;
        size_t n = 1 + choose(&maker.choices, 3), n_bytes, step = CHOOSE(&maker.choices, steps);
        char bodies[3][sizeof(maker.body)];
        size_t lens[3];

        maker.out = open_memstream(&bytes, &n_bytes);
        for (size_t i = 0; i < n; i++) {
                make_message(&maker);
                memcpy(bodies[i], maker.body, maker.body_len);
                lens[i] = maker.body_len;
        }
        fclose(maker.out);
        transcript_of_framing(&limits, (uint8_t *)bytes, n_bytes, 1, &framed);
        if (framed.status != 0) {
                fwrite(bytes, 1, n_bytes, stderr);
                abort();
        }
        MUST(framed.n == n);
        for (size_t i = 0; i < n; i++)
                MUST(framed.messages[i].len > lens[i] &&
                     memcmp(framed.messages[i].text + framed.messages[i].len - lens[i], bodies[i], lens[i]) ==
                         0);
        transcript_of_server(&limits, (uint8_t *)bytes, n_bytes, step, &served);
        MUST(served.n == n);
        transcript_compare(&framed, &served, n);
        transcript_clear(&framed);
        transcript_clear(&served);
        free(bytes);
        return 0;
}
