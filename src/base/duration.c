#include "base/duration.h"

#include <stddef.h>

#include "base/compiler.h"

#define LONGEST 1e15

void
duration_print(FILE *out, double seconds)
{
        unsigned long s = seconds > 0 && seconds < LONGEST ? (unsigned long)seconds : 0;

        if (s >= 2 * 86400)
                fprintf(out, "%lu d %lu h", s / 86400, s % 86400 / 3600);
        else if (s >= 3600)
                fprintf(out, "%lu h %lu min", s / 3600, s % 3600 / 60);
        else if (s >= 60)
                fprintf(out, "%lu min %lu s", s / 60, s % 60);
        else
                fprintf(out, "%lu s", s);
}

/* Write a whole number with commas between thousands. */
static void
print_grouped(FILE *out, double number)
{
        char digits[320];
        size_t len = (size_t)snprintf(digits, sizeof(digits), "%.0f", number);

        for (size_t i = 0; i < len; i++) {
                putc(digits[i], out);
                if (i + 1 < len && (len - i - 1) % 3 == 0 && digits[i] != '-')
                        putc(',', out);
        }
}

void
duration_print_precise(FILE *out, double seconds)
{
        static const struct {
                double below, each;
                const char *name;
        } units[] = {
            {1e-3, 1e-6, "µs"}, {1, 1e-3, "ms"}, {120, 1, "s"}, {7200, 60, "min"}, {1e300, 3600, "h"}};
        size_t i = 0;
        double n;

        if (seconds == 0) {
                fputs("0 s", out);
                return;
        }
        while (i + 1 < ARRAY_LEN(units) && seconds >= units[i].below)
                i++;
        n = seconds / units[i].each;
        if (n < 9.95)
                fprintf(out, "%.1f", n);
        else
                print_grouped(out, n);
        fprintf(out, " %s", units[i].name);
}
