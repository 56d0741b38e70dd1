#include "messages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/pool.h"

/* The bytes of a connection that are being fed, and the current message. */
struct feeding {
        struct framing framing;
        struct messages *messages;
        struct message message; /* text is NULL until the header section is complete */
        const char *bytes;
};

static void
must(int condition, const char *contract)
{
        if (condition)
                return;
        fprintf(stderr, "framing: broken contract: %s\n", contract);
        abort();
}

static void
begin_body(struct feeding *feeding)
{
        struct message *message = &feeding->message;
        uint64_t max = feeding->framing.limits->max_body;

        message->text = framing_take_head(&feeding->framing, &message->head);
        must(message->text != NULL, "a complete head has a text");
        if (!message->head.chunked && message->head.content_length < max)
                max = message->head.content_length;
        message->body = mem_alloc((size_t)max + 1);
        must(framing_is_inside(&feeding->framing), "after a head, the message is not complete");
}

/* Append the body bytes that have arrived. Returns whether there are more bytes to feed. */
static int
take_body(struct feeding *feeding, size_t come)
{
        struct message *message = &feeding->message;
        struct messages *messages = feeding->messages;
        size_t n = come - messages->used;

        must(feeding->framing.left > 0, "FRAMING_DATA gives the number of bytes that follow");
        n = n < feeding->framing.left ? n : (size_t)feeding->framing.left;
        memcpy(message->body + message->body_len, feeding->bytes + messages->used, n);
        message->body_len += n;
        messages->used += n;
        framing_skip(&feeding->framing, n);
        return n > 0;
}

static void
end_message(struct feeding *feeding)
{
        struct messages *messages = feeding->messages;
        size_t end = messages->used;

        must(feeding->message.text != NULL, "FRAMING_END follows FRAMING_HEAD");
        must(!framing_is_inside(&feeding->framing), "after FRAMING_END, no message is under way");
        messages->list = mem_resize(messages->list, messages->n + 1, sizeof(*messages->list));
        feeding->message.end = end;
        messages->list[messages->n++] = feeding->message;
        feeding->message = (struct message){.start = end};
}

static void
end_refused(struct feeding *feeding)
{
        const struct framing *framing = &feeding->framing;

        must(framing->fault.status >= 400 && framing->fault.reason != NULL, "a refusal has a reason");
        feeding->messages->status = framing->fault.status;
        feeding->messages->reason = framing->fault.reason;
        if (framing->fault.status == 413 && feeding->message.text == NULL)
                begin_body(feeding);
}

static enum framing_verdict
feed_piece(struct feeding *feeding, size_t come)
{
        size_t len = come - feeding->messages->used, used;
        char *piece = mem_alloc(len + (len == 0));
        enum framing_verdict verdict;

        memcpy(piece, feeding->bytes + feeding->messages->used, len);
        verdict = framing_feed(&feeding->framing, piece, len, &used);
        free(piece);
        must(used <= len, "no more bytes are used than were fed");
        must(verdict != FRAMING_MORE || used == len, "FRAMING_MORE has used all bytes");
        feeding->messages->used += used;
        return verdict;
}

/* Feed these bytes. Returns whether more can be read. */
static int
feed(struct feeding *feeding, size_t come)
{
        for (;;) {
                switch (feed_piece(feeding, come)) {
                case FRAMING_MORE:
                        return 1;
                case FRAMING_HEAD:
                        begin_body(feeding);
                        break;
                case FRAMING_DATA:
                        if (!take_body(feeding, come))
                                return 1;
                        break;
                case FRAMING_END:
                        end_message(feeding);
                        break;
                case FRAMING_REFUSED:
                        end_refused(feeding);
                        return 0;
                }
        }
}

static void
clear_message(struct message *message)
{
        head_clear(&message->head);
        pool_free(message->text);
        free(message->body);
}

void
messages_read(const struct framing_limits *limits, const char *bytes, size_t len, size_t step,
              struct messages *messages)
{
        struct feeding feeding = {.messages = messages, .bytes = bytes};

        memset(messages, 0, sizeof(*messages));
        framing_init(&feeding.framing, limits);
        for (size_t come = 0; come < len;) {
                come += len - come < step ? len - come : step;
                if (!feed(&feeding, come))
                        break;
        }
        messages->is_inside = framing_is_inside(&feeding.framing);
        framing_clear(&feeding.framing);
        clear_message(&feeding.message);
}

void
messages_clear(struct messages *messages)
{
        for (size_t i = 0; i < messages->n; i++)
                clear_message(&messages->list[i]);
        free(messages->list);
        memset(messages, 0, sizeof(*messages));
}

static int
are_same_texts(const char *one, const char *other)
{
        return one == NULL || other == NULL ? one == other : strcmp(one, other) == 0;
}

static int
are_same_heads(const struct message *one, const struct message *other)
{
        const struct head *a = &one->head, *b = &other->head;

        if (strcmp(a->method, b->method) != 0 || a->path != b->path || a->path_len != b->path_len ||
            memcmp(one->text + a->path, other->text + b->path, a->path_len) != 0 || a->minor != b->minor ||
            a->content_length != b->content_length || a->chunked != b->chunked ||
            a->expects_continue != b->expects_continue || a->closes != b->closes ||
            a->keeps_alive != b->keeps_alive || a->n_fields != b->n_fields)
                return 0;
        for (size_t i = 0; i < a->n_fields; i++) {
                if (strcmp(one->text + a->fields[i].name, other->text + b->fields[i].name) != 0 ||
                    strcmp(one->text + a->fields[i].value, other->text + b->fields[i].value) != 0)
                        return 0;
        }
        return 1;
}

int
messages_are_equal(const struct messages *one, const struct messages *other)
{
        if (one->n != other->n || one->used != other->used || one->status != other->status ||
            one->is_inside != other->is_inside || !are_same_texts(one->reason, other->reason))
                return 0;
        for (size_t i = 0; i < one->n; i++) {
                const struct message *a = &one->list[i], *b = &other->list[i];

                if (a->start != b->start || a->end != b->end || a->body_len != b->body_len ||
                    memcmp(a->body, b->body, a->body_len) != 0 || !are_same_heads(a, b))
                        return 0;
        }
        return 1;
}
