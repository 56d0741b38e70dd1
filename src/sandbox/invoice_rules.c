#include "sandbox/invoice_rules.h"

#include <stdio.h>
#include <string.h>

#define ITALIAN_VAT_LEN 11

static const struct member_rule members[] = {
    {"invoiceNumber", JSON_STRING, 1}, {"entity", JSON_STRING, 0},     {"country", JSON_STRING, 0},
    {"supplierTaxId", JSON_STRING, 1}, {"buyerTaxId", JSON_STRING, 0}, {"reverseCharge", JSON_BOOLEAN, 0},
    {"lines", JSON_ARRAY, 1},          {"outcome", JSON_STRING, 0},
};

static const struct member_rule line_members[] = {{"taxCode", JSON_STRING, 1}};

/* VAT category codes of EN 16931, a subset of UNCL 5305. */
static const char *const tax_codes[] = {"AE", "B", "E", "G", "K", "L", "M", "O", "S", "Z"};

/* Reverse charge requires the buyer's tax identifier: EN 16931, rule BR-AE-2. */
static const char reverse_charge[] = "AE";

const struct invoice_decision invoice_rules_undecided = {"submitted", NULL, "SUBMITTED", 0};

static const struct invoice_decision decisions[] = {
    {"accepted", "invoice.accepted", "ACCEPTED", 1},    {"rejected", "invoice.rejected", "REJECTED", 1},
    {"pending", "invoice.pending", "PENDING", 0},       {"amended", "invoice.amended", "AMENDED", 1},
    {"cancelled", "invoice.cancelled", "CANCELLED", 1}, {"held", "held_unmapped_decision", "HELD", 0},
};

const struct invoice_decision *
invoice_rules_decision(const char *name)
{
        if (name == NULL)
                return &decisions[0];
        for (size_t i = 0; i < ARRAY_LEN(decisions); i++) {
                if (strcmp(decisions[i].name, name) == 0)
                        return &decisions[i];
        }
        return NULL;
}

static int
is_tax_code(const char *code)
{
        for (size_t i = 0; i < ARRAY_LEN(tax_codes); i++) {
                if (strcmp(tax_codes[i], code) == 0)
                        return 1;
        }
        return 0;
}

static void
check_lines(const struct json_value *lines, struct violations *violations)
{
        size_t index = 0;

        if (lines->n == 0)
                violations_add(violations, "lines", "must have a line");
        for (const struct json_value *line = lines->first; line != NULL; line = line->next) {
                const char *code = json_tree_text(line, "taxCode");
                char path[32], field[64];

                (void)snprintf(path, sizeof(path), "lines[%zu]", index++);
                violations_check_members(violations, path, line, line_members, ARRAY_LEN(line_members));
                (void)snprintf(field, sizeof(field), "%s.taxCode", path);
                if (code != NULL && !is_tax_code(code))
                        violations_add(violations, field,
                                       "must be an EN 16931 code: AE, B, E, G, K, L, M, O, S or Z");
        }
}

void
invoice_rules_check(const struct json_value *invoice, struct violations *violations)
{
        const struct json_value *lines = json_tree_get(invoice, "lines");
        const char *outcome = json_tree_text(invoice, "outcome");

        violations_check_members(violations, "", invoice, members, ARRAY_LEN(members));
        if (outcome != NULL && invoice_rules_decision(outcome) == NULL)
                violations_add(violations, "outcome",
                               "must be accepted, rejected, pending, amended, cancelled or held");
        if (lines != NULL && lines->type == JSON_ARRAY)
                check_lines(lines, violations);
}

static int
has_reverse_charge(const struct json_value *invoice)
{
        const struct json_value *flag = json_tree_get(invoice, "reverseCharge");
        const struct json_value *lines = json_tree_get(invoice, "lines");

        for (const struct json_value *line = lines->first; line != NULL; line = line->next) {
                if (strcmp(json_tree_text(line, "taxCode"), reverse_charge) == 0)
                        return 1;
        }
        return flag != NULL && flag->flag;
}

/*
 * Return whether the text is an Italian VAT number (partita IVA): 11 digits, the last one a Luhn check digit.
 */
static int
is_italian_vat(const char *digits)
{
        int sum = 0;

        if (strlen(digits) != ITALIAN_VAT_LEN || strspn(digits, "0123456789") != ITALIAN_VAT_LEN)
                return 0;
        for (int i = 0; i < ITALIAN_VAT_LEN; i++) {
                int value = (digits[i] - '0') * (i % 2 == 0 ? 1 : 2);

                sum += value > 9 ? value - 9 : value;
        }
        return sum % 10 == 0;
}

/*
 * Check a tax identifier if it is Italian: it begins with IT, or it is a bare number of the supplier in an
 * invoice for IT.
 */
static int
check_italian(const struct json_value *invoice, const char *name, struct error *error)
{
        const char *country = json_tree_text(invoice, "country"), *id = json_tree_text(invoice, name);
        int in_italy = country != NULL && strcmp(country, "IT") == 0 && strcmp(name, "supplierTaxId") == 0;

        if (id == NULL)
                return 0;
        if (strncmp(id, "IT", 2) == 0)
                id += 2;
        else if (!in_italy || strspn(id, "0123456789") != strlen(id))
                return 0;
        if (is_italian_vat(id))
                return 0;
        return error_set(error,
                         "%s: an Italian VAT number has 11 digits, and the last must be its check digit",
                         name);
}

int
invoice_rules_check_country(const struct json_value *invoice, struct error *error)
{
        if (has_reverse_charge(invoice) && json_tree_text(invoice, "buyerTaxId") == NULL)
                return error_set(error, "buyerTaxId: reverse charge requires the buyer's tax identifier");
        if (check_italian(invoice, "supplierTaxId", error) != 0)
                return -1;
        return check_italian(invoice, "buyerTaxId", error);
}
