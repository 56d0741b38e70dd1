#include "transcript.h"

#include <stdio.h>
#include <string.h>

#include "http/field.h"

void
transcript_clear(struct transcript *transcript)
{
        for (size_t i = 0; i < transcript->n; i++)
                free(transcript->messages[i].text);
        free(transcript->seen);
        memset(transcript, 0, sizeof(*transcript));
}

void
transcript_compare(const struct transcript *a, const struct transcript *b, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                MUST(i < a->n && i < b->n);
                MUST(a->messages[i].len == b->messages[i].len);
                MUST(memcmp(a->messages[i].text, b->messages[i].text, a->messages[i].len) == 0);
        }
}

static void
write_header(const struct http_header *header, void *arg)
{
        fprintf(arg, "%s: %s\n", header->name, header->value);
}

void
transcript_take(struct transcript *transcript, struct http_request *request)
{
        size_t len;
        const char *text = http_request_path(request, &len);
        FILE *out;

        MUST(transcript->n < TRANSCRIPT_MAX);
        out = open_memstream(&transcript->messages[transcript->n].text,
                             &transcript->messages[transcript->n].len);
        fprintf(out, "%s %.*s\n", http_request_method(request), (int)len, text);
        http_request_headers(request, write_header, out);
        fputc('\n', out);
        text = http_request_body(request, &len);
        fwrite(text, 1, len, out);
        fclose(out);
        transcript->n++;
}

/* A message under way. */
struct message {
        const char *start;
        const char *headers_end; /* NULL: in its head */
        char *body;
        size_t body_len;
        struct head head;
        char *path;
};

static void
keep_head(struct message *message, const struct framing *framing, const char *end)
{
        if (message->headers_end != NULL)
                return;
        message->headers_end = end;
        message->head = framing->head;
        message->path = strndup(framing->head.path, framing->head.path_len);
}

static void
keep(struct transcript *transcript, const struct message *message)
{
        FILE *out;
        const char *line = message->start, *eol;
        struct field field;

        MUST(transcript->n < TRANSCRIPT_MAX);
        out = open_memstream(&transcript->messages[transcript->n].text,
                             &transcript->messages[transcript->n].len);
        fprintf(out, "%s %s\n", message->head.method, message->path);
        line = (const char *)memmem(line, (size_t)(message->headers_end - line), "\r\n", 2) + 2;
        while (line < message->headers_end) {
                eol = memmem(line, (size_t)(message->headers_end - line), "\r\n", 2);
                MUST(eol != NULL);
                if (eol == line)
                        break;
                MUST(field_parse(line, (size_t)(eol - line), &field) == NULL);
                fprintf(out, "%.*s: %.*s\n", (int)field.name_len, field.name, (int)field.value_len,
                        field.value);
                line = eol + 2;
        }
        fputc('\n', out);
        fwrite(message->body, 1, message->body_len, out);
        fclose(out);
        transcript->n++;
}

void
transcript_of_framing(const struct framing_limits *limits, const uint8_t *data, size_t len,
                      struct transcript *transcript)
{
        struct framing framing;
        struct message message = {.start = (const char *)data, .body = malloc(len + 1)};

        memset(transcript, 0, sizeof(*transcript));
        transcript->seen = malloc(len + 1);
        memcpy(transcript->seen, data, len);
        framing_init(&framing, limits);
        while (transcript->used < len && transcript->status == 0) {
                char *byte = transcript->seen + transcript->used;
                int is_body = framing.state == FRAMING_LENGTH_BODY || framing.state == FRAMING_CHUNK_DATA;
                size_t used;
                enum framing_verdict verdict = framing_feed(&framing, byte, 1, &used);
                const char *end;

                MUST(used == 1 || verdict == FRAMING_REFUSED);
                transcript->used += used;
                end = (const char *)data + transcript->used;
                if (is_body) {
                        MUST(verdict != FRAMING_REFUSED && *byte == (char)end[-1]);
                        message.body[message.body_len++] = *byte;
                }
                if (verdict == FRAMING_BODY || verdict == FRAMING_MESSAGE)
                        keep_head(&message, &framing, end);
                if (verdict == FRAMING_MESSAGE) {
                        keep(transcript, &message);
                        free(message.path);
                        message = (struct message){.start = end, .body = message.body};
                } else if (verdict == FRAMING_REFUSED) {
                        transcript->status = framing.fault.status;
                        MUST(transcript->status >= 400 && framing.fault.reason != NULL);
                }
        }
        framing_clear(&framing);
        free(message.path);
        free(message.body);
}
