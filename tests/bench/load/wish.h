#ifndef BENCH_WISH_H
#define BENCH_WISH_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "deliveries.h"

#define WISH_MAX_PROCESSES 8

/* What the arguments ask for. */
struct wish {
        struct deliveries_spec spec;
        struct sockaddr_in address;
        uint64_t n_connections;
        uint64_t warm_up_ms;
        uint64_t time_ms;
        uint64_t rate; /* a second; 0: as fast as they are answered */
        int with_tls;
        int wraps; /* begin anew with the first delivery when all were sent */
        clockid_t processes[WISH_MAX_PROCESSES];
        size_t n_processes;
};

/* Read the arguments; ends the process when they are wrong or ask for help. Texts point into argv. */
void wish_read(int argc, char **argv, struct wish *wish);

#endif
