#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/bytes.h"
#include "base/log_flood.h"
#include "base/number.h"
#include "config/endpoint.h"
#include "sandbox/serve.h"
#include "sandbox/transport.h"

#define DEFAULT_LISTEN "127.0.0.1:8500"
#define HOUR_MS UINT64_C(3600000)

static void
usage(FILE *out)
{
        fputs("usage: gatepost-sandbox [OPTION]...\n"
              "       gatepost-sandbox fire --to URL --secret-file FILE [OPTION]...\n"
              "Simulate the invoicing service: its API, its tax authority, and its signed deliveries.\n"
              "Runs in the foreground.\n"
              "With fire, send signed deliveries to a receiver instead: see gatepost-sandbox fire --help.\n\n"
              "  --listen ADDR:PORT  address to listen on (default: " DEFAULT_LISTEN
              "); port 0 picks a free port\n"
              "  --key KEY[,read-only][,entity=NAME]\n"
              "                      accept this API key; repeatable (default: a generated key)\n"
              "  --service WORD      the word in x-WORD-signature and so on (default: invoicing)\n"
              "  --delay TIME        time until the authority decides on an invoice (default: 200ms)\n"
              "  --retry-base TIME   time until the second attempt of a delivery; doubles each time "
              "(default: 5s)\n"
              "  --sign-once         sign each delivery once, not each attempt\n"
              "  --outbox DIR        write mails to this directory, one file each\n"
              "  --state FILE        keep webhooks, invoices and pending deliveries in this file\n"
              "  --ca-file FILE      trust these certificates when delivering, instead of the system's\n"
              "  -h, --help          show this help and exit\n"
              "  -V, --version       show the version and exit\n",
              out);
}

static int
misused(const char *option, const struct error *error)
{
        fprintf(stderr, "gatepost-sandbox: --%s: %s\n", option, error->text);
        return EX_USAGE;
}

/* Add a key, and cut its text to the key itself, which the first line of output shows. */
static int
add_key(struct serve_options *options, char *text, struct error *error)
{
        if (keys_add(&options->keys, text, error) != 0)
                return -1;
        text[strcspn(text, ",")] = '\0';
        if (options->shown_key == NULL)
                options->shown_key = text;
        return 0;
}

static int
set_option(struct serve_options *options, int option, char *value, struct error *error)
{
        switch (option) {
        case 'l':
                free(options->listen.text);
                options->listen.text = NULL;
                if (endpoint_parse(value, &options->listen, error) != 0)
                        return -1;
                return options->listen.address.ss_family != AF_UNIX
                           ? 0
                           : error_set(error, "must be ADDRESS:PORT or [IPv6]:PORT");
        case 'k':
                return add_key(options, value, error);
        case 's':
                options->service = value;
                return transport_is_service(value)
                           ? 0
                           : error_set(error, "must have 1 to 32 lowercase letters, digits and hyphens");
        case 'd':
                return number_parse_duration(value, 0, HOUR_MS, &options->delay_ms, error);
        case 'r':
                return number_parse_duration(value, 1, HOUR_MS, &options->retry_base_ms, error);
        case '1':
                options->sign_once = 1;
                return 0;
        case 'o':
                options->outbox = value;
                return 0;
        case 'f':
                options->state_file = value;
                return 0;
        default:
                options->ca_file = value;
                return 0;
        }
}

/* Parse the arguments. Returns -1 to continue, or an exit status. */
static int
parse(int argc, char **argv, struct serve_options *options)
{
        static const struct option known[] = {
            {"listen", required_argument, NULL, 'l'},     {"key", required_argument, NULL, 'k'},
            {"service", required_argument, NULL, 's'},    {"delay", required_argument, NULL, 'd'},
            {"retry-base", required_argument, NULL, 'r'}, {"sign-once", no_argument, NULL, '1'},
            {"outbox", required_argument, NULL, 'o'},     {"state", required_argument, NULL, 'f'},
            {"ca-file", required_argument, NULL, 'c'},    {"help", no_argument, NULL, 'h'},
            {"version", no_argument, NULL, 'V'},          {NULL, 0, NULL, 0}};
        struct error error;
        int option, index;

        while ((option = getopt_long(argc, argv, "hV", known, &index)) != -1) {
                if (option == 'h') {
                        usage(stdout);
                        return 0;
                }
                if (option == 'V') {
                        printf("gatepost-sandbox %s\n", PACKAGE_VERSION);
                        return 0;
                }
                if (option == '?') {
                        fputs("see gatepost-sandbox --help\n", stderr);
                        return EX_USAGE;
                }
                if (set_option(options, option, optarg, &error) != 0)
                        return misused(known[index].name, &error);
        }
        if (optind == argc)
                return -1;
        fprintf(stderr, "gatepost-sandbox: unexpected argument '%s'; see gatepost-sandbox --help\n",
                argv[optind]);
        return EX_USAGE;
}

/* Fill in the default address and key. */
static int
set_defaults(struct serve_options *options, char generated[BYTES_UUID_SIZE], struct error *error)
{
        if (options->listen.text == NULL && endpoint_parse(DEFAULT_LISTEN, &options->listen, error) != 0)
                return -1;
        return options->keys.n > 0 ? 0 : add_key(options, bytes_random_uuid(generated), error);
}

int
serve_main(int argc, char **argv)
{
        struct serve_options options = {.service = "invoicing", .retry_base_ms = 5000, .delay_ms = 200};
        char generated[BYTES_UUID_SIZE];
        struct error error;
        int status = parse(argc, argv, &options);

        if (status < 0 && set_defaults(&options, generated, &error) != 0) {
                fprintf(stderr, "gatepost-sandbox: %s\n", error.text);
                status = EX_OSERR;
        }
        if (status < 0)
                status = serve_run(&options);
        log_flood_end_all();
        keys_clear(&options.keys);
        free(options.listen.text);
        return status;
}
