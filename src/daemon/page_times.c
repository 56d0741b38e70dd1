#include <math.h>

#include "base/compiler.h"
#include "base/duration.h"
#include "base/prometheus_buckets.h"
#include "daemon/page_view.h"
#include "daemon/page_write.h"

/* A histogram, as a row of a table. */
struct row {
        const char *metric;
        const char *name;
        int is_count; /* not seconds */
};

static void
write_quantile(FILE *out, const struct prometheus_buckets *buckets, double q, int is_count)
{
        fputs("<td>", out);
        if (!(prometheus_buckets_count(buckets) > 0))
                fputs("–", out);
        else if (is_count)
                page_write_count(out, ceil(prometheus_buckets_quantile(buckets, q)));
        else
                duration_print_precise(out, prometheus_buckets_quantile(buckets, q));
        fputs("</td>", out);
}

/* Below how much half and 99 % of what a histogram counted were, and how much that is. Nothing when there is no such histogram. */
static void
write_row(FILE *out, const struct prometheus *metrics, const struct row *row)
{
        struct prometheus_buckets buckets;

        prometheus_buckets_read(&buckets, metrics, row->metric);
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
        fprintf(out, "\" value=\"%.0f\">", prometheus_buckets_count(&buckets));
        page_write_count(out, prometheus_buckets_count(&buckets));
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
