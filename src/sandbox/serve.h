#ifndef SANDBOX_SERVE_H
#define SANDBOX_SERVE_H

#include "base/compiler.h"

/**
 * serve_main(argc, argv):
 * Run `gatepost-sandbox`: listen, print the address on stdout, and be the service that sandbox.h describes,
 * until SIGTERM or SIGINT. Returns an exit status of sysexits.h.
 */
int serve_main(int argc, char **argv) MUST_CHECK;

#endif
