#ifndef SANDBOX_SERVE_H
#define SANDBOX_SERVE_H

#include <stdint.h>

#include "base/compiler.h"
#include "config/config.h"
#include "sandbox/keys.h"

/*
 * `gatepost-sandbox`: serve_main.c reads the arguments, serve.c runs the service that sandbox.h describes.
 */

/* Options of gatepost-sandbox(1). */
struct serve_options {
        struct config_listen listen;
        struct api_keys keys;
        const char *shown_key;  /* printed in the first line */
        const char *service;    /* the word in the names of the delivery headers */
        const char *outbox;     /* directory for mails; NULL: mails are only logged */
        const char *state_file; /* NULL: state is lost at exit */
        const char *ca_file;    /* NULL: the system's certificates */
        uint64_t retry_base_ms;
        int sign_once;     /* sign each delivery once, not each attempt */
        uint64_t delay_ms; /* from submission to the authority's decision */
};

/**
 * serve_run(options):
 * Listen, print the address on stdout, and serve until SIGTERM or SIGINT. Returns an exit status of
 * sysexits.h.
 */
int serve_run(const struct serve_options *options) MUST_CHECK;

/* Parse the arguments and run. Returns an exit status of sysexits.h. */
int serve_main(int argc, char **argv) MUST_CHECK;

#endif
