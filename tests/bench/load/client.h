#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#include <openssl/ssl.h>

/*
 * A keep-alive connection with at most one request under way. Fatal errors (connection refused, malformed
 * answer) end the process, as they invalidate the measurement.
 *
 *   idle --client_send()--> sending --request written--> awaiting --answer complete--> idle
 */
struct client {
        struct sockaddr_in address;
        SSL_CTX *tls; /* NULL: no TLS */
        SSL *ssl;
        int fd;
        int is_sending;
        char *request; /* written by the caller before client_send() */
        size_t request_len;
        size_t n_written;
        char answer[4096];
        size_t n_read;
        int64_t due_ns;      /* the caller's */
        struct client *next; /* the caller's */
};

/*
 * Connect. The caller sets address, tls, request and request_len before. data.ptr of epoll's events is the
 * client.
 */
void client_open(struct client *client, int epoll);
void client_close(struct client *client);

/* Begin to send the request. */
void client_send(struct client *client, int epoll);

/**
 * client_handle(client, epoll, events):
 * Handle events from epoll. Returns the status when the answer is complete, 0 when it is not, or -1 when the
 * server has closed the connection: then the request is lost, and the client is connected again and idle.
 */
int client_handle(struct client *client, int epoll, uint32_t events);

#endif
