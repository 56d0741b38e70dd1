#include "transcript.h"

#include <stdio.h>
#include <string.h>

#include "../framing/messages.h"

void
transcript_clear(struct transcript *transcript)
{
        for (size_t i = 0; i < transcript->n; i++)
                free(transcript->messages[i].text);
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

static void
keep(struct transcript *transcript, const struct message *message)
{
        const struct head *head = &message->head;
        FILE *out;

        MUST(transcript->n < TRANSCRIPT_MAX);
        out = open_memstream(&transcript->messages[transcript->n].text,
                             &transcript->messages[transcript->n].len);
        fprintf(out, "%s %.*s\n", head->method, (int)head->path_len, message->text + head->path);
        for (size_t i = 0; i < head->n_fields; i++) {
                const struct http_header header = {message->text + head->fields[i].name,
                                                   message->text + head->fields[i].value};

                MUST(strlen(header.name) == head->fields[i].name_len);
                MUST(strlen(header.value) == head->fields[i].value_len);
                write_header(&header, out);
        }
        fputc('\n', out);
        fwrite(message->body, 1, message->body_len, out);
        fclose(out);
        transcript->n++;
}

void
transcript_of_framing(const struct framing_limits *limits, const uint8_t *data, size_t len, size_t step,
                      struct transcript *transcript)
{
        struct messages messages;

        memset(transcript, 0, sizeof(*transcript));
        messages_read(limits, (const char *)data, len, step, &messages);
        for (size_t i = 0; i < messages.n; i++)
                keep(transcript, &messages.list[i]);
        transcript->status = messages.status;
        messages_clear(&messages);
}
