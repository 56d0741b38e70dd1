#include "model/delivery.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const suffixes[DELIVERY_N_HEADERS] = {
    [DELIVERY_SIGNATURE] = "signature",
    [DELIVERY_TIMESTAMP] = "timestamp",
    [DELIVERY_WEBHOOK_ID] = "webhook-id",
    [DELIVERY_ID] = "delivery-id",
};

#define TIMESTAMP_DIGITS 10

const char *
delivery_header_suffix(enum delivery_header header)
{
        return suffixes[header];
}

size_t
delivery_header_prefix(enum delivery_header header, const char *name)
{
        size_t len = strlen(name), suffix_len = strlen(suffixes[header]);

        if (len < suffix_len + 2 || name[len - suffix_len - 1] != '-' ||
            strcasecmp(name + len - suffix_len, suffixes[header]) != 0)
                return 0;
        return len - suffix_len - 1;
}

void
delivery_headers_add(struct delivery_headers *headers, const char *prefix, const char *name,
                     const char *value)
{
        size_t len = strlen(prefix);

        if (strncasecmp(name, prefix, len) != 0 || name[len] != '-')
                return;
        for (size_t h = 0; h < DELIVERY_N_HEADERS; h++) {
                if (strcasecmp(name + len + 1, suffixes[h]) != 0)
                        continue;
                if (headers->counts[h]++ == 0)
                        headers->values[h] = value;
                return;
        }
}

/* Characters of an id: 1, or 2 for digits. */
static const char id_chars[256] = {
    ['0' ... '9'] = 2,
    ['a' ... 'z'] = 1,
    ['A' ... 'Z'] = 1,
    ['-'] = 1,
};

/* Return the number of characters at the beginning whose value in id_chars is at least this. */
static size_t
span(const char *text, char least)
{
        size_t n = 0;

        while (id_chars[(unsigned char)text[n]] >= least)
                n++;
        return n;
}

static int
is_id(const char *text)
{
        size_t len = span(text, 1);

        return len >= 1 && len <= DELIVERY_ID_MAX && text[len] == '\0';
}

static int
is_timestamp(const char *text)
{
        return span(text, 2) == TIMESTAMP_DIGITS && text[TIMESTAMP_DIGITS] == '\0';
}

/* Read a header. Return NULL or the error in it. */
static const char *
parse_header(enum delivery_header header, const char *value, struct delivery *delivery)
{
        switch (header) {
        case DELIVERY_SIGNATURE:
                delivery->signature_text = value;
                if (signature_parse(value, strlen(value), delivery->signature) != 0)
                        return "must be sha256= and 64 lowercase hexadecimal digits";
                return NULL;
        case DELIVERY_TIMESTAMP:
                delivery->timestamp_text = value;
                delivery->timestamp = is_timestamp(value) ? strtoll(value, NULL, 10) : 0;
                return is_timestamp(value) ? NULL : "must be 10 digits";
        case DELIVERY_WEBHOOK_ID:
                delivery->webhook_id = value;
                return is_id(value) ? NULL : "must be 1 to 64 letters, digits and hyphens";
        case DELIVERY_ID:
                delivery->delivery_id = value;
                return is_id(value) ? NULL : "must be 1 to 64 letters, digits and hyphens";
        case DELIVERY_N_HEADERS:
                break;
        }
        return NULL;
}

size_t
delivery_parse(const struct delivery_headers *headers, struct delivery *delivery,
               const char *faults[DELIVERY_N_HEADERS])
{
        size_t n = 0;

        for (size_t h = 0; h < DELIVERY_N_HEADERS; h++) {
                if (headers->counts[h] == 0)
                        faults[h] = "is missing";
                else if (headers->counts[h] > 1)
                        faults[h] = "must appear once";
                else
                        faults[h] = parse_header((enum delivery_header)h, headers->values[h], delivery);
                n += faults[h] != NULL;
        }
        return n;
}

int
delivery_is_fresh(const struct delivery *delivery, int64_t now_ms, uint64_t tolerance_ms)
{
        int64_t age_ms = now_ms - delivery->timestamp * 1000;
        uint64_t distance = age_ms < 0 ? (uint64_t)-age_ms : (uint64_t)age_ms;

        /* The signed time is in whole seconds, so up to 999 ms of the age are rounding. */
        return distance <= tolerance_ms + (age_ms > 0 ? 999 : 0);
}

static const char hex_digits[] = "0123456789abcdef";

/*
 * Return whether text begins with exactly n lowercase hexadecimal digits, and not only zeros unless that is
 * allowed.
 */
static int
has_hex(const char *text, size_t n, int may_be_zero)
{
        return strspn(text, hex_digits) == n && (may_be_zero || strspn(text, "0") < n);
}

int
delivery_traceparent_is_valid(const char *value)
{
        size_t len = strlen(value);

        if (len < 55 || value[2] != '-' || value[35] != '-' || value[52] != '-')
                return 0;
        if (!has_hex(value, 2, 1) || !has_hex(value + 3, 32, 0) || !has_hex(value + 36, 16, 0) ||
            !has_hex(value + 53, 2, 1))
                return 0;
        if (memcmp(value, "ff", 2) == 0)
                return 0;
        return len == 55 || (memcmp(value, "00", 2) != 0 && value[55] == '-' && len <= 512);
}

int
delivery_tracestate_is_valid(const char *value)
{
        size_t len = strlen(value);

        if (len < 1 || len > 512)
                return 0;
        for (; *value != '\0'; value++) {
                if (*value < 0x20 || *value > 0x7e)
                        return 0;
        }
        return 1;
}
