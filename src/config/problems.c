#include "config/problems.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

static void
add(struct problems *problems, enum problem_level level, size_t line, const char *format, va_list args)
{
        char text[1024];

        (void)vsnprintf(text, sizeof(text), format, args);
        problems->items = mem_resize(problems->items, problems->n + 1, sizeof(struct problem));
        problems->items[problems->n++] =
            (struct problem){.level = level, .line = line, .text = mem_strdup(text)};
        problems->n_errors += level == PROBLEM_ERROR;
}

void
problems_add(struct problems *problems, size_t line, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        add(problems, PROBLEM_ERROR, line, format, args);
        va_end(args);
}

void
problems_warn(struct problems *problems, size_t line, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        add(problems, PROBLEM_WARNING, line, format, args);
        va_end(args);
}

char *
problems_text(const char *file, const struct problem *problem)
{
        const char *level = problem->level == PROBLEM_WARNING ? "warning: " : "";

        return problem->line == 0 ? mem_printf("%s: %s%s", file, level, problem->text)
                                  : mem_printf("%s:%zu: %s%s", file, problem->line, level, problem->text);
}

void
problems_print(const char *file, const struct problem *problem)
{
        char *line = problems_text(file, problem);

        text_print(stderr, line, strlen(line));
        fputc('\n', stderr);
        free(line);
}

void
problems_print_error(const char *file, const struct problem *problem)
{
        if (problem->level == PROBLEM_ERROR)
                problems_print(file, problem);
}

size_t
problems_report_all(struct problems *problems)
{
        /* Insertion sort: the list is short, nearly sorted, and equal lines keep their order. */
        for (size_t i = 1; i < problems->n; i++) {
                const struct problem problem = problems->items[i];
                size_t k = i;

                for (; k > 0 && problems->items[k - 1].line > problem.line; k--)
                        problems->items[k] = problems->items[k - 1];
                problems->items[k] = problem;
        }
        for (size_t i = 0; i < problems->n; i++)
                (problems->report == NULL ? problems_print_error : problems->report)(problems->file,
                                                                                     &problems->items[i]);
        return problems->n_errors;
}

void
problems_clear(struct problems *problems)
{
        for (size_t i = 0; i < problems->n; i++)
                free(problems->items[i].text);
        free(problems->items);
        problems->items = NULL;
        problems->n = 0;
        problems->n_errors = 0;
}
