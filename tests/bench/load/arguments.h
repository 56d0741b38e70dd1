#ifndef BENCH_ARGUMENTS_H
#define BENCH_ARGUMENTS_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "deliveries.h"

#define ARGUMENTS_MAX_PROCESSES 8

/* The arguments. */
struct arguments {
        struct deliveries_spec spec;
        struct sockaddr_in address;
        uint64_t n_connections;
        uint64_t warm_up_ms;
        uint64_t time_ms;
        uint64_t rate; /* deliveries per second; 0: as fast as they are answered */
        int with_tls;
        int wraps; /* start over when all deliveries have been sent */
        clockid_t processes[ARGUMENTS_MAX_PROCESSES];
        size_t n_processes;
};

/* Parse the arguments. Ends the process on errors and for --help. Texts point into argv. */
void arguments_parse(int argc, char **argv, struct arguments *args);

#endif
