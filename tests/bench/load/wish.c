#include "wish.h"

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
              "Posts signed deliveries to 127.0.0.1 and prints what came of it, as one JSON object.\n\n"
              "  --port PORT            where to\n"
              "  --path PATH            default: /webhooks/invoicing\n"
              "  --header-prefix TEXT   default: x-invoicing\n"
              "  --secret TEXT          what they are signed with\n"
              "  --connections N        default: 64\n"
              "  --body SIZE            default: 1KiB\n"
              "  --kinds N              deliveries of kind.0000, kind.0001 and so on; default: "
              "invoice.accepted\n"
              "  --time TIME            how long it is measured, default: 5s\n"
              "  --warm-up TIME         how long it runs before that, default: 1s\n"
              "  --rate N               a second; times count from when one was due, not from when it\n"
              "                         could be sent. Without: each connection as fast as it is answered\n"
              "  --deliveries N         how many are signed beforehand, default: 1000000\n"
              "  --wrap                 begin anew when all were sent\n"
              "  --forge                the signatures are wrong\n"
              "  --tls                  speak TLS\n"
              "  --process PID          tell the processor time that it takes; may be repeated\n"
              "  --help                 this text\n",
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
add_process(struct wish *wish)
{
        pid_t pid = (pid_t)number_of("process", INT32_MAX);
        int result = wish->n_processes == WISH_MAX_PROCESSES
                         ? EAGAIN
                         : clock_getcpuclockid(pid, &wish->processes[wish->n_processes++]);

        if (result != 0) {
                fprintf(stderr, "load: --process %s: %s\n", optarg, strerror(result));
                exit(EX_USAGE);
        }
}

static void
take_option(struct wish *wish, int option)
{
        struct error error;
        uint64_t body_len;

        switch (option) {
        case 'p':
                wish->address.sin_port = htons((uint16_t)number_of("port", 65535));
                break;
        case 'P':
                wish->spec.path = optarg;
                break;
        case 'x':
                wish->spec.header_prefix = optarg;
                break;
        case 's':
                wish->spec.secret = optarg;
                break;
        case 'c':
                wish->n_connections = number_of("connections", 20000);
                break;
        case 'b':
                if (number_parse_size(optarg, DELIVERIES_BODY_MIN, 64 << 20, &body_len, &error) != 0)
                        reject("body", &error);
                wish->spec.body_len = body_len;
                break;
        case 'k':
                wish->spec.n_kinds = number_of("kinds", DELIVERIES_MAX_KINDS);
                break;
        case 't':
                wish->time_ms = time_of("time");
                break;
        case 'w':
                wish->warm_up_ms = time_of("warm-up");
                break;
        case 'r':
                wish->rate = number_of("rate", 1000000);
                break;
        case 'n':
                wish->spec.n = number_of("deliveries", 100000000);
                break;
        case 'q':
                add_process(wish);
                break;
        default:
                usage(stderr);
                exit(EX_USAGE);
        }
}

void
wish_read(int argc, char **argv, struct wish *wish)
{
        static const struct wish defaults = {.spec = {.path = "/webhooks/invoicing",
                                                      .header_prefix = "x-invoicing",
                                                      .secret = "a secret of the measurements",
                                                      .webhook_id = "6f0d2c1e-0000-4000-8000-000000000001",
                                                      .n = 1000000,
                                                      .body_len = 1024},
                                             .address = {.sin_family = AF_INET},
                                             .n_connections = 64,
                                             .warm_up_ms = 1000,
                                             .time_ms = 5000};
        const struct option options[] = {{"port", required_argument, NULL, 'p'},
                                         {"path", required_argument, NULL, 'P'},
                                         {"header-prefix", required_argument, NULL, 'x'},
                                         {"secret", required_argument, NULL, 's'},
                                         {"connections", required_argument, NULL, 'c'},
                                         {"body", required_argument, NULL, 'b'},
                                         {"kinds", required_argument, NULL, 'k'},
                                         {"time", required_argument, NULL, 't'},
                                         {"warm-up", required_argument, NULL, 'w'},
                                         {"rate", required_argument, NULL, 'r'},
                                         {"deliveries", required_argument, NULL, 'n'},
                                         {"process", required_argument, NULL, 'q'},
                                         {"wrap", no_argument, &wish->wraps, 1},
                                         {"forge", no_argument, &wish->spec.forged, 1},
                                         {"tls", no_argument, &wish->with_tls, 1},
                                         {"help", no_argument, NULL, 'h'},
                                         {NULL, 0, NULL, 0}};
        int option;

        *wish = defaults;
        wish->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
                if (option == 'h') {
                        usage(stdout);
                        exit(0);
                }
                if (option != 0)
                        take_option(wish, option);
        }
        if (optind != argc || wish->address.sin_port == 0) {
                usage(stderr);
                exit(EX_USAGE);
        }
}
