#include "cli/audit_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"

static const char *const fault_names[TALLY_N_FAULTS] = {
    [TALLY_LOST] = "lost", [TALLY_DUPLICATED] = "duplicated", [TALLY_UNEXPECTED] = "unexpected"};

/*
 * How many of the records that were read are held against those demanded. The others come of deliveries that may have
 * results but need not: found - expected is then what is wrong, whatever a live router does.
 */
static uint64_t
count_found(const struct audit_counts *counts)
{
        return counts->n_demanded - counts->n_faults[TALLY_LOST] + counts->n_faults[TALLY_DUPLICATED] +
               counts->n_faults[TALLY_UNEXPECTED];
}

/* Since when a topic is checked; nothing for one that is from its beginning. */
static const char *
format_since(const struct audit *audit, size_t topic, char text[CLOCK_RFC3339_SIZE])
{
        int64_t from_ms = audit_plan_checked_from(audit->plan, (uint32_t)topic);

        if (from_ms == AUDIT_FROM_BEGINNING)
                return "";
        if (from_ms == AUDIT_NEVER)
                return "never";
        return clock_format_ms(from_ms, text);
}

static void
print_counts(const char *name, const struct audit_counts *counts, const char *since)
{
        printf("%-40s %10" PRIu64 " %10" PRIu64 " %8" PRIu64 " %10" PRIu64 " %10" PRIu64 "%s%s\n", name,
               counts->n_demanded, count_found(counts), counts->n_faults[TALLY_LOST],
               counts->n_faults[TALLY_DUPLICATED], counts->n_faults[TALLY_UNEXPECTED],
               *since == '\0' ? "" : "  ", since);
}

static void
print_examples(const struct audit *audit)
{
        uint64_t n_faults = 0, n_told = 0;

        for (size_t f = 0; f < TALLY_N_FAULTS; f++)
                n_faults += audit->total.n_faults[f];
        for (size_t i = 0; i < audit->n_examples; i++) {
                const struct audit_example *example = &audit->examples[i];
                const struct tally_finding *finding = &example->finding;

                n_told += finding->n;
                fprintf(stderr, "%s: %s, delivery-id %s, at %" PRId32 "/%" PRId64 " of %s",
                        fault_names[finding->fault], audit->plan->topics[finding->place.topic],
                        example->delivery_id, finding->place.partition, finding->place.offset,
                        audit_where(audit, finding));
                if (finding->n > 1)
                        fprintf(stderr, ", %" PRIu64 " times", finding->n);
                fputc('\n', stderr);
        }
        if (n_faults > n_told)
                fprintf(stderr, "and %" PRIu64 " more\n", n_faults - n_told);
}

/* What the figures leave out. */
static void
print_limits(const struct audit *audit)
{
        uint64_t n_others = audit->total.n_read - count_found(&audit->total);
        size_t n_unchecked = audit_plan_unchecked(audit->plan), n_committed = 0;

        for (size_t p = 0; p < audit->plan->n_deliveries; p++)
                n_committed += audit->plan->committed[p] >= 0;
        if (n_committed == 0)
                fprintf(stderr, "gatepost audit: no router of %s has committed anything yet\n",
                        audit->plan->config->group);
        if (n_unchecked > 0)
                fprintf(
                    stderr,
                    "gatepost audit: in %zu of %zu partitions of %s nothing can be demanded: what is left of "
                    "them is too short to tell repeats\n",
                    n_unchecked, audit->plan->n_deliveries, audit->plan->config->deliveries_topic);
        if (n_others > 0)
                fprintf(stderr,
                        "gatepost audit: %" PRIu64
                        " more records are there of deliveries that are not demanded: not committed "
                        "when this began, or older than what is checked\n",
                        n_others);
}

void
audit_print_text(const struct audit *audit)
{
        char text[CLOCK_RFC3339_SIZE];
        int has_since = 0;

        for (size_t t = 0; t < audit->plan->n_topics; t++)
                has_since |= *format_since(audit, t, text) != '\0';
        printf("%-40s %10s %10s %8s %10s %10s%s\n", "TOPIC", "EXPECTED", "FOUND", "LOST", "DUPLICATED",
               "UNEXPECTED", has_since ? "  CHECKED SINCE" : "");
        for (size_t t = 0; t < audit->plan->n_topics; t++)
                print_counts(audit->plan->topics[t], &audit->topics[t], format_since(audit, t, text));
        print_counts("total", &audit->total, "");
        (void)fflush(stdout);
        print_limits(audit);
        print_examples(audit);
}

static void
put_counts(yajl_gen json, const struct audit_counts *counts)
{
        json_number(json, "expected", (int64_t)counts->n_demanded);
        json_number(json, "found", (int64_t)count_found(counts));
        for (size_t f = 0; f < TALLY_N_FAULTS; f++)
                json_number(json, fault_names[f], (int64_t)counts->n_faults[f]);
}

static void
put_topics(yajl_gen json, const struct audit *audit)
{
        char text[CLOCK_RFC3339_SIZE];

        json_text(json, "topics");
        (void)yajl_gen_array_open(json);
        for (size_t t = 0; t < audit->plan->n_topics; t++) {
                const char *since = format_since(audit, t, text);

                (void)yajl_gen_map_open(json);
                json_member(json, "topic", audit->plan->topics[t]);
                put_counts(json, &audit->topics[t]);
                json_member(json, "checkedSince", *since == '\0' ? NULL : since);
                (void)yajl_gen_map_close(json);
        }
        (void)yajl_gen_array_close(json);
}

static void
put_example(yajl_gen json, const struct audit *audit, const struct audit_example *example)
{
        const struct tally_finding *finding = &example->finding;

        (void)yajl_gen_map_open(json);
        json_member(json, "what", fault_names[finding->fault]);
        json_number(json, "n", (int64_t)finding->n);
        json_member(json, "topic", audit->plan->topics[finding->place.topic]);
        json_member(json, "deliveryId", example->delivery_id);
        json_text(json, "at");
        (void)yajl_gen_map_open(json);
        json_member(json, "topic", audit_where(audit, finding));
        json_number(json, "partition", (int64_t)finding->place.partition);
        json_number(json, "offset", (int64_t)finding->place.offset);
        (void)yajl_gen_map_close(json);
        (void)yajl_gen_map_close(json);
}

void
audit_print_json(const struct audit *audit)
{
        yajl_gen json = json_new(1);

        (void)yajl_gen_map_open(json);
        put_counts(json, &audit->total);
        put_topics(json, audit);
        json_text(json, "examples");
        (void)yajl_gen_array_open(json);
        for (size_t i = 0; i < audit->n_examples; i++)
                put_example(json, audit, &audit->examples[i]);
        (void)yajl_gen_array_close(json);
        (void)yajl_gen_map_close(json);
        json_print(json);
        (void)fflush(stdout);
        print_limits(audit);
}
