#include "metrics/status_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/text.h"

char *
status_writer_copy(struct status_writer *writer, const char *text)
{
        char *copy = NULL;
        size_t len;
        FILE *out = open_memstream(&copy, &len);

        if (out != NULL)
                text_print(out, text, strlen(text));
        if (out != NULL && fclose(out) == 0)
                return copy;
        free(copy);
        writer->has_failed = 1;
        return NULL;
}

void
status_writer_text(struct status_writer *writer, const char *name, const char *text)
{
        char *copy = status_writer_copy(writer, text);

        json_member(writer->json, name, copy);
        free(copy);
}

void
status_writer_count(struct status_writer *writer, const char *name, uint64_t count)
{
        json_number(writer->json, name, (int64_t)count);
}

void
status_writer_time(struct status_writer *writer, const char *name, uint64_t time_s)
{
        if (time_s == 0)
                json_null(writer->json, name);
        else
                status_writer_count(writer, name, time_s);
}

void
status_writer_fraction(struct status_writer *writer, const char *name, double value)
{
        char text[32];

        (void)snprintf(text, sizeof(text), "%.9g", value);
        json_literal(writer->json, name, text);
}

void
status_writer_figures(struct status_writer *writer, const struct histogram_scale *scale,
                      const struct histogram_figures *figures)
{
        static const struct {
                const char *name;
                double q;
        } quantiles[] = {{"p50", 0.5}, {"p99", 0.99}};

        json_number(writer->json, "count", (int64_t)figures->count);
        for (size_t i = 0; i < ARRAY_LEN(quantiles); i++) {
                if (figures->count == 0)
                        json_null(writer->json, quantiles[i].name);
                else
                        status_writer_fraction(writer, quantiles[i].name,
                                               histogram_quantile(scale, figures, quantiles[i].q));
        }
}
