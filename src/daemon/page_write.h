#ifndef DAEMON_PAGE_WRITE_H
#define DAEMON_PAGE_WRITE_H

#include <stdio.h>

/* Values in HTML, each as text and within quotes harmless. */

void page_write_text(FILE *out, const char *text);

/* A name from the configuration or the code, which may break where its words end. */
void page_write_name(FILE *out, const char *name);

/* A whole number, its thousands apart: 1,234,567. */
void page_write_count(FILE *out, double count);

/* A number that the page's script finds by its key, between what stands before and after it. */
void page_write_data(FILE *out, const char *prefix, const char *key, double count);

#endif
