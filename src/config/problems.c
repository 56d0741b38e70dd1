#include "config/problems.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

void
problems_add(struct problems *problems, size_t line, const char *format, ...)
{
        char text[1024];
        va_list args;

        va_start(args, format);
        (void)vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        problems->items = mem_resize(problems->items, problems->n + 1, sizeof(struct problem));
        problems->items[problems->n++] = (struct problem){line, mem_strdup(text)};
}

static void
print(const char *file, size_t line, const char *text)
{
        if (line == 0)
                fprintf(stderr, "%s: %s\n", file, text);
        else
                fprintf(stderr, "%s:%zu: %s\n", file, line, text);
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
        for (size_t i = 0; i < problems->n; i++) {
                const struct problem *problem = &problems->items[i];

                (problems->report == NULL ? print : problems->report)(problems->file, problem->line,
                                                                      problem->text);
        }
        return problems->n;
}

void
problems_clear(struct problems *problems)
{
        for (size_t i = 0; i < problems->n; i++)
                free(problems->items[i].text);
        free(problems->items);
        problems->items = NULL;
        problems->n = 0;
}
