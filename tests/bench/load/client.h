#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#include <openssl/ssl.h>

/*
 * One connection that is kept alive and has one request under way at most. What cannot go on (nobody listens, an answer
 * that is no HTTP) ends the process: a measurement with that in it would be none.
 *
 *   idle --client_send()--> sending --all is written--> awaiting --the answer is there--> idle
 */
struct client {
        struct sockaddr_in address;
        SSL_CTX *tls; /* NULL: without */
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

/* Fill in address, tls, request and request_len before. epoll watches it; the events' data.ptr is the client. */
void client_open(struct client *client, int epoll);
void client_close(struct client *client);

/* Write as much as goes. */
void client_send(struct client *client, int epoll);

/**
 * client_go_on(client, epoll, events):
 * What epoll reports. Returns the status of an answer that is complete now; 0 when none is; -1 when the server has closed
 * the connection, which is then opened anew and idle, the request lost.
 */
int client_go_on(struct client *client, int epoll, uint32_t events);

#endif
