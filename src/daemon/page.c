#include "daemon/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/compiler.h"
#include "daemon/page_files.h"
#include "daemon/page_view.h"
#include "daemon/page_write.h"

#define HASH_SIZE 48 /* of SHA-256, in base64 */

static void
put_style(FILE *out, const struct page_view *view)
{
        (void)view;
        fputs(page_css, out);
}

static void
put_script(FILE *out, const struct page_view *view)
{
        (void)view;
        fputs(page_js, out);
}

static void
put_error(FILE *out, const struct page_view *view)
{
        page_write_text(out, view->error.text);
}

/* The places of page.html: {{name}}. */
static const struct {
        const char *name;
        void (*put)(FILE *out, const struct page_view *view);
} places[] = {
    {"style", put_style},
    {"script", put_script},
    {"error", put_error},
    {"instance", page_put_instance},
    {"verdict", page_put_verdict},
    {"state", page_put_state},
    {"parts", page_put_parts},
    {"now", page_put_now},
    {"clock", page_put_clock},
    {"started", page_put_started},
    {"uptime", page_put_uptime},
    {"outcomes", page_put_outcomes},
    {"sources", page_put_sources},
    {"all-sources", page_put_all_sources},
    {"receiver-times", page_put_receiver_times},
    {"kinds", page_put_kinds},
    {"all-kinds", page_put_all_kinds},
    {"reasons", page_put_reasons},
    {"all-reasons", page_put_all_reasons},
    {"work", page_put_work},
    {"partitions", page_put_partitions},
    {"router-times", page_put_router_times},
    {"kafka", page_put_kafka},
    {"brokers", page_put_brokers},
    {"clients", page_put_clients},
    {"keys", page_put_keys},
    {"versions", page_put_versions},
};

/* The parts of page.html that may be left out, {{#name}} to {{/name}}, with a series that each is there for. */
static const struct {
        const char *name;
        const char *metric;
} parts[] = {
    {"receiver", "gatepost_requests_total"},
    {"ack", "gatepost_ack_seconds_bucket"},
    {"receiver-times", "gatepost_ack_seconds_bucket"},
    {"router", "gatepost_router_lag_records"},
    {"age", "gatepost_event_age_seconds_bucket"},
    {"router-times", "gatepost_event_age_seconds_bucket"},
    {"partitions", "gatepost_router_partition_state"},
    {"clients", "gatepost_kafka_requests_total"},
    {"keys", "gatepost_secret_age_seconds"},
    {"keys", "gatepost_tls_certificate_expiry_timestamp_seconds"},
};

static int
has_part(const struct page_view *view, const char *name)
{
        if (strcmp(name, "error") == 0)
                return view->error.text[0] != '\0';
        for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
                if (strcmp(parts[i].name, name) == 0 &&
                    prometheus_next(&view->metrics, parts[i].metric, NULL) != NULL)
                        return 1;
        }
        return 0;
}

static void
put_place(FILE *out, const char *name, const struct page_view *view)
{
        for (size_t i = 0; i < ARRAY_LEN(places); i++) {
                if (strcmp(places[i].name, name) == 0)
                        places[i].put(out, view);
        }
}

/* What stands between the braces that begin here. Returns what is to be read next. */
static const char *
put_mark(FILE *out, const char *mark, const struct page_view *view)
{
        char name[32], end[sizeof(name) + 8];
        const char *next = mark + strcspn(mark, "}");

        (void)snprintf(name, sizeof(name), "%.*s", (int)(next - mark), mark);
        next += strlen("}}");
        if (name[0] == '#' && !has_part(view, name + 1)) {
                (void)snprintf(end, sizeof(end), "{{/%s}}", name + 1);
                next = strstr(next, end);
                return next == NULL ? "" : next + strlen(end);
        }
        put_place(out, name, view);
        return next;
}

static void
put_page(FILE *out, const struct page_view *view)
{
        const char *text = page_html, *mark;

        while ((mark = strstr(text, "{{")) != NULL) {
                (void)fwrite(text, 1, (size_t)(mark - text), out);
                text = put_mark(out, mark + strlen("{{"), view);
        }
        fputs(text, out);
}

char *
page_render(const struct page_facts *facts, size_t *len)
{
        struct page_view view = {.facts = facts};
        char *text = NULL;
        FILE *out = open_memstream(&text, len);

        if (out == NULL)
                return NULL;
        if (prometheus_parse(facts->metrics, &view.metrics, &view.error) == 0)
                view.error.text[0] = '\0';
        else
                prometheus_clear(&view.metrics);
        put_page(out, &view);
        prometheus_clear(&view.metrics);
        if (fclose(out) != 0) {
                free(text);
                return NULL;
        }
        return text;
}

/* How a policy names a text: CSP Level 3 section 2.3.1. Returns 0 or -1. */
static int
hash(const char *text, char name[HASH_SIZE])
{
        unsigned char digest[EVP_MAX_MD_SIZE];
        unsigned int len;

        if (EVP_Digest(text, strlen(text), digest, &len, EVP_sha256(), NULL) != 1)
                return -1;
        (void)EVP_EncodeBlock((unsigned char *)name, digest, (int)len);
        return 0;
}

char *
page_policy(void)
{
        char style[HASH_SIZE], script[HASH_SIZE], *policy;

        if (hash(page_css, style) != 0 || hash(page_js, script) != 0 ||
            asprintf(&policy,
                     "default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; img-src data:; "
                     "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
                     script, style) < 0)
                return NULL;
        return policy;
}
