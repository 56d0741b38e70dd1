#include "base/duration.h"

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
