#ifndef CLI_COLOUR_H
#define CLI_COLOUR_H

enum colour { COLOUR_NONE, COLOUR_FAINT, COLOUR_BOLD, COLOUR_BLUE, COLOUR_RED };

/**
 * colour_code(colour):
 * What is written to stdout to go on in a colour. Empty unless stdout is a terminal that knows colours, and the environment
 * variable NO_COLOR is not set, or empty (no-color.org).
 */
const char *colour_code(enum colour colour);

#endif
