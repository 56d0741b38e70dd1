#include "sandbox/tax.h"

#include <string.h>

#include "base/compiler.h"

#define ITALIAN_VAT_LEN 11

int
tax_code_is_known(const char *code)
{
        static const char *const codes[] = {"AE", "B", "E", "G", "K", "L", "M", "O", "S", "Z"};

        for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
                if (strcmp(codes[i], code) == 0)
                        return 1;
        }
        return 0;
}

int
tax_code_is_reverse_charge(const char *code)
{
        return strcmp(code, "AE") == 0;
}

int
tax_italian_vat_is_valid(const char *digits)
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
