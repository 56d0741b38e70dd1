#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/duration.h"
#include "daemon/page_view.h"
#include "daemon/page_write.h"

static double
started_s(const struct page_view *view)
{
        return prometheus_sum(&view->metrics, "gatepost_start_time_seconds");
}

void
page_put_instance(FILE *out, const struct page_view *view)
{
        page_write_text(out, view->facts->instance);
}

void
page_put_verdict(FILE *out, const struct page_view *view)
{
        fputs(view->facts->is_ready ? "Ready" : "Not ready", out);
}

void
page_put_state(FILE *out, const struct page_view *view)
{
        fputs(view->facts->is_ready ? "ready" : "unready", out);
}

/* Each role, and why it is not ready. */
void
page_put_parts(FILE *out, const struct page_view *view)
{
        for (const char *line = view->facts->readiness; *line != '\0';
             line += strcspn(line, "\n"), line += *line == '\n') {
                char *text = strndup(line, strcspn(line, "\n"));

                fputs("<li>", out);
                page_write_text(out, text == NULL ? "out of memory" : text);
                fputs("</li>", out);
                free(text);
        }
}

void
page_put_now(FILE *out, const struct page_view *view)
{
        char text[CLOCK_RFC3339_SIZE];

        fputs(clock_format_s(view->facts->now_ms / 1000, text), out);
}

void
page_put_clock(FILE *out, const struct page_view *view)
{
        char text[CLOCK_RFC3339_SIZE];

        (void)clock_format_s(view->facts->now_ms / 1000, text);
        fprintf(out, "%.10s %.8s UTC", text, text + strlen("2026-11-21T"));
}

void
page_put_started(FILE *out, const struct page_view *view)
{
        fprintf(out, "%.0f", started_s(view));
}

void
page_put_uptime(FILE *out, const struct page_view *view)
{
        duration_print(out, (double)view->facts->now_ms / 1000 - started_s(view));
}
