#include "cli/wrap.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/text.h"

#define LINE_WIDTH 80
#define MIN_WIDTH 20
#define MAX_WIDTH 10000
#define INDENT 4 /* of further lines, beyond the indentation of the first */
#define ROOM 24  /* for words in them */
#define MARK '\v'
#define ESCAPE '\033'
#define FIRST_WIDE 0x2e80 /* characters from here on are mostly East Asian, and take two columns */

/* A stream that is wrapped: the terminal, and the line that is not complete yet. */
struct wrapped {
        FILE *stream; /* NULL: not wrapped */
        int fd;
        char *line;
        size_t len, size;
        char *output; /* a wrapped line, before it is written */
        size_t output_len, output_size;
};

static struct wrapped out = {.fd = STDOUT_FILENO}, err = {.fd = STDERR_FILENO};

/* Return the width of a terminal. A person may change it at any time. */
static size_t
width_of(int fd)
{
        const char *columns = getenv("COLUMNS");
        struct winsize size = {0};
        struct error ignored;
        uint64_t width;

        if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
                width = size.ws_col;
        else if (columns == NULL || number_parse(columns, 1, MAX_WIDTH, &width, &ignored) != 0)
                width = LINE_WIDTH;
        return width < MIN_WIDTH ? MIN_WIDTH : (size_t)width;
}

static void
append(char **bytes, size_t *len, size_t *size, const char *more, size_t n)
{
        if (n == 0)
                return;
        if (*len + n > *size) {
                *size = (*len + n) * 2;
                *bytes = mem_resize(*bytes, *size, 1);
        }
        memcpy(*bytes + *len, more, n);
        *len += n;
}

static void
put(struct wrapped *wrapped, const char *bytes, size_t len)
{
        append(&wrapped->output, &wrapped->output_len, &wrapped->output_size, bytes, len);
}

static void
put_spaces(struct wrapped *wrapped, size_t n)
{
        while (n-- > 0)
                put(wrapped, " ", 1);
}

/*
 * Return the bytes of the character or escape sequence at the start of the text, which has at least 1 byte,
 * and the columns that it takes.
 */
static size_t
measure(const char *text, size_t len, size_t *columns)
{
        const unsigned char *bytes = (const unsigned char *)text;
        size_t n = 1;

        *columns = bytes[0] >= ' ';
        if (bytes[0] == ESCAPE && len > 1 && text[1] == '[') {
                for (n = 2; n < len && (text[n] < '@' || text[n] > '~'); n++)
                        ;
                return n < len ? n + 1 : n;
        }
        if (bytes[0] < 0xc0)
                return 1;
        n = text_printable(text, len);
        if (n == 4 || (n == 3 && ((bytes[0] & 0xfu) << 12 | (bytes[1] & 0x3fu) << 6) >= FIRST_WIDE))
                *columns = 2;
        return n == 0 ? 1 : n;
}

/* The place where a line is put together. */
struct place {
        size_t width;
        size_t at;     /* the present column */
        size_t indent; /* of further lines */
        int has_word;  /* in the present line */
};

/* Begin a further line; with less indentation, if a word of so many columns would have to be broken. */
static void
break_line(struct wrapped *wrapped, struct place *place, size_t columns)
{
        place->at = place->indent;
        if (place->at > INDENT && place->at + columns > place->width)
                place->at = INDENT;
        put(wrapped, "\n", 1);
        put_spaces(wrapped, place->at);
        place->has_word = 0;
}

/* Return the bytes up to the next space, and their columns. */
static size_t
measure_word(const char *text, size_t len, size_t *columns)
{
        size_t i = 0, each;

        for (*columns = 0; i < len && text[i] != ' ' && text[i] != MARK; *columns += each)
                i += measure(text + i, len - i, &each);
        return i;
}

/* Put a word after a gap. Only a word that is wider than a line is broken. */
static void
put_word(struct wrapped *wrapped, struct place *place, const char *word, size_t len, size_t gap)
{
        size_t columns, all, n;

        (void)measure_word(word, len, &all);
        if (place->has_word && place->at + gap + all > place->width) {
                break_line(wrapped, place, all);
        } else {
                put_spaces(wrapped, gap);
                place->at += gap;
        }
        for (size_t i = 0; i < len; i += n) {
                n = measure(word + i, len - i, &columns);
                if (place->at + columns > place->width)
                        break_line(wrapped, place, all);
                if (word[i] == '\r')
                        place->at = 0;
                put(wrapped, word + i, n);
                place->at += columns;
                place->has_word |= columns > 0;
        }
}

/* Wrap a line of the given length, which has no newline. */
static void
put_line(struct wrapped *wrapped, const char *line, size_t len)
{
        struct place place = {.width = width_of(wrapped->fd)};
        size_t gap = 0;

        for (size_t i = 0, n, columns; i < len; i += n) {
                n = 1;
                if (line[i] == ' ') {
                        gap++;
                } else if (line[i] == MARK) {
                        place.indent = place.at + gap;
                } else {
                        n = measure_word(line + i, len - i, &columns);
                        if (!place.has_word && place.indent == 0)
                                place.indent = gap + INDENT;
                        if (place.indent + ROOM > place.width)
                                place.indent = INDENT;
                        put_word(wrapped, &place, line + i, n, gap);
                        gap = 0;
                }
        }
        put(wrapped, "\n", 1);
}

/* Put a line that will be erased: what fits of it. */
static void
put_passing(struct wrapped *wrapped, const char *line, size_t len)
{
        size_t width = width_of(wrapped->fd), at = 0;

        for (size_t i = 0, n, columns; i < len; i += n) {
                n = measure(line + i, len - i, &columns);
                if (at + columns < width)
                        put(wrapped, line + i, n);
                at += columns;
        }
}

/* Write the output. Returns 0, or -1 if that fails. */
static int
write_output(struct wrapped *wrapped)
{
        size_t done = 0;

        while (done < wrapped->output_len) {
                ssize_t n = write(wrapped->fd, wrapped->output + done, wrapped->output_len - done);

                if (n < 0 && errno != EINTR)
                        break;
                done += n > 0 ? (size_t)n : 0;
        }
        wrapped->output_len -= done;
        return wrapped->output_len == 0 ? 0 : -1;
}

/* Take what stdio writes: wrap each line when it is complete. */
static ssize_t
on_write(void *cookie, const char *bytes, size_t size)
{
        struct wrapped *wrapped = cookie;
        const char *newline, *line;

        if (size == 0)
                return 0;
        append(&wrapped->line, &wrapped->len, &wrapped->size, bytes, size);
        for (line = wrapped->line; (newline = memchr(line, '\n', wrapped->len)) != NULL; line = newline + 1) {
                put_line(wrapped, line, (size_t)(newline - line));
                wrapped->len -= (size_t)(newline + 1 - line);
        }
        memmove(wrapped->line, line, wrapped->len);
        if (wrapped->len > 0 && wrapped->line[0] == '\r') {
                put_passing(wrapped, wrapped->line, wrapped->len);
                wrapped->len = 0;
        }
        return write_output(wrapped) == 0 ? (ssize_t)size : 0;
}

/* At the exit: write what does not end with a newline. */
static void
finish(void)
{
        struct wrapped *const both[] = {&out, &err};

        for (size_t i = 0; i < ARRAY_LEN(both); i++) {
                FILE *stream = both[i]->stream;

                if (stream == NULL)
                        continue;
                (void)fflush(stream);
                flockfile(stream); /* threads of librdkafka may log */
                put(both[i], both[i]->line, both[i]->len);
                (void)write_output(both[i]);
                free(both[i]->line);
                free(both[i]->output);
                *both[i] = (struct wrapped){.fd = both[i]->fd};
                funlockfile(stream);
        }
}

/* Replace a stream of stdio by one that wraps. */
static void
begin(struct wrapped *wrapped, FILE **stream, int mode)
{
        static int is_registered;
        const cookie_io_functions_t functions = {.write = on_write};

        if (wrapped->stream != NULL || !isatty(wrapped->fd))
                return;
        (void)fflush(*stream);
        wrapped->stream = fopencookie(wrapped, "w", functions);
        if (wrapped->stream == NULL)
                return;
        (void)setvbuf(wrapped->stream, NULL, mode, mode == _IONBF ? 0 : BUFSIZ);
        *stream = wrapped->stream;
        if (!is_registered)
                is_registered = atexit(finish) == 0;
}

void
wrap_stdout(void)
{
        begin(&out, &stdout, _IOLBF);
}

void
wrap_stderr(void)
{
        begin(&err, &stderr, _IONBF);
        if (err.stream != NULL)
                log_use_stream();
}

size_t
wrap_width(void)
{
        return out.stream == NULL ? 0 : width_of(out.fd);
}

const char *
wrap_mark(void)
{
        static const char mark[] = {MARK, '\0'};

        return out.stream == NULL ? "" : mark;
}

static int
is_wrapped(const FILE *stream)
{
        return stream != NULL && (stream == out.stream || stream == err.stream);
}

void
wrap_print(FILE *stream, const char *text, size_t column, size_t indent)
{
        if (is_wrapped(stream)) {
                fputc(column == indent ? MARK : ' ', stream);
                text_print(stream, text, strlen(text));
                fputc('\n', stream);
                return;
        }
        for (const char *word = text + strspn(text, " "); *word != '\0'; word += strspn(word, " ")) {
                size_t len = strcspn(word, " ");

                if (column > indent && column + 1 + len > LINE_WIDTH) {
                        fprintf(stream, "\n%*s", (int)indent, "");
                        column = indent;
                } else if (column > indent) {
                        fputc(' ', stream);
                        column++;
                }
                text_print(stream, word, len);
                column += len;
                word += len;
        }
        fputc('\n', stream);
}

void
wrap_print_first(const char *text, size_t column, size_t others)
{
        size_t width = wrap_width();

        if (width > 0 && column + 1 + others > width)
                column = width > others + INDENT ? width - others - 1 : INDENT;
        printf("%-*s ", (int)column, text);
        if (width > 0 && strlen(text) > column)
                printf("\n%*s ", (int)column, "");
}
