/* What evhttp reaches by itself: a server that reads a request's body and answers 200. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>

static void
on_request(struct evhttp_request *request, void *arg)
{
        struct evbuffer *body = evbuffer_new();

        (void)arg;
        (void)evbuffer_add_printf(body, "{\"ok\":true}");
        (void)evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type",
                                "application/json");
        evhttp_send_reply(request, 200, "OK", body);
        evbuffer_free(body);
}

int
main(int argc, char **argv)
{
        struct event_base *base = event_base_new();
        struct evhttp *http = evhttp_new(base);

        if (argc != 2 || strcmp(argv[1], "--help") == 0) {
                printf(
                    "usage: bare PORT\n\nAnswers every request on 127.0.0.1 with 200, until it is killed.\n");
                return argc == 2 ? 0 : EX_USAGE;
        }
        evhttp_set_gencb(http, on_request, NULL);
        (void)signal(SIGPIPE, SIG_IGN);
        if (evhttp_bind_socket(http, "127.0.0.1", (uint16_t)strtoul(argv[1], NULL, 10)) != 0) {
                fprintf(stderr, "bare: cannot listen on 127.0.0.1:%s\n", argv[1]);
                return EX_UNAVAILABLE;
        }
        return event_base_dispatch(base) < 0 ? EX_OSERR : 0;
}
