#ifndef DAEMON_PAGE_VIEW_H
#define DAEMON_PAGE_VIEW_H

#include <stdio.h>

#include "base/error.h"
#include "base/prometheus.h"
#include "daemon/page.h"

/* What the page shows. */
struct page_view {
        const struct page_facts *facts;
        struct prometheus metrics; /* empty when they could not be read */
        struct error error;        /* why not, or empty */
};

/* Each of these writes what page.html has a place of its name for. */

void page_put_instance(FILE *out, const struct page_view *view);
void page_put_verdict(FILE *out, const struct page_view *view);
void page_put_state(FILE *out, const struct page_view *view);
void page_put_parts(FILE *out, const struct page_view *view);
void page_put_now(FILE *out, const struct page_view *view);
void page_put_clock(FILE *out, const struct page_view *view);
void page_put_started(FILE *out, const struct page_view *view);
void page_put_uptime(FILE *out, const struct page_view *view);

void page_put_outcomes(FILE *out, const struct page_view *view);
void page_put_sources(FILE *out, const struct page_view *view);
void page_put_all_sources(FILE *out, const struct page_view *view);
void page_put_receiver_times(FILE *out, const struct page_view *view);

void page_put_kinds(FILE *out, const struct page_view *view);
void page_put_all_kinds(FILE *out, const struct page_view *view);
void page_put_reasons(FILE *out, const struct page_view *view);
void page_put_all_reasons(FILE *out, const struct page_view *view);
void page_put_work(FILE *out, const struct page_view *view);
void page_put_router_times(FILE *out, const struct page_view *view);

void page_put_kafka(FILE *out, const struct page_view *view);
void page_put_partitions(FILE *out, const struct page_view *view);
void page_put_brokers(FILE *out, const struct page_view *view);
void page_put_clients(FILE *out, const struct page_view *view);
void page_put_keys(FILE *out, const struct page_view *view);
void page_put_versions(FILE *out, const struct page_view *view);

#endif
