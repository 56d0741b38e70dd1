#include "ops/exposition.h"

void
exposition_head(FILE *out, const char *name, const char *type, const char *help)
{
        fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void
exposition_value(FILE *out, const char *value)
{
        putc('"', out);
        for (const char *c = value; *c != '\0'; c++) {
                if (*c == '\n')
                        fputs("\\n", out);
                else
                        fprintf(out, "%s%c", *c == '"' || *c == '\\' ? "\\" : "", *c);
        }
        putc('"', out);
}
