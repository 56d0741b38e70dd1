#include "metrics/exposition.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"

void
exposition_head(FILE *out, const char *name, const char *type, const char *help)
{
        fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void
exposition_value(FILE *out, const char *value)
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
exposition_histogram(FILE *out, const char *name, const char *help, const struct histogram *histogram)
{
        const struct histogram_scale *scale = histogram->scale;
        const double unit = (double)scale->per_unit;
        struct histogram_figures figures;

        histogram_read(histogram, &figures);
        exposition_head(out, name, "histogram", help);
        for (size_t i = 0; i < scale->n; i++)
                fprintf(out, "%s_bucket{le=\"%.12g\"} %" PRIu64 "\n", name, (double)scale->bounds[i] / unit,
                        figures.up_to[i]);
        fprintf(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, figures.count);
        fprintf(out, "%s_sum %.12g\n%s_count %" PRIu64 "\n", name, (double)figures.sum / unit, name,
                figures.count);
}
