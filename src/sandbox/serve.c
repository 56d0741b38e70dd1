#include "sandbox/serve.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#include "base/bytes.h"
#include "base/log_flood.h"
#include "base/mem.h"
#include "base/number.h"
#include "config/endpoint.h"
#include "http/listener.h"
#include "sandbox/api_routes.h"
#include "sandbox/sandbox.h"
#include "sandbox/transport.h"

#define DEFAULT_LISTEN "127.0.0.1:8500"
#define HOUR_MS UINT64_C(3600000)

/* Options of gatepost-sandbox(1). */
struct serve_options {
        struct config_listen listen;
        struct api_keys keys; /* at least one */
        const char *service;  /* the word in the names of the delivery headers */
        const char *outbox;   /* directory for mails; NULL: mails are only logged */
        const char *ca_file;  /* NULL: the system's certificates */
        uint64_t retry_base_ms;
        int sign_once; /* sign each delivery once, not each attempt */
};

struct serve {
        const struct serve_options *options;
        struct sandbox sandbox;
        struct event_base *base;
        struct event *signals[2];
        struct http_server *server;
        int listener;
        int exit_status;
};

/* The arguments. */

static void
usage(FILE *out)
{
        fputs("usage: gatepost-sandbox [OPTION]...\n"
              "       gatepost-sandbox fire --to URL --secret-file FILE [OPTION]...\n"
              "Simulate the invoicing service: its API, its tax authority, and its signed deliveries.\n"
              "With fire, send signed deliveries to a receiver instead: see gatepost-sandbox fire --help.\n\n"
              "  --listen ADDR:PORT  address to listen on (default: " DEFAULT_LISTEN
              "); port 0 picks a free port\n"
              "  --key KEY[,read-only][,entity=NAME]\n"
              "                      accept this API key; repeatable (default: a generated key)\n"
              "  --service WORD      the word in x-WORD-signature and so on (default: invoicing)\n"
              "  --retry-base TIME   time until the second attempt of a delivery; doubles each time "
              "(default: 5s)\n"
              "  --sign-once         sign each delivery once, not each attempt\n"
              "  --outbox DIR        write mails to this directory, one file each\n"
              "  --ca-file FILE      trust these certificates when delivering, instead of the system's\n"
              "  -h, --help          show this help and exit\n"
              "  -V, --version       show the version and exit\n",
              out);
}

static int
set_option(struct serve_options *options, int option, const char *value, struct error *error)
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
                return keys_add(&options->keys, value, error);
        case 's':
                options->service = value;
                return 0;
        case 'r':
                return number_parse_duration(value, 1, HOUR_MS, &options->retry_base_ms, error);
        case '1':
                options->sign_once = 1;
                return 0;
        case 'o':
                options->outbox = value;
                return 0;
        default:
                options->ca_file = value;
                return 0;
        }
}

/* Returns -1 to continue, or an exit status. */
static int
parse(int argc, char **argv, struct serve_options *options)
{
        static const struct option known[] = {{"listen", required_argument, NULL, 'l'},
                                              {"key", required_argument, NULL, 'k'},
                                              {"service", required_argument, NULL, 's'},

                                              {"retry-base", required_argument, NULL, 'r'},
                                              {"sign-once", no_argument, NULL, '1'},
                                              {"outbox", required_argument, NULL, 'o'},
                                              {"ca-file", required_argument, NULL, 'c'},
                                              {"help", no_argument, NULL, 'h'},
                                              {"version", no_argument, NULL, 'V'},
                                              {NULL, 0, NULL, 0}};
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
                if (option == '?')
                        return EX_USAGE;
                if (set_option(options, option, optarg, &error) != 0) {
                        fprintf(stderr, "gatepost-sandbox: --%s: %s\n", known[index].name, error.text);
                        return EX_USAGE;
                }
        }
        if (optind == argc)
                return -1;
        fprintf(stderr, "gatepost-sandbox: unexpected argument '%s'; see gatepost-sandbox --help\n",
                argv[optind]);
        return EX_USAGE;
}

/* Fill in the default address and key. */
static int
set_defaults(struct serve_options *options, struct error *error)
{
        char generated[BYTES_UUID_SIZE];

        if (options->listen.text == NULL && endpoint_parse(DEFAULT_LISTEN, &options->listen, error) != 0)
                return -1;
        return options->keys.n > 0 ? 0 : keys_add(&options->keys, bytes_random_uuid(generated), error);
}

/* The service. */

static void
on_signal(evutil_socket_t fd, short what, void *arg)
{
        struct serve *serve = arg;

        (void)what;
        log_notice("stopping signal=%s", fd == SIGTERM ? "SIGTERM" : "SIGINT");
        (void)event_base_loopbreak(serve->base);
}

static void
open_event_loop(struct serve *serve)
{
        (void)signal(SIGPIPE, SIG_IGN);
        serve->base = event_base_new();
        if (serve->base == NULL)
                mem_exit();
        serve->signals[0] = evsignal_new(serve->base, SIGTERM, on_signal, serve);
        serve->signals[1] = evsignal_new(serve->base, SIGINT, on_signal, serve);
        for (size_t i = 0; i < ARRAY_LEN(serve->signals); i++) {
                if (serve->signals[i] == NULL || evsignal_add(serve->signals[i], NULL) != 0)
                        mem_exit();
        }
}

static void
on_decided(struct invoice *invoice, void *arg)
{
        sandbox_publish_invoice(arg, invoice, invoice->decision->kind);
}

static void
prepare_deliveries(struct serve *serve)
{
        const struct serve_options *options = serve->options;
        struct sandbox *sandbox = &serve->sandbox;

        invoices_init(&sandbox->invoices, serve->base, on_decided, sandbox);
        sandbox->deliveries = (struct delivery_settings){
            .base = serve->base,
            .transport = transport_new(serve->base, options->ca_file),
            .service = options->service,
            .outbox = options->outbox,
            .retry_base_ms = options->retry_base_ms,
            .sign_once = options->sign_once,
        };
}

static int
open_server(struct serve *serve, struct error *error)
{
        const struct config_listen *listen = &serve->options->listen;

        serve->exit_status = EX_UNAVAILABLE;
        serve->listener =
            listener_open((const struct sockaddr *)&listen->address, listen->address_len, error);
        if (serve->listener < 0)
                return error_prefix(error, "%s", listen->text);
        serve->server =
            http_server_new(serve->base, &api_routes_limits, NULL, &api_routes_callbacks, &serve->sandbox);
        if (serve->server == NULL || http_server_listen(serve->server, serve->listener) != 0)
                return error_set(error, "the HTTP server could not be started");
        return 0;
}

/* Print the address and a key, for the process that started the sandbox. */
static int
announce(struct serve *serve, struct error *error)
{
        char name[LISTENER_NAME_SIZE];

        printf("listening on http://%s/v1 with key %s\n", listener_name(serve->listener, name, sizeof(name)),
               serve->options->keys.items[0].text);
        serve->exit_status = EX_IOERR;
        return fflush(stdout) == 0 ? 0 : error_set(error, "cannot write to stdout");
}

static void
close_all(struct serve *serve)
{
        struct sandbox *sandbox = &serve->sandbox;

        http_server_free(serve->server);
        listener_close(serve->listener);
        invoices_clear(&sandbox->invoices);
        webhooks_clear(&sandbox->webhooks);
        transport_free(sandbox->deliveries.transport);
        for (size_t i = 0; i < ARRAY_LEN(serve->signals); i++)
                event_free(serve->signals[i]);
        event_base_free(serve->base);
}

/* Returns an exit status. */
static int
run(const struct serve_options *options)
{
        struct serve serve = {.options = options,
                              .sandbox = {.keys = options->keys},
                              .listener = -1,
                              .exit_status = EX_OSERR};
        struct error error;

        TAILQ_INIT(&serve.sandbox.webhooks);
        open_event_loop(&serve);
        prepare_deliveries(&serve);
        if (open_server(&serve, &error) == 0 && announce(&serve, &error) == 0) {
                log_notice("starting version=%s", PACKAGE_VERSION);
                (void)event_base_dispatch(serve.base);
                serve.exit_status = 0;
        } else {
                fprintf(stderr, "gatepost-sandbox: %s\n", error.text);
        }
        close_all(&serve);
        if (serve.exit_status == 0)
                log_notice("stopped");
        return serve.exit_status;
}

int
serve_main(int argc, char **argv)
{
        struct serve_options options = {.service = "invoicing", .retry_base_ms = 5000};
        struct error error;
        int status = parse(argc, argv, &options);

        if (status < 0 && set_defaults(&options, &error) != 0) {
                fprintf(stderr, "gatepost-sandbox: %s\n", error.text);
                status = EX_OSERR;
        }
        if (status < 0)
                status = run(&options);
        log_flood_end_all();
        keys_clear(&options.keys);
        free(options.listen.text);
        return status;
}
