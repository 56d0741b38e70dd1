#ifndef SANDBOX_FIRE_H
#define SANDBOX_FIRE_H

#include "base/compiler.h"

/**
 * fire_main(argc, argv):
 * Run `gatepost-sandbox fire`: send many signed deliveries to a receiver, and report its answers. argv[0] is
 * `fire`. Returns an exit status of sysexits.h.
 */
int fire_main(int argc, char **argv) MUST_CHECK;

#endif
