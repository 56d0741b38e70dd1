#include "arguments.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/number.h"

static void
usage(FILE *out)
{
        fputs("usage: load --port PORT [OPTION]...\n"
              "Post signed deliveries to 127.0.0.1, and print the results as a JSON object.\n\n"
              "  --port PORT            port of the receiver\n"
              "  --secret TEXT          signing secret\n"
              "  --connections N        number of connections (default: 64)\n"
              "  --body SIZE            size of a body (default: 1KiB)\n"
              "  --kinds N              use kind.0000, kind.0001 and so on (default: invoice.accepted)\n"
              "  --time TIME            duration of the measurement (default: 5s)\n"
              "  --warm-up TIME         duration of the warm-up before it (default: 1s)\n"
              "  --rate N               deliveries per second; latency counts from when a delivery is due\n"
              "                         (default: as fast as each connection is answered)\n"
              "  --deliveries N         number of deliveries to sign in advance (default: 1000000)\n"
              "  --wrap                 start over when all deliveries have been sent\n"
              "  --forge                send wrong signatures\n"
              "  --tls                  use TLS\n"
              "  --process PID          report the processor time of this process; may be repeated\n"
              "  --help                 show this help and exit\n",
              out);
}

static void
reject(const char *option, const struct error *error)
{
        fprintf(stderr, "load: --%s: %s\n", option, error->text);
        exit(EX_USAGE);
}

static uint64_t
number_of(const char *option, uint64_t max)
{
        struct error error;
        uint64_t value;

        if (number_parse(optarg, 1, max, &value, &error) != 0)
                reject(option, &error);
        return value;
}

static uint64_t
time_of(const char *option)
{
        struct error error;
        uint64_t ms;

        if (number_parse_duration(optarg, 1, 3600000, &ms, &error) != 0)
                reject(option, &error);
        return ms;
}

static void
add_process(struct arguments *args)
{
        pid_t pid = (pid_t)number_of("process", INT32_MAX);
        int result = args->n_processes == ARGUMENTS_MAX_PROCESSES
                         ? EAGAIN
                         : clock_getcpuclockid(pid, &args->processes[args->n_processes++]);

        if (result != 0) {
                fprintf(stderr, "load: --process %s: %s\n", optarg, strerror(result));
                exit(EX_USAGE);
        }
}

static void
take_option(struct arguments *args, int option)
{
        struct error error;
        uint64_t body_len;

        switch (option) {
        case 'p':
                args->address.sin_port = htons((uint16_t)number_of("port", 65535));
                break;
        case 's':
                args->spec.secret = optarg;
                break;
        case 'c':
                args->n_connections = number_of("connections", 20000);
                break;
        case 'b':
                if (number_parse_size(optarg, DELIVERIES_BODY_MIN, 64 << 20, &body_len, &error) != 0)
                        reject("body", &error);
                args->spec.body_len = body_len;
                break;
        case 'k':
                args->spec.n_kinds = number_of("kinds", DELIVERIES_MAX_KINDS);
                break;
        case 't':
                args->time_ms = time_of("time");
                break;
        case 'w':
                args->warm_up_ms = time_of("warm-up");
                break;
        case 'r':
                args->rate = number_of("rate", 1000000);
                break;
        case 'n':
                args->spec.n = number_of("deliveries", 100000000);
                break;
        case 'q':
                add_process(args);
                break;
        default:
                usage(stderr);
                exit(EX_USAGE);
        }
}

void
arguments_parse(int argc, char **argv, struct arguments *args)
{
        static const struct arguments defaults = {.spec = {.secret = "a secret of the measurements",
                                                           .webhook_id =
                                                               "6f0d2c1e-0000-4000-8000-000000000001",
                                                           .n = 1000000,
                                                           .body_len = 1024},
                                                  .address = {.sin_family = AF_INET},
                                                  .n_connections = 64,
                                                  .warm_up_ms = 1000,
                                                  .time_ms = 5000};
        const struct option options[] = {{"port", required_argument, NULL, 'p'},
                                         {"secret", required_argument, NULL, 's'},
                                         {"connections", required_argument, NULL, 'c'},
                                         {"body", required_argument, NULL, 'b'},
                                         {"kinds", required_argument, NULL, 'k'},
                                         {"time", required_argument, NULL, 't'},
                                         {"warm-up", required_argument, NULL, 'w'},
                                         {"rate", required_argument, NULL, 'r'},
                                         {"deliveries", required_argument, NULL, 'n'},
                                         {"process", required_argument, NULL, 'q'},
                                         {"wrap", no_argument, &args->wraps, 1},
                                         {"forge", no_argument, &args->spec.forged, 1},
                                         {"tls", no_argument, &args->with_tls, 1},
                                         {"help", no_argument, NULL, 'h'},
                                         {NULL, 0, NULL, 0}};
        int option;

        *args = defaults;
        args->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
                if (option == 'h') {
                        usage(stdout);
                        exit(0);
                }
                if (option != 0)
                        take_option(args, option);
        }
        if (optind != argc || args->address.sin_port == 0) {
                usage(stderr);
                exit(EX_USAGE);
        }
}
