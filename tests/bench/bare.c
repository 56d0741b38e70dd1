/*
 * What evhttp reaches by itself: a server that reads a request's body and answers 200; and, with --at-once, what it reaches
 * at best, when an answer is written as soon as it is given and epoll learns of changes once a pass of the loop.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>

static void
write_at_once(struct bufferevent *bev)
{
        struct evbuffer *output = bufferevent_get_output(bev);

        (void)evbuffer_unfreeze(output, 1);
        (void)evbuffer_write(output, bufferevent_getfd(bev));
        (void)evbuffer_freeze(output, 1);
        if (evbuffer_get_length(output) > 0)
                return;
        (void)bufferevent_disable(bev, EV_WRITE);
        bufferevent_trigger(bev, EV_WRITE, BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS);
}

static void
on_request(struct evhttp_request *request, void *arg)
{
        const int *at_once = arg;
        struct evbuffer *body = evbuffer_new();
        struct evhttp_connection *connection = evhttp_request_get_connection(request);

        (void)evbuffer_add_printf(body, "{\"ok\":true}");
        (void)evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type",
                                "application/json");
        evhttp_send_reply(request, 200, "OK", body);
        evbuffer_free(body);
        if (*at_once)
                write_at_once(evhttp_connection_get_bufferevent(connection));
}

static struct event_base *
new_base(int at_once)
{
        struct event_config *config = event_config_new();
        struct event_base *base;

        if (at_once)
                (void)event_config_set_flag(config, EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST);
        base = event_base_new_with_config(config);
        event_config_free(config);
        return base;
}

int
main(int argc, char **argv)
{
        int at_once = argc == 3 && strcmp(argv[2], "--at-once") == 0;
        struct event_base *base = new_base(at_once);
        struct evhttp *http = evhttp_new(base);

        if (argc != 2 + at_once || strcmp(argv[1], "--help") == 0) {
                printf("usage: bare PORT [--at-once]\n\n"
                       "Answers every request on 127.0.0.1 with 200, until it is killed.\n");
                return argc == 2 ? 0 : EX_USAGE;
        }
        evhttp_set_gencb(http, on_request, &at_once);
        (void)signal(SIGPIPE, SIG_IGN);
        if (evhttp_bind_socket(http, "127.0.0.1", (uint16_t)strtoul(argv[1], NULL, 10)) != 0) {
                fprintf(stderr, "bare: cannot listen on 127.0.0.1:%s\n", argv[1]);
                return EX_UNAVAILABLE;
        }
        return event_base_dispatch(base) < 0 ? EX_OSERR : 0;
}
