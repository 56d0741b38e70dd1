#include "config/findings.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>

#include "base/account.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/unit.h"

static const struct {
        const char *name;
        const char *prefix; /* of a text without a step */
        const char *mark, *tick;
} levels[FINDING_N_LEVELS] = {
    [FINDING_ERROR] = {"error", "", "FAIL", "✗"},
    [FINDING_WARNING] = {"warning", "warning: ", "warn", "!"},
    [FINDING_NOTE] = {"note", "note: ", "note", "·"},
    [FINDING_PASSED] = {"passed", "", "ok", "✓"},
    [FINDING_SKIPPED] = {"skipped", "skipped: ", "skip", "-"},
};

struct finding *
findings_add(struct findings *findings, enum finding_level level, const char *subject, const char *format,
             ...)
{
        struct finding *finding;
        char text[FINDING_TEXT_SIZE];
        va_list args;

        va_start(args, format);
        (void)vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        findings->items = mem_resize(findings->items, findings->n + 1, sizeof(*finding));
        finding = &findings->items[findings->n++];
        *finding = (struct finding){.level = level,
                                    .status = level == FINDING_ERROR ? EX_CONFIG : 0,
                                    .subject = subject == NULL ? NULL : mem_strdup(subject),
                                    .text = mem_strdup(text)};
        return finding;
}

void
finding_set_remedy(struct finding *finding, const char *format, ...)
{
        va_list args;

        free(finding->remedy);
        va_start(args, format);
        finding->remedy = mem_vprintf(format, args);
        va_end(args);
}

void
finding_set_access_remedy(struct finding *finding, const char *path, int reason)
{
        struct stat st;

        if (*unit_hint(path, reason) != '\0')
                finding_set_remedy(finding, "%s", unit_hint(path, reason));
        else if (reason == EACCES && stat(path, &st) == 0 && !(st.st_mode & S_IRGRP))
                finding_set_remedy(finding, "chgrp " ACCOUNT_SERVICE_USER " %s && chmod g+r %s", path, path);
        else if (reason == EACCES)
                finding_set_remedy(finding, "run it as root, or as a user who may read %s", path);
}

size_t
findings_count(const struct findings *findings, enum finding_level level)
{
        size_t n = 0;

        for (size_t i = 0; i < findings->n; i++)
                n += findings->items[i].level == level;
        return n;
}

const struct finding *
findings_first(const struct findings *findings, enum finding_level level)
{
        for (size_t i = 0; i < findings->n; i++) {
                if (findings->items[i].level == level)
                        return &findings->items[i];
        }
        return NULL;
}

int
findings_status(const struct findings *findings)
{
        const struct finding *error = findings_first(findings, FINDING_ERROR);

        return error == NULL ? 0 : error->status;
}

void
findings_sort_by_line(struct findings *findings)
{
        /* Insertion sort: the list is short and nearly sorted. */
        for (size_t i = 1; i < findings->n; i++) {
                const struct finding finding = findings->items[i];
                size_t k = i;

                for (; k > 0 && findings->items[k - 1].line > finding.line; k--)
                        findings->items[k] = findings->items[k - 1];
                findings->items[k] = finding;
        }
}

void
findings_move(struct findings *findings, struct findings *others)
{
        if (others->n > 0) {
                findings->items =
                    mem_resize(findings->items, findings->n + others->n, sizeof(*findings->items));
                memcpy(findings->items + findings->n, others->items, others->n * sizeof(*others->items));
                findings->n += others->n;
        }
        free(others->items);
        *others = (struct findings){0};
}

void
findings_clear(struct findings *findings)
{
        for (size_t i = 0; i < findings->n; i++) {
                free(findings->items[i].subject);
                free(findings->items[i].text);
                free(findings->items[i].remedy);
        }
        free(findings->items);
        *findings = (struct findings){0};
}

/* Return whether the locale can show the ticks. */
static int
is_utf8(void)
{
        locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
        int result = 0;

        if (locale != (locale_t)0) {
                result = strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
                freelocale(locale);
        }
        return result;
}

/* Return what stands before the text, to be freed. */
static char *
describe_place(const struct finding *finding)
{
        const char *subject = finding->subject == NULL ? "" : finding->subject;
        char line[32] = "";

        if (finding->line != 0)
                (void)snprintf(line, sizeof(line), ":%zu", finding->line);
        if (finding->step == NULL)
                return mem_printf("%s%s", subject, line);
        return mem_printf("%s %s%s%s%s",
                          is_utf8() ? levels[finding->level].tick : levels[finding->level].mark,
                          finding->step, *subject == '\0' ? "" : " ", subject, line);
}

static void
print_text(FILE *out, const char *text)
{
        text_print(out, text, strlen(text));
}

void
finding_print(FILE *out, const struct finding *finding)
{
        char *place = describe_place(finding);

        print_text(out, place);
        if (*place != '\0')
                (void)fputs(": ", out);
        if (finding->step == NULL)
                (void)fputs(levels[finding->level].prefix, out);
        print_text(out, finding->text);
        (void)fputc('\n', out);
        if (finding->remedy != NULL) {
                (void)fputs("  remedy: ", out);
                print_text(out, finding->remedy);
                (void)fputc('\n', out);
        }
        free(place);
}

void
finding_put_json(struct json_writer *json, const struct finding *finding)
{
        json_open_object(json, NULL);
        json_member(json, "level", levels[finding->level].name);
        if (finding->step != NULL)
                json_member(json, "step", finding->step);
        json_member(json, "subject", finding->subject);
        if (finding->line == 0)
                json_null(json, "line");
        else
                json_number(json, "line", (int64_t)finding->line);
        json_member(json, "text", finding->text);
        json_member(json, "remedy", finding->remedy);
        if (finding->level == FINDING_ERROR)
                json_number(json, "status", finding->status);
        json_close_object(json);
}
