#ifndef UNIT_SUITES_H
#define UNIT_SUITES_H

#include <check.h>

/* make writes X(name) for each test_name.c in its list of sources; each defines suite_name(). */
#define X(name) Suite *suite_##name(void);
#include "unit_suites.inc"
#undef X

#endif
