#include "config/ini.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/unit.h"
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

/* Whether a value is written as a shell's variable: $NAME, or with ${NAME} in it. */
static int
is_variable(const char *value)
{
        return strstr(value, "${") != NULL ||
               (value[0] == '$' && value[1] != '\0' &&
                value[1 + strspn(value + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] == '\0');
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
        } else if (*text == '=' || (*text == '>' && is_space(text[1]))) {
                *fault = "an option is written as name = value, with one =; if the value begins with this "
                         "character, put the value in double quotes";
        } else if (seems_commented(text)) {
                *fault =
                    "a comment needs a line of its own; if the # or ; belongs to the value, put the value in "
                    "double quotes";
        } else if (len > 1 && *text == '\'' && text[len - 1] == '\'') {
                *fault = "single quotes would belong to the value; use double quotes";
        } else if (len > 0 && text[len - 1] == '\\') {
                *fault = "a value does not continue on the next line; write it on one line";
        } else if (is_variable(text)) {
                *fault = "variables are not replaced; write the value itself (a secret belongs in a file: "
                         "secret_file, sasl.password_file, api_key_file)";
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
                problems_add(reader->problems, reader->line, "the section header has no closing ]");
                return;
        }
        if (!is_comment(end + 1)) {
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

/* Return whether the text begins with this word. */
static int
begins_with(const char *text, const char *word)
{
        size_t len = strlen(word);

        return strncmp(text, word, len) == 0 && (text[len] == '\0' || is_space(text[len]));
}

/* Say what is wrong with a line that is neither a header nor an option. The line may be a secret. */
static void
report_stray(struct reader *reader, const char *text, int is_indented)
{
        size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz_.");
        const char *hint = "";

        if (begins_with(text, "include") || begins_with(text, "!include"))
                hint = "; there is no include, the configuration is one file";
        else if (len > 0 && text[len] == ':' && (is_space(text[len + 1]) || text[len + 1] == '\0'))
                hint = ", not option: value";
        else if (is_indented)
                hint = "; a value does not continue on the next line, so write it on one line";
        problems_add(reader->problems, reader->line, "expected [section] or option = value%s", hint);
}

static void
read_option(struct reader *reader, char *text, int is_indented)
{
        char *equals = strchr(text, '=');
        struct ini_entry *entry;

        if (equals == NULL || equals == text) {
                report_stray(reader, text, is_indented);
                return;
        }
        if (reader->section == NULL && !reader->skipping) {
                problems_add(reader->problems, reader->line, "option before the first [section]");
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
        int is_indented = is_space(*text);

        text = trim(text);
        if (*text == '[')
                read_header(reader, text);
        else if (!is_comment(text))
                read_option(reader, text, is_indented);
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

/* Say why a file cannot be opened and, if its group may read it, which group that is. */
static void
report_closed(struct problems *problems, const char *file, int why)
{
        struct group group, *found = NULL;
        char buffer[4096];
        struct stat st;

        if (why == EACCES && stat(file, &st) == 0 && (st.st_mode & S_IRGRP) && st.st_gid != 0 &&
            getgrgid_r(st.st_gid, &group, buffer, sizeof(buffer), &found) == 0 && found != NULL)
                problems_add(
                    problems, 0,
                    "%s; the group %s may read it: become a member (adduser USER %s, then log in again), "
                    "or run the command as a user who is one",
                    strerror(why), group.gr_name, group.gr_name);
        else
                problems_add(problems, 0, "%s%s", strerror(why), unit_remedy(file, why));
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
                report_closed(problems, file, errno);
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
        ini->st = st;
        secrets_free(text, len);
        if (failed)
                return fail(problems, "cannot be read");
        if (len > FILE_MAX)
                return fail(problems, "is larger than 1MiB");
        if (ini->n > ENTRIES_MAX)
                return fail(problems, "has more than 10000 section headers and options");
        if (ini->n == 0 && problems->n_errors == 0)
                return fail(problems, "is empty; start from the sample gatepost.conf");
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
ini_locate(const struct ini *ini, struct problem *problem)
{
        for (size_t i = 0; i < ini->n && ini->entries[i].line <= problem->line; i++) {
                const struct ini_entry *entry = &ini->entries[i];

                problem->section = entry->section;
                problem->argument = *entry->argument == '\0' ? NULL : entry->argument;
                problem->option = entry->line == problem->line ? entry->name : NULL;
        }
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
