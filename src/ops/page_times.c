#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "ops/page_view.h"
#include "ops/page_write.h"

#define MAX_BUCKETS 64
#define NAME_SIZE 128

/* A histogram, as a row of a table. */
struct row {
        const char *metric;
        const char *name;
        int is_count; /* not seconds */
};

struct bucket {
        const char *bound;
        double count; /* of all up to the bound */
};

struct buckets {
        struct bucket items[MAX_BUCKETS];
        size_t n;
};

/* The buckets of a histogram in their order; those of several series added up. */
static void
collect(struct buckets *buckets, const struct prometheus *metrics, const char *metric)
{
        const struct prometheus_sample *sample = NULL;
        char name[NAME_SIZE];

        buckets->n = 0;
        (void)snprintf(name, sizeof(name), "%s_bucket", metric);
        while ((sample = prometheus_next(metrics, name, sample)) != NULL) {
                const char *bound = prometheus_label(sample, "le");
                size_t i = 0;

                while (i < buckets->n && strcmp(buckets->items[i].bound, bound) != 0)
                        i++;
                if (i == MAX_BUCKETS)
                        continue;
                if (i == buckets->n)
                        buckets->items[buckets->n++] = (struct bucket){bound, 0};
                buckets->items[i].count += sample->value;
        }
}

static double
total(const struct buckets *buckets)
{
        return buckets->n == 0 ? 0 : buckets->items[buckets->n - 1].count;
}

/* As Prometheus does it: linear within the bucket; beyond the last bound, that bound. */
static double
quantile(const struct buckets *buckets, double q)
{
        double wanted = q * total(buckets), low = 0, below = 0;

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

static void
write_quantile(FILE *out, const struct buckets *buckets, double q, int is_count)
{
        fputs("<td>", out);
        if (!(total(buckets) > 0))
                fputs("–", out);
        else if (is_count)
                page_write_count(out, ceil(quantile(buckets, q)));
        else
                page_write_time(out, quantile(buckets, q));
        fputs("</td>", out);
}

/* Below how much half and 99 % of what a histogram counted were, and how much that is. Nothing when there is no such histogram. */
static void
write_row(FILE *out, const struct prometheus *metrics, const struct row *row)
{
        struct buckets buckets;

        collect(&buckets, metrics, row->metric);
        if (buckets.n == 0)
                return;
        fprintf(out, "<tr><th scope=\"row\">%s</th>", row->name);
        write_quantile(out, &buckets, 0.5, row->is_count);
        write_quantile(out, &buckets, 0.99, row->is_count);
        fprintf(out, "<td><data data-key=\"%s\" data-buckets=\"", row->metric);
        for (size_t i = 0; i < buckets.n; i++) {
                fputs(i == 0 ? "" : " ", out);
                page_write_text(out, buckets.items[i].bound);
                fprintf(out, ":%.0f", buckets.items[i].count);
        }
        fprintf(out, "\" value=\"%.0f\">", total(&buckets));
        page_write_count(out, total(&buckets));
        fputs("</data></td></tr>\n", out);
}

void
page_put_receiver_times(FILE *out, const struct page_view *view)
{
        static const struct row rows[] = {
            {"gatepost_ack_seconds", "from request to answer", 0},
            {"gatepost_verify_seconds", "verifying a signature", 0},
        };

        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                write_row(out, &view->metrics, &rows[i]);
}

void
page_put_router_times(FILE *out, const struct page_view *view)
{
        static const struct row rows[] = {
            {"gatepost_event_age_seconds", "from signing to event", 0},
            {"gatepost_commit_seconds", "committing a batch", 0},
            {"gatepost_batch_records", "records in a batch", 1},
        };

        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                write_row(out, &view->metrics, &rows[i]);
}
