/*
 * framing-echo: a server that shows tests what a handler gets. It prints its address on stdout, answers every
 * request with the request as JSON, and frees everything and exits on SIGTERM.
 */
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "base/json.h"
#include "cases.h"
#include "http/listener.h"
#include "http/request.h"
#include "http/server.h"

static void
put_header(const struct http_header *header, void *arg)
{
        struct json_writer *json = arg;

        json_open_object(json, NULL);
        json_member(json, "name", header->name);
        json_bytes(json, "value", header->value, strlen(header->value));
        json_close_object(json);
}

static void
on_request(struct http_request *request, void *arg)
{
        struct json_writer *json = json_new(0);
        size_t len;
        const char *path = http_request_path(request, &len);
        char *text;

        (void)arg;
        json_open_object(json, NULL);
        json_member(json, "method", http_request_method(request));
        json_bytes(json, "path", path, len);
        json_open_array(json, "headers");
        http_request_headers(request, put_header, json);
        json_close_array(json);
        path = http_request_body(request, &len);
        json_bytes(json, "body", path, len);
        json_close_object(json);
        text = json_take(json, &len);
        http_request_forget(request); /* must have no effect on the answer */
        http_reply(request, 200, NULL, 0, text, len);
        free(text);
}

static void
on_signal(evutil_socket_t fd, short what, void *arg)
{
        (void)fd;
        (void)what;
        (void)event_base_loopbreak(arg);
}

static int
listen_on_loopback(void)
{
        const struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
        struct error error;
        char name[LISTENER_NAME_SIZE];
        int fd = listener_open((const struct sockaddr *)&address, sizeof(address), &error);

        if (fd < 0) {
                fprintf(stderr, "framing-echo: %s\n", error.text);
                exit(EXIT_FAILURE);
        }
        printf("listening on %s\n", listener_name(fd, name, sizeof(name)));
        fflush(stdout);
        return fd;
}

int
main(void)
{
        static const struct framing_limits cases = FRAMING_CASES_LIMITS;
        static const struct http_callbacks callbacks = {.on_request = on_request};
        const struct http_limits limits = {
            .max_header_bytes = cases.max_header_bytes,
            .max_headers = cases.max_headers,
            .max_body = cases.max_body,
            .max_connections = 100,
            .header_timeout_ms = 60000,
            .request_timeout_ms = 120000,
            .idle_timeout_ms = 60000,
            .handling_timeout_ms = 60000,
        };
        struct event_base *base = event_base_new();
        struct event *end = evsignal_new(base, SIGTERM, on_signal, base);
        struct http_server *server = http_server_new(base, &limits, NULL, &callbacks, NULL);
        int fd = listen_on_loopback();

        (void)signal(SIGPIPE, SIG_IGN); /* as the daemon does */
        if (server == NULL || event_add(end, NULL) != 0 || http_server_listen(server, fd) != 0)
                return EXIT_FAILURE;
        (void)event_base_dispatch(base);
        http_server_free(server);
        event_free(end);
        event_base_free(base);
        listener_close(fd);
        return EXIT_SUCCESS;
}
