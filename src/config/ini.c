#include "config/ini.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "base/mem.h"
#include "base/text.h"
#include "config/secrets.h"

#define FILE_MAX (1 << 20)
#define ENTRIES_MAX 10000 /* each is compared with all before it, and a reload must not take minutes */

/* The position in the file. */
struct reader {
        struct ini *ini;
        struct problems *problems;
        size_t line;
        char *section; /* NULL before the first header */
        char *argument;
        int skipping; /* the header is invalid; skip its options without reporting them */
};

static int
is_space(char c)
{
        return c == ' ' || c == '\t';
}

static struct ini_entry *
add_entry(struct reader *reader)
{
        struct ini *ini = reader->ini;
        struct ini_entry *entry;

        if ((ini->n & (ini->n - 1)) == 0) /* full: 0, or a power of two */
                ini->entries = mem_resize(ini->entries, ini->n == 0 ? 1 : 2 * ini->n, sizeof(*entry));
        entry = &ini->entries[ini->n++];
        *entry = (struct ini_entry){.line = reader->line,
                                    .section = mem_strdup(reader->section),
                                    .argument = mem_strdup(reader->argument)};
        return entry;
}

/* Cut off an inline comment, and white space or quotes around the rest. Return the beginning of the rest. */
static char *
trim(char *text)
{
        char *end;

        while (is_space(*text))
                text++;
        for (end = *text == '"' ? strchr(text + 1, '"') : NULL; end != NULL; end = strchr(end + 1, '"')) {
                const char *rest = end + 1 + strspn(end + 1, " \t");

                if (*rest == '\0' || (*rest == ';' && is_space(end[1]))) {
                        *end = '\0';
                        return text + 1;
                }
        }
        for (end = text; *end != '\0' && !(*end == ';' && (end == text || is_space(end[-1]))); end++)
                ;
        *end = '\0';
        while (end > text && is_space(end[-1]))
                *--end = '\0';
        return text;
}

static void
set_section(struct reader *reader, const char *name, size_t len, const char *argument)
{
        free(reader->section);
        free(reader->argument);
        reader->section = mem_strndup(name, len);
        reader->argument = mem_strdup(argument);
        reader->skipping = 0;
        (void)add_entry(reader);
}

static void
read_header(struct reader *reader, char *text)
{
        char *end = strchr(text, ']');
        size_t len;

        reader->skipping = 1;
        if (end == NULL) {
                problems_add(reader->problems, reader->line, "the section header has no closing ]");
                return;
        }
        if (*trim(end + 1) != '\0') {
                problems_add(reader->problems, reader->line, "nothing may follow the ] of a section header");
                return;
        }
        *end = '\0';
        text = trim(text + 1);
        len = strcspn(text, " \t");
        if (len == 0) {
                problems_add(reader->problems, reader->line, "a section needs a name");
                return;
        }
        set_section(reader, text, len, text + len + strspn(text + len, " \t"));
}

static void
read_option(struct reader *reader, char *text)
{
        char *equals = strchr(text, '='), *end;
        struct ini_entry *entry;

        if (equals == NULL || equals == text) {
                problems_add(reader->problems, reader->line, "expected [section] or option = value");
                return;
        }
        if (reader->section == NULL && !reader->skipping) {
                problems_add(reader->problems, reader->line, "option before the first [section]");
                return;
        }
        if (reader->skipping)
                return;
        for (end = equals; end > text && is_space(end[-1]); end--)
                ;
        *end = '\0';
        entry = add_entry(reader);
        entry->name = mem_strdup(text);
        entry->value = mem_strdup(trim(equals + 1));
}

static void
read_line(struct reader *reader, char *text)
{
        while (is_space(*text))
                text++;
        if (*text == '[')
                read_header(reader, text);
        else if (*text != '\0' && *text != '#' && *text != ';')
                read_option(reader, text);
}

/* Return why a line is not text, or NULL. */
static const char *
line_fault(const char *text, size_t len)
{
        if (memchr(text, '\0', len) != NULL)
                return "the line has a NUL byte; is this a text file?";
        if (len > INI_LINE_MAX)
                return "the line is longer than 4096 bytes";
        for (size_t i = 0; i < len; i++) {
                if (((unsigned char)text[i] < 0x20 && text[i] != '\t') || text[i] == 0x7f)
                        return "the line has a control character";
        }
        return text_is_utf8(text, len) ? NULL : "the line is not UTF-8; save the file as UTF-8";
}

static void
read_raw_line(struct reader *reader, const char *text, size_t len)
{
        char line[INI_LINE_MAX + 1];
        const char *fault;

        if (len > 0 && text[len - 1] == '\r')
                len--;
        if (reader->line == 1 && len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
                problems_add(reader->problems, 1,
                             "the file begins with a byte order mark; save it as UTF-8 without one");
                text += 3;
                len -= 3;
        }
        fault = line_fault(text, len);
        if (fault != NULL) {
                problems_add(reader->problems, reader->line, "%s", fault);
                return;
        }
        memcpy(line, text, len);
        line[len] = '\0';
        read_line(reader, line);
        OPENSSL_cleanse(line, len);
}

void
ini_parse(const char *text, size_t len, struct ini *ini, struct problems *problems)
{
        struct reader reader = {.ini = ini, .problems = problems};
        const char *end = text + len;

        memset(ini, 0, sizeof(*ini));
        while (text < end) {
                const char *eol = memchr(text, '\n', (size_t)(end - text));
                const char *stop = eol == NULL ? end : eol;

                reader.line++;
                read_raw_line(&reader, text, (size_t)(stop - text));
                text = stop + 1;
        }
        free(reader.section);
        free(reader.argument);
}

static int
fail(struct problems *problems, const char *reason)
{
        problems_add(problems, 0, "%s", reason);
        return -1;
}

int
ini_read_file(const char *file, struct ini *ini, struct problems *problems)
{
        int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* do not block on a FIFO */
        FILE *in = fd < 0 ? NULL : fdopen(fd, "r");
        struct stat st;
        char *text;
        size_t len;
        int failed;

        if (in == NULL) {
                (void)fail(problems, strerror(errno));
                if (fd >= 0)
                        (void)close(fd);
                return -1;
        }
        if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
                (void)fclose(in);
                return fail(problems, "is not a regular file");
        }
        (void)setvbuf(in, NULL, _IONBF, 0); /* leave no secret in a buffer */
        text = mem_alloc(FILE_MAX + 1);
        len = fread(text, 1, FILE_MAX + 1, in);
        failed = ferror(in);
        (void)fclose(in);
        if (!failed && len <= FILE_MAX)
                ini_parse(text, len, ini, problems);
        ini->mode = st.st_mode;
        secrets_free(text, len);
        if (failed)
                return fail(problems, "cannot be read");
        if (len > FILE_MAX)
                return fail(problems, "is larger than 1MiB");
        if (ini->n > ENTRIES_MAX)
                return fail(problems, "has more than 10000 section headers and options");
        if (ini->n == 0 && problems->n == 0)
                return fail(problems, "is empty; start from the sample gatepost.conf");
        return 0;
}

void
ini_clear(struct ini *ini)
{
        for (size_t i = 0; i < ini->n; i++) {
                struct ini_entry *entry = &ini->entries[i];

                if (entry->value != NULL)
                        OPENSSL_cleanse(entry->value, strlen(entry->value));
                free(entry->section);
                free(entry->argument);
                free(entry->name);
                free(entry->value);
        }
        free(ini->entries);
        memset(ini, 0, sizeof(*ini));
}
