#include "cli/doctor.h"

#include <langinfo.h>
#include <locale.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/terminal.h"

#define ERASE_LINE "\r\033[K"
#define DETAIL_SIZE 2400
#define WAITING_COLUMNS 60
#define LOOK_MS 100  /* for an interrupt */
#define GRACE_MS 400 /* for the present step to end by itself, and again for the output */

/* Protects the report, which both the check-up and an interrupt may end. Whoever ends it prints last. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int is_ended;

static const struct {
        const char *name;
        const char *tick;
        const char *word;
        enum terminal_colour colour;
} results[DOCTOR_N_RESULTS] = {
    [DOCTOR_OK] = {"ok", "\xe2\x9c\x93", "ok  ", TERMINAL_GREEN},
    [DOCTOR_NOTE] = {"note", "\xe2\x80\xa2", "note", TERMINAL_BLUE},
    [DOCTOR_WARNING] = {"warning", "!", "warn", TERMINAL_BOLD},
    [DOCTOR_FAILED] = {"failed", "\xe2\x9c\x97", "FAIL", TERMINAL_RED},
    [DOCTOR_SKIPPED] = {"skipped", "-", "skip", TERMINAL_FAINT},
};

/* Whether the person's locale can show the ticks. */
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

static void finish(struct doctor_report *report);

/*
 * End the process soon after an interrupt, wherever the check-up is: many of its steps wait for some seconds
 * in a library that knows no interrupts.
 */
static void *
watch_for_interrupts(void *arg)
{
        struct doctor_report *report = arg;
        struct timespec until;

        while (!terminal_is_interrupted())
                clock_sleep_ms(LOOK_MS);
        clock_sleep_ms(GRACE_MS);
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 1;
        if (pthread_mutex_timedlock(&mutex, &until) != 0)
                _exit(EX_TEMPFAIL); /* nobody reads the output */
        if (!is_ended) {
                finish(report);
                _exit(fflush(stdout) == 0 ? report->status : EX_IOERR);
        }
        pthread_mutex_unlock(&mutex);
        return NULL;
}

static void
start_watch(struct doctor_report *report)
{
        pthread_t thread;

        if (pthread_create(&thread, NULL, watch_for_interrupts, report) == 0)
                (void)pthread_detach(thread);
}

void
doctor_report_begin(struct doctor_report *report, const char *file, int as_json)
{
        const char *term = getenv("TERM");

        *report = (struct doctor_report){.has_ticks = is_utf8(),
                                         .unit = command_unit(file),
                                         .command = config_command(file)};
        report->shows_waiting =
            !as_json && isatty(STDOUT_FILENO) && term != NULL && strcmp(term, "dumb") != 0;
        if (as_json) {
                report->json = json_new(1);
                json_open_object(report->json, NULL);
                json_open_array(report->json, "steps");
        }
        terminal_catch_interrupts();
        start_watch(report);
}

static void
print(const char *text)
{
        text_print(stdout, text, strlen(text));
}

/* Return how many bytes of a text are safe on a terminal and fit into so many columns. */
static size_t
fitting(const char *text, size_t columns)
{
        size_t len = 0;

        for (size_t n; text[len] != '\0' && columns > 0; columns--) {
                n = text_printable(text + len, strlen(text + len));
                if (n == 0)
                        break;
                len += n;
        }
        return len;
}

void
doctor_begin(struct doctor *doctor, const char *name, const char *subject, ...)
{
        struct doctor_report *report = &doctor->report;
        va_list args;

        pthread_mutex_lock(&mutex);
        report->name = name;
        report->is_open = 1;
        report->began_ms = clock_monotonic_ms();
        va_start(args, subject);
        (void)vsnprintf(report->subject, sizeof(report->subject), subject, args);
        va_end(args);
        /* On one line of the terminal, which is erased. */
        if (report->shows_waiting) {
                printf(ERASE_LINE "%s %s %.*s", report->has_ticks ? "\xe2\x80\xa6" : "...", name,
                       (int)fitting(report->subject, WAITING_COLUMNS), report->subject);
                (void)fflush(stdout);
        }
        pthread_mutex_unlock(&mutex);
}

static void
put_json(struct doctor_report *report, enum doctor_result result, const char *detail)
{
        struct json_writer *json = report->json;

        json_open_object(json, NULL);
        json_member(json, "name", report->name);
        json_bytes(json, "subject", report->subject, strlen(report->subject));
        json_member(json, "result", results[result].name);
        json_bytes(json, "detail", detail, strlen(detail));
        json_number(json, "milliseconds", clock_monotonic_ms() - report->began_ms);
        json_close_object(json);
}

/* Remember which steps have warned, for the last line. */
static void
note_warning(struct doctor_report *report)
{
        char *longer;

        if (report->warned != NULL && strcmp(report->warned_last, report->name) == 0)
                return;
        longer = mem_printf("%s%s%s", report->warned == NULL ? "" : report->warned,
                            report->warned == NULL ? "" : ", ", report->name);
        free(report->warned);
        report->warned = longer;
        report->warned_last = report->name;
}

/* End the present result. The caller holds the mutex. */
static void
end_as(struct doctor_report *report, enum doctor_result result, const char *text)
{
        report->is_open = 0;
        report->n_results[result]++;
        if (result == DOCTOR_FAILED && report->cause == NULL)
                report->cause = mem_printf("%s%s%s: %s", report->name, *report->subject == '\0' ? "" : " ",
                                           report->subject, text);
        if (result == DOCTOR_WARNING)
                note_warning(report);
        if (report->json != NULL) {
                put_json(report, result, text);
                return;
        }
        printf("%s%s%s%s %s%s", report->shows_waiting ? ERASE_LINE : "",
               terminal_colour(results[result].colour),
               report->has_ticks ? results[result].tick : results[result].word,
               terminal_colour(TERMINAL_DEFAULT), report->name, *report->subject == '\0' ? "" : " ");
        print(report->subject);
        if (*text != '\0')
                printf(": ");
        print(text);
        putchar('\n');
        (void)fflush(stdout);
}

/* Write a text for each mark in another one. */
static void
replace(char text[DETAIL_SIZE], const char *from, const char *mark, const char *by)
{
        const char *at;
        size_t len = 0;

        text[0] = '\0';
        while ((at = strstr(from, mark)) != NULL && len < DETAIL_SIZE) {
                len += (size_t)snprintf(text + len, DETAIL_SIZE - len, "%.*s%s", (int)(at - from), from, by);
                from = at + strlen(mark);
        }
        if (len < DETAIL_SIZE)
                (void)snprintf(text + len, DETAIL_SIZE - len, "%s", from);
}

static void
format(const struct doctor_report *report, char text[DETAIL_SIZE], const char *pattern, va_list args)
{
        char formatted[DETAIL_SIZE], half[DETAIL_SIZE];

        (void)vsnprintf(formatted, sizeof(formatted), pattern, args);
        replace(half, formatted, "@UNIT@", report->unit);
        replace(text, half, "@GATEPOST@", report->command);
}

static void
end(struct doctor_report *report, enum doctor_result result, const char *detail, va_list args)
{
        char text[DETAIL_SIZE];

        format(report, text, detail, args);
        end_as(report, result, text);
}

static void
end_locked(struct doctor_report *report, enum doctor_result result, const char *detail, va_list args)
{
        pthread_mutex_lock(&mutex);
        end(report, result, detail, args);
        pthread_mutex_unlock(&mutex);
}

void
doctor_pass(struct doctor *doctor, const char *detail, ...)
{
        va_list args;

        va_start(args, detail);
        end_locked(&doctor->report, DOCTOR_OK, detail, args);
        va_end(args);
}

void
doctor_note(struct doctor *doctor, const char *detail, ...)
{
        va_list args;

        va_start(args, detail);
        end_locked(&doctor->report, DOCTOR_NOTE, detail, args);
        va_end(args);
}

void
doctor_warn(struct doctor *doctor, const char *detail, ...)
{
        va_list args;

        va_start(args, detail);
        end_locked(&doctor->report, DOCTOR_WARNING, detail, args);
        va_end(args);
}

void
doctor_skip(struct doctor *doctor, const char *detail, ...)
{
        va_list args;

        va_start(args, detail);
        end_locked(&doctor->report, DOCTOR_SKIPPED, detail, args);
        va_end(args);
}

void
doctor_fail(struct doctor *doctor, int status, const char *detail, ...)
{
        struct doctor_report *report = &doctor->report;
        va_list args;

        pthread_mutex_lock(&mutex);
        if (report->status == 0)
                report->status = status;
        report->has_remedy = report->cause != NULL;
        va_start(args, detail);
        end(report, DOCTOR_FAILED, detail, args);
        va_end(args);
        pthread_mutex_unlock(&mutex);
}

void
doctor_remedy(struct doctor *doctor, const char *remedy, ...)
{
        struct doctor_report *report = &doctor->report;
        char text[DETAIL_SIZE];
        va_list args;

        if (report->has_remedy)
                return; /* of a later failure, which may only follow from the first */
        report->has_remedy = 1;
        va_start(args, remedy);
        format(report, text, remedy, args);
        va_end(args);
        pthread_mutex_lock(&mutex);
        report->remedy = mem_strdup(text);
        pthread_mutex_unlock(&mutex);
}

void
doctor_fail_as(struct doctor *doctor, int status, const char *text)
{
        static const char *const marks[] = {"; create it: ", "; make one: ", "; correct it: ", "; fix it: ",
                                            "; remove it: "};
        const char *at = NULL;
        size_t i = 0;

        while (i < ARRAY_LEN(marks) && (at = strstr(text, marks[i])) == NULL)
                i++;
        if (at == NULL || doctor->report.n_results[DOCTOR_FAILED] > 0) {
                doctor_fail(doctor, status, "%s", text);
                return;
        }
        doctor_fail(doctor, status, "%.*s", (int)(at - text), text);
        doctor_remedy(doctor, "%s", at + strlen(marks[i]));
}

void
doctor_blame(struct doctor *doctor)
{
        struct doctor_report *report = &doctor->report;

        if (report->suspect == NULL || report->cause != NULL)
                return;
        doctor_remedy(doctor,
                      "%s%s, correct %s, and then: systemctl start @UNIT@; if it does not start: journalctl "
                      "-u @UNIT@",
                      report->suspect_remedy,
                      report->n_suspects > 1 ? " (and see the other such warnings)" : "", doctor->file);
        pthread_mutex_lock(&mutex);
        report->cause = mem_strdup(report->suspect);
        pthread_mutex_unlock(&mutex);
}

static void
print_json(struct doctor_report *report)
{
        json_close_array(report->json);
        if (report->cause == NULL)
                json_null(report->json, "cause");
        else
                json_bytes(report->json, "cause", report->cause, strlen(report->cause));
        if (report->remedy == NULL)
                json_null(report->json, "remedy");
        else
                json_bytes(report->json, "remedy", report->remedy, strlen(report->remedy));
        json_close_object(report->json);
        json_print(report->json);
}

static void
print_count(const struct doctor_report *report, enum doctor_result result, const char *what)
{
        size_t n = report->n_results[result];

        if (n > 0)
                printf(", %zu %s%s", n, what, n == 1 || result == DOCTOR_SKIPPED ? "" : "s");
}

/* Print the last line. The caller holds the mutex. */
static void
finish(struct doctor_report *report)
{
        is_ended = 1;
        if (report->is_open && terminal_is_interrupted())
                end_as(report, DOCTOR_SKIPPED, "interrupted");
        if (terminal_is_interrupted() && report->cause == NULL) {
                report->cause = mem_strdup("interrupted before the end");
                report->remedy = mem_strdup("run it again");
                report->status = EX_TEMPFAIL;
        }
        if (report->json != NULL) {
                print_json(report);
        } else if (report->cause == NULL) {
                if (report->warned == NULL)
                        printf("\nno trouble found: %zu ok", report->n_results[DOCTOR_OK]);
                else
                        printf("\nnothing failed, but look at the warnings (%s): %zu ok", report->warned,
                               report->n_results[DOCTOR_OK]);
                print_count(report, DOCTOR_NOTE, "note");
                print_count(report, DOCTOR_WARNING, "warning");
                print_count(report, DOCTOR_SKIPPED, "skipped");
                putchar('\n');
        } else {
                printf("\ncause: ");
                print(report->cause);
                printf("; remedy: ");
                print(report->remedy == NULL ? "see gatepost-guide(7)" : report->remedy);
                putchar('\n');
        }
}

int
doctor_report_end(struct doctor_report *report)
{
        pthread_mutex_lock(&mutex);
        finish(report);
        pthread_mutex_unlock(&mutex);
        free(report->warned);
        free(report->cause);
        free(report->remedy);
        free(report->suspect);
        free(report->suspect_remedy);
        free(report->unit);
        free(report->command);
        return report->status;
}
