#ifndef SANDBOX_TAX_H
#define SANDBOX_TAX_H

/* Whether it is a VAT category code of EN 16931 (a subset of UNCL 5305): AE, B, E, G, K, L, M, O, S, Z. */
int tax_code_is_known(const char *code);

/* Whether it means reverse charge (AE), which needs the buyer's tax identifier: EN 16931, rule BR-AE-2. */
int tax_code_is_reverse_charge(const char *code);

/* Whether the text is an Italian VAT number (partita IVA): 11 digits, the last a check digit by Luhn's formula. */
int tax_italian_vat_is_valid(const char *digits);

#endif
