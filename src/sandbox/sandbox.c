#include "sandbox/sandbox.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/log.h"
#include "http/listener.h"
#include "sandbox/api.h"

static void
on_signal(evutil_socket_t fd, short what, void *arg)
{
        struct sandbox *sandbox = arg;

        (void)what;
        log_notice("stopping signal=%s", fd == SIGTERM ? "SIGTERM" : "SIGINT");
        (void)event_base_loopbreak(sandbox->base);
}

static int
open_events(struct sandbox *sandbox, struct error *error)
{
        (void)signal(SIGPIPE, SIG_IGN);
        sandbox->base = event_base_new();
        if (sandbox->base == NULL)
                return error_set(error, "the event loop does not start");
        sandbox->signals[0] = evsignal_new(sandbox->base, SIGTERM, on_signal, sandbox);
        sandbox->signals[1] = evsignal_new(sandbox->base, SIGINT, on_signal, sandbox);
        for (size_t i = 0; i < ARRAY_LEN(sandbox->signals); i++) {
                if (sandbox->signals[i] == NULL || evsignal_add(sandbox->signals[i], NULL) != 0)
                        return error_set(error, "the event loop does not start");
        }
        return 0;
}

static int
open_server(struct sandbox *sandbox, struct error *error)
{
        const struct config_listen *listen = &sandbox->options->listen;

        sandbox->listener =
            listener_open((const struct sockaddr *)&listen->address, listen->address_len, error);
        if (sandbox->listener < 0)
                return error_prefix(error, "%s", listen->text);
        sandbox->server = http_server_new(sandbox->base, &api_limits, &api_callbacks, sandbox);
        if (sandbox->server == NULL || http_server_listen(sandbox->server, sandbox->listener) != 0)
                return error_set(error, "the HTTP server does not start");
        return 0;
}

/* For whoever started it: where it is, and a key for it. */
static int
announce(const struct sandbox *sandbox, struct error *error)
{
        char name[LISTENER_NAME_SIZE];

        printf("listening on http://%s/v1 with key %s\n",
               listener_name(sandbox->listener, name, sizeof(name)), sandbox->options->shown_key);
        return fflush(stdout) == 0 ? 0 : error_set(error, "the first line could not be written to stdout");
}

static void
close_sandbox(struct sandbox *sandbox)
{
        http_server_free(sandbox->server);
        listener_close(sandbox->listener);
        subscriptions_clear(&sandbox->subscriptions);
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
        struct sandbox sandbox = {.options = options, .keys = options->keys, .listener = -1};
        struct error error;
        int status = 0;

        TAILQ_INIT(&sandbox.subscriptions);
        if (open_events(&sandbox, &error) == 0 && open_server(&sandbox, &error) == 0 &&
            announce(&sandbox, &error) == 0) {
                log_notice("starting version=%s", PACKAGE_VERSION);
                (void)event_base_dispatch(sandbox.base);
        } else {
                fprintf(stderr, "gatepost-sandbox: %s\n", error.text);
                status = EX_OSERR;
        }
        close_sandbox(&sandbox);
        if (status == 0)
                log_notice("stopped");
        return status;
}

void
sandbox_save(struct sandbox *sandbox)
{
        (void)sandbox;
}
