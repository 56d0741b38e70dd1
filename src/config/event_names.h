#ifndef CONFIG_EVENT_NAMES_H
#define CONFIG_EVENT_NAMES_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"

/*
 * The names by which consumers recognise the events of a source: CloudEvents 1.0.2, section 3.1. Each
 * function checks a value of at most max bytes, and returns 0, or -1 with the reason and the remedy.
 */

/* ce_source: a URI-reference. */
int event_names_check_source(const char *text, size_t max, struct error *error) MUST_CHECK;

/* The beginning of ce_type: a name that ends with a separator, such as com.example. */
int event_names_check_type_prefix(const char *text, size_t max, struct error *error) MUST_CHECK;

/* The beginning of ce_dataschema: an absolute URI that ends with a slash. */
int event_names_check_schema_base(const char *text, size_t max, struct error *error) MUST_CHECK;

#endif
