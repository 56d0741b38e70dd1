#include "http/blank.h"

#include "http/chunk.h"

static char
in_head(struct framing *framing, char c)
{
        if (framing->line_len == 1)
                framing->place = FRAMING_IN_VALUE; /* of the request line, which has no name */
        else if (framing->line[framing->line_len - 2] == '\n')
                framing->place = FRAMING_IN_NAME;
        if (framing->place == FRAMING_IN_NAME && c == ':')
                framing->place = FRAMING_BEFORE_VALUE;
        else if (framing->place == FRAMING_BEFORE_VALUE && c != ' ' && c != '\t')
                framing->place = FRAMING_IN_VALUE;
        return framing->place == FRAMING_BEFORE_VALUE && c == '\t' ? ' ' : c;
}

static char
in_chunk_line(struct framing *framing, char c)
{
        if (c == '\r' || c == '\n')
                return chunk_is_last(framing->line, framing->line_len) ? ' ' : c;
        if (chunk_n_digits(framing->line, framing->line_len) == framing->line_len)
                return c;
        framing->n_besides++;
        return ' ';
}

static char
in_trailer(struct framing *framing, char c)
{
        framing->n_besides++;
        if (framing->line_len == 1 && c == '\r')
                return '\n';
        return framing->line_len == 2 && framing->line[0] == '\r' && c == '\n' ? '\n' : ' ';
}

char
blank_last_byte(struct framing *framing)
{
        char c = framing->line[framing->line_len - 1];

        switch (framing->state) {
        case FRAMING_HEAD:
                return in_head(framing, c);
        case FRAMING_CHUNK_SIZE:
                return in_chunk_line(framing, c);
        case FRAMING_TRAILER:
                return in_trailer(framing, c);
        case FRAMING_LENGTH_BODY:
        case FRAMING_CHUNK_DATA:
        case FRAMING_CHUNK_END:
                break;
        }
        return c;
}
