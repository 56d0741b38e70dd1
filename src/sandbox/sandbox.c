#include "sandbox/sandbox.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/log.h"
#include "http/listener.h"
#include "sandbox/api.h"
#include "sandbox/transport.h"

#define SAVE_AFTER_US 250000
#define SAVE_RETRY_S 5

int
sandbox_save(struct sandbox *sandbox)
{
        const struct timeval retry = {SAVE_RETRY_S, 0};
        const char *path = sandbox->options->state_file;
        struct error error;

        (void)evtimer_del(sandbox->saving);
        if (path == NULL || state_save(sandbox, path, &error) == 0)
                return 0;
        log_error("state file could not be written: %s", error.text);
        (void)evtimer_add(sandbox->saving, &retry);
        return -1;
}

void
sandbox_save_soon(struct sandbox *sandbox)
{
        const struct timeval in = {0, SAVE_AFTER_US};

        if (sandbox->options->state_file != NULL && !evtimer_pending(sandbox->saving, NULL))
                (void)evtimer_add(sandbox->saving, &in);
}

static void
on_saving(evutil_socket_t fd, short what, void *arg)
{
        (void)fd;
        (void)what;
        (void)sandbox_save(arg);
}

static void
on_signal(evutil_socket_t fd, short what, void *arg)
{
        struct sandbox *sandbox = arg;

        (void)what;
        log_notice("stopping signal=%s", fd == SIGTERM ? "SIGTERM" : "SIGINT");
        (void)event_base_loopbreak(sandbox->base);
}

static int
open_event_loop(struct sandbox *sandbox, struct error *error)
{
        (void)signal(SIGPIPE, SIG_IGN);
        sandbox->base = event_base_new();
        if (sandbox->base == NULL)
                return error_set(error, "the event loop could not be created");
        sandbox->signals[0] = evsignal_new(sandbox->base, SIGTERM, on_signal, sandbox);
        sandbox->signals[1] = evsignal_new(sandbox->base, SIGINT, on_signal, sandbox);
        sandbox->saving = evtimer_new(sandbox->base, on_saving, sandbox);
        if (sandbox->saving == NULL)
                return error_set(error, "the event loop could not be created");
        for (size_t i = 0; i < ARRAY_LEN(sandbox->signals); i++) {
                if (sandbox->signals[i] == NULL || evsignal_add(sandbox->signals[i], NULL) != 0)
                        return error_set(error, "the event loop could not be created");
        }
        return 0;
}

/* Load the state, and check that every file that is needed later can be used. */
static int
open_files(struct sandbox *sandbox, struct error *error)
{
        const char *outbox = sandbox->options->outbox, *path = sandbox->options->state_file;
        const char *ca_file = sandbox->options->ca_file;

        sandbox->exit_status = EX_NOINPUT;
        if (ca_file != NULL && transport_check_ca_file(ca_file, error) != 0)
                return error_prefix(error, "--ca-file");
        sandbox->exit_status = EX_CANTCREAT;
        if (outbox != NULL && access(outbox, W_OK | X_OK) != 0)
                return error_set(error, "--outbox: %s: %s", outbox, strerror(errno));
        if (path == NULL)
                return 0;
        sandbox->exit_status = EX_DATAERR;
        if (state_load(sandbox, path, error) != 0)
                return -1;
        sandbox->exit_status = EX_CANTCREAT;
        return state_save(sandbox, path, error);
}

static void
on_deliveries_changed(void *arg)
{
        sandbox_save_soon(arg);
}

static int
open_scheduler(struct sandbox *sandbox, struct error *error)
{
        const struct sandbox_options *options = sandbox->options;
        const struct delivery_scheduler_settings settings = {.service = options->service,
                                                             .outbox = options->outbox,
                                                             .ca_file = options->ca_file,
                                                             .retry_base_ms = options->retry_base_ms,
                                                             .sign_once = options->sign_once,
                                                             .changed = on_deliveries_changed,
                                                             .arg = sandbox};

        sandbox->scheduler = delivery_scheduler_new(sandbox->base, &settings);
        return sandbox->scheduler != NULL ? 0 : error_set(error, "out of memory");
}

static int
open_server(struct sandbox *sandbox, struct error *error)
{
        const struct config_listen *listen = &sandbox->options->listen;

        sandbox->exit_status = EX_UNAVAILABLE;
        sandbox->listener =
            listener_open((const struct sockaddr *)&listen->address, listen->address_len, error);
        if (sandbox->listener < 0)
                return error_prefix(error, "%s", listen->text);
        sandbox->server = http_server_new(sandbox->base, &api_limits, NULL, &api_callbacks, sandbox);
        if (sandbox->server == NULL || http_server_listen(sandbox->server, sandbox->listener) != 0)
                return error_set(error, "the HTTP server could not be started");
        return 0;
}

/* Print the address and a key, for the process that started the sandbox. */
static int
announce(struct sandbox *sandbox, struct error *error)
{
        char name[LISTENER_NAME_SIZE];

        printf("listening on http://%s/v1 with key %s\n",
               listener_name(sandbox->listener, name, sizeof(name)), sandbox->options->shown_key);
        sandbox->exit_status = EX_IOERR;
        return fflush(stdout) == 0 ? 0 : error_set(error, "cannot write to stdout");
}

static void
close_sandbox(struct sandbox *sandbox)
{
        http_server_free(sandbox->server);
        listener_close(sandbox->listener);
        if (sandbox->saving != NULL && evtimer_pending(sandbox->saving, NULL))
                (void)sandbox_save(sandbox);
        if (sandbox->exit_status == 0 && delivery_scheduler_count(sandbox->scheduler) > 0)
                log_warning("pending deliveries %s n=%zu",
                            sandbox->options->state_file == NULL ? "dropped" : "saved",
                            delivery_scheduler_count(sandbox->scheduler));
        delivery_scheduler_free(sandbox->scheduler);
        invoices_clear(&sandbox->invoices);
        webhooks_clear(&sandbox->webhooks);
        if (sandbox->saving != NULL)
                event_free(sandbox->saving);
        for (size_t i = 0; i < ARRAY_LEN(sandbox->signals); i++) {
                if (sandbox->signals[i] != NULL)
                        event_free(sandbox->signals[i]);
        }
        if (sandbox->base != NULL)
                event_base_free(sandbox->base);
}

int
sandbox_run(const struct sandbox_options *options)
{
        struct sandbox sandbox = {.options = options,
                                  .keys = options->keys,
                                  .listener = -1,
                                  .exit_status = EX_OSERR};
        struct error error;

        TAILQ_INIT(&sandbox.webhooks);
        invoices_init(&sandbox.invoices);
        if (open_event_loop(&sandbox, &error) == 0 && open_scheduler(&sandbox, &error) == 0 &&
            open_files(&sandbox, &error) == 0 && open_server(&sandbox, &error) == 0 &&
            announce(&sandbox, &error) == 0) {
                log_notice("starting version=%s", PACKAGE_VERSION);
                (void)event_base_dispatch(sandbox.base);
                sandbox.exit_status = 0;
        } else {
                fprintf(stderr, "gatepost-sandbox: %s\n", error.text);
        }
        close_sandbox(&sandbox);
        if (sandbox.exit_status == 0)
                log_notice("stopped");
        return sandbox.exit_status;
}
