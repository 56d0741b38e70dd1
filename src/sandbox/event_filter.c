#include "sandbox/event_filter.h"

#include <string.h>

#include "base/compiler.h"
#include "base/text.h"

#define KIND_MAX 128

static const char every_kind[] = "*";
static const char family[] = "reporting_batch.";
static const char whole_family[] = "reporting_batch.*";
static const char kind_characters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._-";

static const char *const known_filters[] = {
    every_kind,          whole_family,      "invoice.accepted", "invoice.rejected",  "invoice.received",
    "invoice.duplicate", "invoice.pending", "invoice.amended",  "invoice.cancelled", "held_unmapped_decision",
};

static int
is_in_family(const char *kind)
{
        return strncmp(kind, family, sizeof(family) - 1) == 0 && kind[sizeof(family) - 1] != '\0';
}

int
event_filter_is_kind(const char *text)
{
        size_t len = strspn(text, kind_characters);

        return len > 0 && len <= KIND_MAX && text[len] == '\0';
}

int
event_filter_is_known(const char *text)
{
        for (size_t i = 0; i < ARRAY_LEN(known_filters); i++) {
                if (strcmp(known_filters[i], text) == 0)
                        return 1;
        }
        return is_in_family(text) && event_filter_is_kind(text);
}

const char *
event_filter_suggest(const char *text)
{
        return text_closest(text, known_filters, ARRAY_LEN(known_filters));
}

int
event_filter_matches(const char *filter, const char *kind)
{
        if (strcmp(filter, every_kind) == 0)
                return 1;
        if (strcmp(filter, whole_family) == 0)
                return is_in_family(kind);
        return strcmp(filter, kind) == 0;
}
