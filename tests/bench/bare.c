/*
 * The lower bound for a receiver on evhttp: a server that reads the body and answers 200, without
 * verification. With --at-once it makes fewer system calls: it writes an answer immediately, and batches
 * changes to epoll. With a topic it also appends the body with librdkafka before it answers.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>

#include "client.h"

struct bare {
        int at_once;
        rd_kafka_t *producer; /* NULL: do not append */
        rd_kafka_topic_t *topic;
};

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
reply(const struct bare *bare, struct evhttp_request *request)
{
        struct evbuffer *body = evbuffer_new();
        struct evhttp_connection *connection = evhttp_request_get_connection(request);

        (void)evbuffer_add_printf(body, "{\"ok\":true}");
        (void)evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type",
                                "application/json");
        evhttp_send_reply(request, 200, "OK", body);
        evbuffer_free(body);
        if (bare->at_once && connection != NULL)
                write_at_once(evhttp_connection_get_bufferevent(connection));
}

static void
on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque)
{
        (void)client;
        if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
                client_fail("append", rd_kafka_err2str(message->err));
        reply(opaque, message->_private);
}

static void
on_request(struct evhttp_request *request, void *arg)
{
        const struct bare *bare = arg;
        struct evbuffer *body = evhttp_request_get_input_buffer(request);
        const char *key =
            evhttp_find_header(evhttp_request_get_input_headers(request), "x-invoicing-delivery-id");

        if (bare->producer == NULL) {
                reply(bare, request);
                return;
        }
        key = key == NULL ? "" : key;
        if (rd_kafka_produce(bare->topic, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY,
                             evbuffer_pullup(body, -1), evbuffer_get_length(body), key, strlen(key),
                             request) != 0)
                evhttp_send_error(request, HTTP_SERVUNAVAIL, NULL);
}

static void
on_reports(evutil_socket_t fd, short what, void *arg)
{
        const struct bare *bare = arg;
        char wakes[64];
        ssize_t n = read(fd, wakes, sizeof(wakes));

        (void)n, (void)what;
        while (rd_kafka_poll(bare->producer, 0) > 0)
                ;
}

/* Open a producer with Gatepost's properties that wakes the loop when there are delivery reports. */
static void
open_producer(struct bare *bare, struct event_base *base, const char *bootstrap, const char *topic)
{
        const struct property properties[] = {
            {"bootstrap.servers", bootstrap},
            {"enable.idempotence", "true"},
            {"partitioner", "murmur2_random"},
            {"message.max.bytes", "2000000"},
            {"linger.ms", "0"},
            {NULL, NULL},
        };
        rd_kafka_conf_t *conf = client_conf(properties);
        rd_kafka_queue_t *queue;
        int wake[2];

        rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
        rd_kafka_conf_set_opaque(conf, bare);
        bare->producer = client_open(RD_KAFKA_PRODUCER, conf);
        if (pipe2(wake, O_NONBLOCK | O_CLOEXEC) != 0)
                client_fail("pipe", strerror(errno));
        bare->topic = rd_kafka_topic_new(bare->producer, topic, NULL);
        queue = rd_kafka_queue_get_main(bare->producer);
        rd_kafka_queue_io_event_enable(queue, wake[1], "r", 1);
        rd_kafka_queue_destroy(queue);
        (void)event_add(event_new(base, wake[0], EV_READ | EV_PERSIST, on_reports, bare), NULL);
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
        struct bare bare = {argc > 2 && strcmp(argv[2], "--at-once") == 0, NULL, NULL};
        struct event_base *base = new_base(bare.at_once);
        struct evhttp *http = evhttp_new(base);

        if (!(argc == 2 || (bare.at_once && (argc == 3 || argc == 5))) || strcmp(argv[1], "--help") == 0) {
                printf("usage: bare PORT [--at-once [BOOTSTRAP TOPIC]]\n\n"
                       "Answer every request on 127.0.0.1 with 200, until killed. With a topic, append\n"
                       "the body to it first.\n");
                return argc == 2 ? 0 : EX_USAGE;
        }
        if (argc == 5)
                open_producer(&bare, base, argv[3], argv[4]);
        evhttp_set_gencb(http, on_request, &bare);
        (void)signal(SIGPIPE, SIG_IGN);
        if (evhttp_bind_socket(http, "127.0.0.1", (uint16_t)strtoul(argv[1], NULL, 10)) != 0) {
                fprintf(stderr, "bare: cannot listen on 127.0.0.1:%s\n", argv[1]);
                return EX_UNAVAILABLE;
        }
        return event_base_dispatch(base) < 0 ? EX_OSERR : 0;
}
