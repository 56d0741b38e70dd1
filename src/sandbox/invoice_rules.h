#ifndef SANDBOX_INVOICE_RULES_H
#define SANDBOX_INVOICE_RULES_H

#include "base/compiler.h"
#include "base/error.h"
#include "base/json_tree.h"
#include "sandbox/violations.h"

/*
 * The rules for invoices: their fields, the requirements of countries, and the decisions of the tax
 * authority. Pure.
 */

/* Record each invalid field of an invoice: answered 400. Members that the sandbox does not use may be any. */
void invoice_rules_check(const struct json_value *invoice, struct violations *violations);

/*
 * Check an invoice without violations against the rules of countries. Returns 0, or -1 with the reason:
 * answered 422.
 */
int invoice_rules_check_country(const struct json_value *invoice, struct error *error) MUST_CHECK;

/* A decision of the tax authority. */
struct invoice_decision {
        const char *name;   /* value of the invoice's `outcome` that requests it */
        const char *kind;   /* of the event */
        const char *status; /* clearanceStatus */
        int terminal;
};

/* Return the decision with a name, or NULL. A NULL name means accepted. */
const struct invoice_decision *invoice_rules_decision(const char *name);

/* The status before the authority has decided; it has no kind. */
extern const struct invoice_decision invoice_rules_undecided;

#endif
