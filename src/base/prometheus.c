#include "base/prometheus.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define SERIES_NAME_SIZE 128

static const char name_chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:";

static const char *
skip_blanks(const char *p)
{
        return p + strspn(p, " \t");
}

static int
is_printable(const char *text)
{
        for (size_t i = 0, len = strlen(text), n; i < len; i += n) {
                n = text_printable(text + i, len - i);
                if (n == 0)
                        return 0;
        }
        return 1;
}

/* Read a string from after its opening quote. Return the position after it, or NULL. */
static const char *
parse_value(const char *p, char **value)
{
        char *text = calloc(1, strcspn(p, "\n") + 1), *end = text;

        if (text == NULL)
                return NULL;
        for (; *p != '"' && *p != '\0' && *p != '\n'; p++) {
                if (*p == '\\' && (p[1] == '\\' || p[1] == '"'))
                        p++;
                *end++ = *p;
        }
        if (*p == '"' && is_printable(text)) {
                *value = text;
                return p + 1;
        }
        free(text);
        return NULL;
}

/* Read the labels from after their opening brace. Return the position after them, or NULL. */
static const char *
parse_labels(const char *p, struct prometheus_sample *sample)
{
        for (p = skip_blanks(p); *p != '}'; p = skip_blanks(p)) {
                struct prometheus_label *label = &sample->labels[sample->n_labels];
                size_t len = strspn(p, name_chars);
                const char *name = p;

                p = skip_blanks(p + len);
                if (len == 0 || sample->n_labels == PROMETHEUS_MAX_LABELS || *p != '=')
                        return NULL;
                p = skip_blanks(p + 1);
                p = *p == '"' ? parse_value(p + 1, &label->value) : NULL;
                if (p == NULL)
                        return NULL;
                sample->n_labels++;
                label->name = strndup(name, len);
                if (label->name == NULL)
                        return NULL;
                p = skip_blanks(p);
                if (*p == ',')
                        p++;
                else if (*p != '}')
                        return NULL;
        }
        return p + 1;
}

/* Read a line that is a sample. Return 0, or -1; errno is ENOMEM if memory failed. */
static int
parse_sample(const char *p, struct prometheus_sample *sample)
{
        size_t len = strspn(p, name_chars);
        char *end;

        sample->name = strndup(p, len);
        p = skip_blanks(p + len);
        if (*p == '{')
                p = parse_labels(p + 1, sample);
        if (len == 0 || sample->name == NULL || p == NULL)
                return -1;
        p = skip_blanks(p);
        if (*p == '\n') /* strtod() would read the next line */
                return -1;
        sample->value = strtod(p, &end);
        if (end == p)
                return -1;
        p = skip_blanks(end);
        if (*p == '-')
                p++;
        p = skip_blanks(p + strspn(p, "0123456789"));
        return *p == '\n' || *p == '\0' ? 0 : -1;
}

/* Append an empty sample. Return it, or NULL. */
static struct prometheus_sample *
add_sample(struct prometheus *page)
{
        struct prometheus_sample *samples = reallocarray(page->samples, page->n + 1, sizeof(*page->samples));

        if (samples == NULL)
                return NULL;
        page->samples = samples;
        memset(&samples[page->n], 0, sizeof(*samples));
        return &samples[page->n++];
}

int
prometheus_parse(const char *text, struct prometheus *page, struct error *error)
{
        size_t number = 0;

        *page = (struct prometheus){NULL, 0};
        for (const char *line = text, *next; line != NULL && *line != '\0'; line = next) {
                const char *newline = strchr(line, '\n');
                struct prometheus_sample *sample;

                next = newline == NULL ? NULL : newline + 1;
                line = skip_blanks(line);
                number++;
                if (*line == '#' || *line == '\n' || *line == '\0')
                        continue;
                errno = 0;
                sample = add_sample(page);
                if (sample != NULL && parse_sample(line, sample) == 0)
                        continue;
                if (errno == ENOMEM)
                        return error_set(error, "out of memory");
                return error_set(error, "line %zu is not in the Prometheus text format", number);
        }
        return 0;
}

void
prometheus_clear(struct prometheus *page)
{
        for (size_t i = 0; i < page->n; i++) {
                free(page->samples[i].name);
                for (size_t l = 0; l < page->samples[i].n_labels; l++) {
                        free(page->samples[i].labels[l].name);
                        free(page->samples[i].labels[l].value);
                }
        }
        free(page->samples);
        *page = (struct prometheus){NULL, 0};
}

const char *
prometheus_label(const struct prometheus_sample *sample, const char *name)
{
        for (size_t i = 0; i < sample->n_labels; i++) {
                if (strcmp(sample->labels[i].name, name) == 0)
                        return sample->labels[i].value;
        }
        return "";
}

const struct prometheus_sample *
prometheus_next(const struct prometheus *page, const char *name, const struct prometheus_sample *after)
{
        for (size_t i = after == NULL ? 0 : (size_t)(after - page->samples) + 1; i < page->n; i++) {
                if (strcmp(page->samples[i].name, name) == 0)
                        return &page->samples[i];
        }
        return NULL;
}

double
prometheus_sum(const struct prometheus *page, const char *name)
{
        double sum = 0;

        for (const struct prometheus_sample *s = prometheus_next(page, name, NULL); s != NULL;
             s = prometheus_next(page, name, s))
                sum += s->value;
        return sum;
}

void
prometheus_buckets_read(struct prometheus_buckets *buckets, const struct prometheus *page, const char *name)
{
        const struct prometheus_sample *sample = NULL;
        char series[SERIES_NAME_SIZE];

        buckets->n = 0;
        (void)snprintf(series, sizeof(series), "%s_bucket", name);
        while ((sample = prometheus_next(page, series, sample)) != NULL) {
                const char *bound = prometheus_label(sample, "le");
                size_t i = 0;

                while (i < buckets->n && strcmp(buckets->items[i].bound, bound) != 0)
                        i++;
                if (i == PROMETHEUS_MAX_BUCKETS)
                        continue;
                if (i == buckets->n) {
                        buckets->items[i].bound = bound;
                        buckets->items[i].count = 0;
                        buckets->n++;
                }
                buckets->items[i].count += sample->value;
        }
}

double
prometheus_buckets_count(const struct prometheus_buckets *buckets)
{
        return buckets->n == 0 ? 0 : buckets->items[buckets->n - 1].count;
}

double
prometheus_buckets_quantile(const struct prometheus_buckets *buckets, double q)
{
        double wanted = q * prometheus_buckets_count(buckets), low = 0, below = 0;

        for (size_t i = 0; i < buckets->n; i++) {
                double bound = strtod(buckets->items[i].bound, NULL), count = buckets->items[i].count;

                if (count >= wanted)
                        return isfinite(bound) ? low + (bound - low) * (wanted - below) / (count - below)
                                               : low;
                low = bound;
                below = count;
        }
        return low;
}
