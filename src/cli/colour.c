#include "cli/colour.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const codes[] = {[COLOUR_NONE] = "\033[0m",
                                    [COLOUR_FAINT] = "\033[2m",
                                    [COLOUR_BOLD] = "\033[1m",
                                    [COLOUR_BLUE] = "\033[34m",
                                    [COLOUR_RED] = "\033[31m"};

static int
is_wanted(void)
{
        const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

        return isatty(STDOUT_FILENO) && (no_color == NULL || *no_color == '\0') && term != NULL &&
               strcmp(term, "dumb") != 0;
}

const char *
colour_code(enum colour colour)
{
        static int known, wanted;

        if (!known) {
                wanted = is_wanted();
                known = 1;
        }
        return wanted ? codes[colour] : "";
}
