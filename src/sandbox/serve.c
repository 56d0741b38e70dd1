#include "sandbox/serve.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/log.h"
#include "http/listener.h"
#include "sandbox/api_routes.h"
#include "sandbox/events.h"
#include "sandbox/sandbox.h"
#include "sandbox/state.h"
#include "sandbox/transport.h"

struct serve {
        const struct serve_options *options;
        struct sandbox sandbox;
        struct event_base *base;
        struct event *signals[2];
        struct http_server *server;
        int listener;
        int exit_status;
};

static void
on_saving(evutil_socket_t fd, short what, void *arg)
{
        (void)fd;
        (void)what;
        (void)state_save(arg);
}

static void
on_signal(evutil_socket_t fd, short what, void *arg)
{
        struct serve *serve = arg;

        (void)what;
        log_notice("stopping signal=%s", fd == SIGTERM ? "SIGTERM" : "SIGINT");
        (void)event_base_loopbreak(serve->base);
}

static int
open_event_loop(struct serve *serve, struct error *error)
{
        (void)signal(SIGPIPE, SIG_IGN);
        serve->base = event_base_new();
        if (serve->base == NULL)
                return error_set(error, "the event loop could not be created");
        serve->signals[0] = evsignal_new(serve->base, SIGTERM, on_signal, serve);
        serve->signals[1] = evsignal_new(serve->base, SIGINT, on_signal, serve);
        serve->sandbox.saving = evtimer_new(serve->base, on_saving, &serve->sandbox);
        if (serve->sandbox.saving == NULL)
                return error_set(error, "the event loop could not be created");
        for (size_t i = 0; i < ARRAY_LEN(serve->signals); i++) {
                if (serve->signals[i] == NULL || evsignal_add(serve->signals[i], NULL) != 0)
                        return error_set(error, "the event loop could not be created");
        }
        return 0;
}

/* Load the state, and check that every file that is needed later can be used. */
static int
open_files(struct serve *serve, struct error *error)
{
        const char *outbox = serve->options->outbox, *ca_file = serve->options->ca_file;
        struct sandbox *sandbox = &serve->sandbox;

        serve->exit_status = EX_NOINPUT;
        if (ca_file != NULL && transport_check_ca_file(ca_file, error) != 0)
                return error_prefix(error, "--ca-file");
        serve->exit_status = EX_CANTCREAT;
        if (outbox != NULL && access(outbox, W_OK | X_OK) != 0)
                return error_set(error, "--outbox: %s: %s", outbox, strerror(errno));
        if (sandbox->state_file == NULL)
                return 0;
        serve->exit_status = EX_DATAERR;
        if (state_load(sandbox, error) != 0)
                return -1;
        serve->exit_status = EX_CANTCREAT;
        return state_write(sandbox, error);
}

static void
on_deliveries_changed(void *arg)
{
        state_save_soon(arg);
}

static void
on_decided(struct invoice *invoice, void *arg)
{
        struct sandbox *sandbox = arg;

        events_publish_invoice(sandbox, invoice, invoice->decision->kind);
        state_save_soon(sandbox);
}

static int
prepare_state(struct serve *serve, struct error *error)
{
        const struct serve_options *options = serve->options;
        struct sandbox *sandbox = &serve->sandbox;
        const struct delivery_scheduler_settings settings = {.service = options->service,
                                                             .outbox = options->outbox,
                                                             .ca_file = options->ca_file,
                                                             .retry_base_ms = options->retry_base_ms,
                                                             .sign_once = options->sign_once,
                                                             .changed = on_deliveries_changed,
                                                             .arg = sandbox};

        invoices_init(&sandbox->invoices, serve->base, options->delay_ms, on_decided, sandbox);
        sandbox->scheduler = delivery_scheduler_new(serve->base, &settings);
        return sandbox->scheduler != NULL ? 0 : error_set(error, "out of memory");
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
               serve->options->shown_key);
        serve->exit_status = EX_IOERR;
        return fflush(stdout) == 0 ? 0 : error_set(error, "cannot write to stdout");
}

/* Save the state, also if the last attempt failed, and log what becomes of pending deliveries. */
static void
save_at_end(struct serve *serve)
{
        size_t n_pending = delivery_scheduler_count(serve->sandbox.scheduler);
        int is_saved = serve->sandbox.state_file != NULL && state_save(&serve->sandbox) == 0;

        if (serve->sandbox.state_file != NULL && !is_saved)
                serve->exit_status = EX_CANTCREAT;
        if (n_pending > 0)
                log_warning("pending deliveries %s n=%zu", is_saved ? "saved" : "dropped", n_pending);
}

static void
close_all(struct serve *serve)
{
        struct sandbox *sandbox = &serve->sandbox;

        http_server_free(serve->server);
        listener_close(serve->listener);
        if (serve->exit_status == 0)
                save_at_end(serve);
        delivery_scheduler_free(sandbox->scheduler);
        invoices_clear(&sandbox->invoices);
        webhooks_clear(&sandbox->webhooks);
        if (sandbox->saving != NULL)
                event_free(sandbox->saving);
        for (size_t i = 0; i < ARRAY_LEN(serve->signals); i++) {
                if (serve->signals[i] != NULL)
                        event_free(serve->signals[i]);
        }
        if (serve->base != NULL)
                event_base_free(serve->base);
}

int
serve_run(const struct serve_options *options)
{
        struct serve serve = {.options = options,
                              .sandbox = {.keys = options->keys, .state_file = options->state_file},
                              .listener = -1,
                              .exit_status = EX_OSERR};
        struct error error;

        TAILQ_INIT(&serve.sandbox.webhooks);
        if (open_event_loop(&serve, &error) == 0 && prepare_state(&serve, &error) == 0 &&
            open_files(&serve, &error) == 0 && open_server(&serve, &error) == 0 &&
            announce(&serve, &error) == 0) {
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
