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
        struct findings *findings;
        size_t line;
        char *section; /* NULL before the first header */
        char *argument;
        int skipping; /* the header is invalid; skip its options without reporting them */
};

/* The file is added later, by the caller. */
static void
report(struct reader *reader, const char *text)
{
        findings_add(reader->findings, FINDING_ERROR, NULL, "%s", text)->line = reader->line;
}

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

/* Cut off white space at both ends. Return the beginning. */
static char *
trim(char *text)
{
        char *end;

        while (is_space(*text))
                text++;
        for (end = text + strlen(text); end > text && is_space(end[-1]); end--)
                ;
        *end = '\0';
        return text;
}

/* Whether a text, such as what follows a quoted value, is empty or a comment. */
static int
is_comment(const char *text)
{
        text += strspn(text, " \t");
        return *text == '\0' || *text == '#' || *text == ';';
}

/* Return whether a value without quotes contains what its writer may have meant as a comment. */
static int
seems_commented(const char *value)
{
        for (const char *c = value; *c != '\0'; c++) {
                if ((*c == '#' || *c == ';') && (c == value || is_space(c[-1])))
                        return 1;
        }
        return 0;
}

/* Return the value of a trimmed text, without its quotes; set *fault to its fault, or to NULL. */
static char *
read_value(char *text, const char **fault)
{
        size_t len = strlen(text);

        *fault = NULL;
        if (*text == '"') {
                for (char *end = strchr(text + 1, '"'); end != NULL; end = strchr(end + 1, '"')) {
                        if (end[1] == '\0' || (is_space(end[1]) && is_comment(end + 1))) {
                                *end = '\0';
                                return text + 1;
                        }
                }
                *fault = "the value has no closing quote";
        } else if (seems_commented(text)) {
                *fault = "a value with # or ; needs double quotes, and a comment a line of its own";
        } else if (len > 1 && *text == '\'' && text[len - 1] == '\'') {
                *fault = "single quotes would belong to the value, unlike double quotes";
        }
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
                report(reader, "the section header has no closing ]");
                return;
        }
        if (!is_comment(end + 1)) {
                report(reader, "nothing may follow the ] of a section header");
                return;
        }
        *end = '\0';
        text = trim(text + 1);
        len = strcspn(text, " \t");
        if (len == 0) {
                report(reader, "a section needs a name");
                return;
        }
        set_section(reader, text, len, text + len + strspn(text + len, " \t"));
}

static void
read_option(struct reader *reader, char *text)
{
        char *equals = strchr(text, '=');
        struct ini_entry *entry;

        if (equals == NULL || equals == text) {
                report(reader, "expected [section] or option = value");
                return;
        }
        if (reader->section == NULL && !reader->skipping) {
                report(reader, "option before the first [section]");
                return;
        }
        if (reader->skipping)
                return;
        *equals = '\0';
        entry = add_entry(reader);
        entry->name = mem_strdup(trim(text));
        entry->value = mem_strdup(read_value(trim(equals + 1), &entry->fault));
}

static void
read_line(struct reader *reader, char *text)
{
        text = trim(text);
        if (*text == '[')
                read_header(reader, text);
        else if (!is_comment(text))
                read_option(reader, text);
}

/* Return why a line is not text, or NULL. */
static const char *
line_fault(const char *text, size_t len)
{
        if (memchr(text, '\0', len) != NULL)
                return "the line has a NUL byte";
        if (len > INI_LINE_MAX)
                return "the line is longer than 4096 bytes";
        for (size_t i = 0; i < len; i++) {
                if (((unsigned char)text[i] < 0x20 && text[i] != '\t') || text[i] == 0x7f)
                        return "the line has a control character";
        }
        return text_is_utf8(text, len) ? NULL : "the line is not valid UTF-8";
}

static void
read_raw_line(struct reader *reader, const char *text, size_t len)
{
        char line[INI_LINE_MAX + 1];
        const char *fault;

        if (len > 0 && text[len - 1] == '\r')
                len--;
        fault = line_fault(text, len);
        if (fault != NULL) {
                report(reader, fault);
                return;
        }
        memcpy(line, text, len);
        line[len] = '\0';
        read_line(reader, line);
        OPENSSL_cleanse(line, len);
}

void
ini_parse(const char *text, size_t len, struct ini *ini, struct findings *findings)
{
        struct reader reader = {.ini = ini, .findings = findings};
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
fail(struct findings *findings, const char *reason)
{
        findings_add(findings, FINDING_ERROR, NULL, "%s", reason);
        return -1;
}

int
ini_read_file(const char *file, struct ini *ini, struct findings *findings)
{
        int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* do not block on a FIFO */
        FILE *in = fd < 0 ? NULL : fdopen(fd, "r");
        struct stat st;
        char *text;
        size_t len;
        int failed;

        if (in == NULL) {
                int why = errno;

                finding_set_access_remedy(findings_add(findings, FINDING_ERROR, NULL, "%s", strerror(why)),
                                          file, why);
                if (fd >= 0)
                        (void)close(fd);
                return -1;
        }
        if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
                (void)fclose(in);
                return fail(findings, "is not a regular file");
        }
        (void)setvbuf(in, NULL, _IONBF, 0); /* leave no secret in a buffer */
        text = mem_alloc(FILE_MAX + 1);
        len = fread(text, 1, FILE_MAX + 1, in);
        failed = ferror(in);
        (void)fclose(in);
        if (!failed && len <= FILE_MAX)
                ini_parse(text, len, ini, findings);
        ini->st = st;
        secrets_free(text, len);
        if (failed)
                return fail(findings, "cannot be read");
        if (len > FILE_MAX)
                return fail(findings, "is larger than 1MiB");
        if (ini->n > ENTRIES_MAX)
                return fail(findings, "has more than 10000 section headers and options");
        if (ini->n == 0 && findings_count(findings, FINDING_ERROR) == 0)
                return fail(findings, "is empty");
        return 0;
}

size_t
ini_line(const struct ini *ini, const char *section, const char *argument, const char *name)
{
        for (size_t i = 0; i < ini->n; i++) {
                const struct ini_entry *entry = &ini->entries[i];

                if (strcmp(entry->section, section) != 0 || strcmp(entry->argument, argument) != 0)
                        continue;
                if (name == NULL ? entry->name == NULL
                                 : entry->name != NULL && strcmp(entry->name, name) == 0)
                        return entry->line;
        }
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
