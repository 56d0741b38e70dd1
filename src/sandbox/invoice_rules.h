#ifndef SANDBOX_INVOICE_RULES_H
#define SANDBOX_INVOICE_RULES_H

#include "base/compiler.h"
#include "base/error.h"
#include "base/json_tree.h"
#include "sandbox/violations.h"

/* Note what is wrong with an invoice, field by field: answered 400. */
void invoice_check(const struct json_value *invoice, struct violations *violations);

/* Hold an invoice that has no violations against the rules of countries. Returns 0, or -1 with the reason: answered 422. */
int invoice_check_country_rules(const struct json_value *invoice, struct error *error) MUST_CHECK;

#endif
