#include "cli/sample.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/rand.h>
#include <yajl/yajl_gen.h>

#include "base/clock.h"
#include "base/mem.h"

char *
sample_id(char id[SAMPLE_ID_SIZE])
{
        uint8_t b[16];

        if (RAND_bytes(b, sizeof(b)) != 1)
                memset(b, 0, sizeof(b));
        b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
        b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
        (void)snprintf(id, SAMPLE_ID_SIZE,
                       "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
                       b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
                       b[15]);
        return id;
}

static void
put(yajl_gen json, const char *text)
{
        (void)yajl_gen_string(json, (const unsigned char *)text, strlen(text));
}

static void
put_member(yajl_gen json, const char *name, const char *value)
{
        put(json, name);
        put(json, value);
}

/* The record that the service's status poll gives for a rejection. */
static void
put_rejection(yajl_gen json)
{
        char now[CLOCK_RFC3339_SIZE];

        put_member(json, "clearanceStatus", "REJECTED");
        put(json, "terminal");
        (void)yajl_gen_bool(json, 1);
        put_member(json, "rejectedAt", clock_format_ms(clock_now_ms(), now));
        put(json, "error");
        (void)yajl_gen_map_open(json);
        put_member(json, "source", "KSeF");
        put_member(json, "code", "440");
        put_member(json, "message", "Duplicate invoice number");
        put_member(json, "detail", "An invoice with this number was already cleared for the supplier.");
        (void)yajl_gen_map_close(json);
}

static void
put_invoice(yajl_gen json, const char *kind)
{
        char id[SAMPLE_ID_SIZE], number[32];

        put_member(json, "invoiceId", sample_id(id));
        (void)snprintf(number, sizeof(number), "FV/2026/%.6s", id);
        put_member(json, "invoiceNumber", number);
        put_member(json, "supplierTaxId", "PL5260001246");
        put_member(json, "buyerTaxId", "FR40303265045");
        put(json, "lines");
        (void)yajl_gen_array_open(json);
        (void)yajl_gen_map_open(json);
        put_member(json, "description", "Consulting");
        put(json, "quantity");
        (void)yajl_gen_integer(json, 3);
        put(json, "unitPrice");
        (void)yajl_gen_number(json, "120.50", 6);
        put_member(json, "taxCode", "S");
        (void)yajl_gen_map_close(json);
        (void)yajl_gen_array_close(json);
        if (strcmp(kind, "invoice.rejected") == 0)
                put_rejection(json);
        else if (strcmp(kind, "invoice.accepted") == 0)
                put_member(json, "clearanceStatus", "ACCEPTED");
}

static void
put_batch(yajl_gen json)
{
        char id[SAMPLE_ID_SIZE], deadline[CLOCK_RFC3339_SIZE];

        put_member(json, "batchId", sample_id(id));
        put_member(json, "period", "2026-10");
        put_member(json, "deadline", clock_format_s(clock_now_ms() / 1000 + 2 * 86400, deadline));
}

char *
sample_body(const char *kind)
{
        yajl_gen json = yajl_gen_alloc(NULL);
        const unsigned char *text = (const unsigned char *)"";
        char now[CLOCK_RFC3339_SIZE], *copy;
        size_t len = 0;

        if (json == NULL)
                return mem_strdup("");
        (void)yajl_gen_map_open(json);
        put_member(json, "event", kind);
        put_member(json, "createdAt", clock_format_ms(clock_now_ms(), now));
        if (strncmp(kind, "reporting_batch.", 16) == 0)
                put_batch(json);
        else
                put_invoice(json, kind);
        (void)yajl_gen_map_close(json);
        (void)yajl_gen_get_buf(json, &text, &len);
        copy = mem_strndup((const char *)text, len);
        yajl_gen_free(json);
        return copy;
}
