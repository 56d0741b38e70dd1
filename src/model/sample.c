#include "model/sample.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/json.h"

/* The record that the service's status poll gives for a rejection. */
static void
put_rejection(struct json_writer *json)
{
        char now[CLOCK_RFC3339_SIZE];

        json_member(json, "clearanceStatus", "REJECTED");
        json_flag(json, "terminal", 1);
        json_member(json, "rejectedAt", clock_format_ms(clock_now_ms(), now));
        json_open_object(json, "error");
        json_member(json, "source", "KSeF");
        json_member(json, "code", "440");
        json_member(json, "message", "Duplicate invoice number");
        json_member(json, "detail", "An invoice with this number was already cleared for the supplier.");
        json_close_object(json);
}

static void
put_invoice(struct json_writer *json, const char *kind)
{
        char id[BYTES_UUID_SIZE], number[32];

        json_member(json, "invoiceId", bytes_random_uuid(id));
        (void)snprintf(number, sizeof(number), "FV/2026/%.6s", id);
        json_member(json, "invoiceNumber", number);
        json_member(json, "supplierTaxId", "PL5260001246");
        json_member(json, "buyerTaxId", "FR40303265045");
        json_open_array(json, "lines");
        json_open_object(json, NULL);
        json_member(json, "description", "Consulting");
        json_number(json, "quantity", 3);
        json_literal(json, "unitPrice", "120.50");
        json_member(json, "taxCode", "S");
        json_close_object(json);
        json_close_array(json);
        if (strcmp(kind, "invoice.rejected") == 0)
                put_rejection(json);
        else if (strcmp(kind, "invoice.accepted") == 0)
                json_member(json, "clearanceStatus", "ACCEPTED");
}

static void
put_batch(struct json_writer *json)
{
        char id[BYTES_UUID_SIZE], deadline[CLOCK_RFC3339_SIZE];

        json_member(json, "batchId", bytes_random_uuid(id));
        json_member(json, "period", "2026-10");
        json_member(json, "deadline", clock_format_s(clock_now_ms() / 1000 + 2 * 86400, deadline));
}

char *
sample_body(const char *kind)
{
        struct json_writer *json = json_new(0);
        char now[CLOCK_RFC3339_SIZE];
        size_t len;

        json_open_object(json, NULL);
        json_member(json, "event", kind);
        json_member(json, "createdAt", clock_format_ms(clock_now_ms(), now));
        if (strncmp(kind, "reporting_batch.", 16) == 0)
                put_batch(json);
        else
                put_invoice(json, kind);
        json_close_object(json);
        return json_take(json, &len);
}
