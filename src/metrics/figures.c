#include "metrics/figures.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "base/text.h"

void
figures_head(struct figures *to, const struct figure *figure)
{
        if (to->text != NULL && figure->name != NULL)
                fprintf(to->text, "# HELP %s %s\n# TYPE %s %s\n", figure->name, figure->help, figure->name,
                        figure->type);
}

void
figures_count(struct figures *to, const struct figure *figure, uint64_t value)
{
        figures_head(to, figure);
        if (to->text != NULL && figure->name != NULL)
                fprintf(to->text, "%s %" PRIu64 "\n", figure->name, value);
        if (figure->member != NULL)
                figures_number(to, figure->member, (int64_t)value);
}

void
figures_flag(struct figures *to, const struct figure *figure, int value)
{
        figures_head(to, figure);
        if (to->text != NULL && figure->name != NULL)
                fprintf(to->text, "%s %d\n", figure->name, value != 0);
        if (to->json != NULL && figure->member != NULL)
                json_flag(to->json, figure->member, value);
}

void
figures_moment(struct figures *to, const struct figure *figure, uint64_t ms)
{
        figures_head(to, figure);
        if (to->text != NULL && figure->name != NULL)
                fprintf(to->text, "%s %.3f\n", figure->name, (double)ms / 1000);
        if (figure->member != NULL)
                figures_time(to, figure->member, (int64_t)ms / 1000);
}

/*
 * Write the value of a label in quotes. Control characters and bytes that are not UTF-8, for which Prometheus
 * would refuse the whole text, become \xNN.
 */
static void
write_label(FILE *out, const char *value)
{
        putc('"', out);
        for (size_t len = strlen(value), n; len > 0; value += n, len -= n) {
                n = text_printable(value, len);
                if (n == 0)
                        fprintf(out, "\\\\x%02x", (unsigned char)*value);
                else if (*value == '"' || *value == '\\')
                        fprintf(out, "\\%c", *value);
                else
                        (void)fwrite(value, 1, n, out);
                n += n == 0;
        }
        putc('"', out);
}

void
figures_begin_sample(struct figures *to, const char *name, const char *const *labels)
{
        fputs(name, to->text);
        for (size_t i = 0; labels[i] != NULL; i += 2) {
                fprintf(to->text, "%c%s=", i == 0 ? '{' : ',', labels[i]);
                write_label(to->text, labels[i + 1]);
        }
        fputs("} ", to->text);
}

void
figures_sample(struct figures *to, const struct figure *figure, const char *const *labels, uint64_t value)
{
        size_t last = 0;

        if (to->text != NULL && figure->name != NULL) {
                figures_begin_sample(to, figure->name, labels);
                fprintf(to->text, "%" PRIu64 "\n", value);
        }
        while (labels[last + 1] != NULL)
                last++;
        figures_number(to, labels[last], (int64_t)value);
}

static void
write_buckets(FILE *out, const struct figure *figure, const struct histogram *histogram,
              const struct histogram_figures *figures)
{
        const struct histogram_scale *scale = histogram->scale;
        const double unit = (double)scale->per_unit;
        const char *name = figure->name;

        for (size_t i = 0; i < scale->n; i++)
                fprintf(out, "%s_bucket{le=\"%.12g\"} %" PRIu64 "\n", name, (double)scale->bounds[i] / unit,
                        figures->up_to[i]);
        fprintf(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, figures->count);
        fprintf(out, "%s_sum %.12g\n%s_count %" PRIu64 "\n", name, (double)figures->sum / unit, name,
                figures->count);
}

/* Write the number of values and two quantiles; without values, these are null. */
static void
write_quantiles(struct figures *to, const struct histogram_scale *scale,
                const struct histogram_figures *figures)
{
        static const struct {
                const char *name;
                double q;
        } quantiles[] = {{"p50", 0.5}, {"p99", 0.99}};

        figures_number(to, "count", (int64_t)figures->count);
        for (size_t i = 0; i < ARRAY_LEN(quantiles); i++) {
                if (figures->count == 0)
                        figures_text(to, quantiles[i].name, NULL);
                else
                        figures_fraction(to, quantiles[i].name,
                                         histogram_quantile(scale, figures, quantiles[i].q));
        }
}

void
figures_histogram(struct figures *to, const struct figure *figure, const struct histogram *histogram)
{
        struct histogram_figures all;

        histogram_read(histogram, &all);
        figures_head(to, figure);
        if (to->text != NULL)
                write_buckets(to->text, figure, histogram, &all);
        if (to->json == NULL || figure->member == NULL)
                return;
        figures_open(to, figure->member);
        write_quantiles(to, histogram->scale, &all);
        figures_close(to);
}

void
figures_open(struct figures *to, const char *member)
{
        if (to->json != NULL)
                json_open_object(to->json, member);
}

void
figures_close(struct figures *to)
{
        if (to->json != NULL)
                json_close_object(to->json);
}

void
figures_open_list(struct figures *to, const char *member)
{
        if (to->json != NULL)
                json_open_array(to->json, member);
}

void
figures_close_list(struct figures *to)
{
        if (to->json != NULL)
                json_close_array(to->json);
}

char *
figures_copy(const char *text)
{
        char *copy = NULL;
        size_t len;
        FILE *out = open_memstream(&copy, &len);

        if (out == NULL)
                mem_exit();
        text_print(out, text, strlen(text));
        if (fclose(out) != 0)
                mem_exit();
        return copy;
}

void
figures_text(struct figures *to, const char *member, const char *text)
{
        char *copy;

        if (to->json == NULL)
                return;
        copy = text == NULL ? NULL : figures_copy(text);
        json_member(to->json, member, copy);
        free(copy);
}

void
figures_number(struct figures *to, const char *member, int64_t number)
{
        if (to->json != NULL)
                json_number(to->json, member, number);
}

void
figures_time(struct figures *to, const char *member, int64_t time_s)
{
        if (time_s == 0)
                figures_text(to, member, NULL);
        else
                figures_number(to, member, time_s);
}

void
figures_fraction(struct figures *to, const char *member, double value)
{
        char text[32];

        (void)snprintf(text, sizeof(text), "%.9g", value);
        if (to->json != NULL)
                json_literal(to->json, member, text);
}
