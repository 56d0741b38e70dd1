#ifndef TESTS_FUZZ_TLS_CLIENT_H
#define TESTS_FUZZ_TLS_CLIENT_H

#include <stddef.h>
#include <sys/socket.h>

#include <openssl/ssl.h>

/*
 * A TLS client whose records stay in memory until they are sent, so that several of them can share one segment. It never
 * blocks.
 */
struct tls_client {
        int fd;           /* -1: closed */
        SSL *session;     /* NULL: not opened yet */
        char *written;    /* all that was written, in clear, for framing to judge */
        size_t n_written; /* bytes of it */
};

/* Connect; server is a stream socket's address. Returns 0, or -1 when the server does not take it. */
int tls_client_open(struct tls_client *client, SSL_CTX *context, const struct sockaddr *server,
                    socklen_t len);

/* Go on with the handshake as far as what has been received allows. Returns whether it is done. */
int tls_client_handshake(struct tls_client *client);

/* Make a record, once the handshake is done. */
void tls_client_write(struct tls_client *client, const void *data, size_t len);

/* Make a record that says that nothing more follows. */
void tls_client_close_notify(struct tls_client *client);

/* Ask for other keys (TLS 1.3), or for another handshake (TLS 1.2), which the server refuses. */
void tls_client_rekey(struct tls_client *client);

/* Put bytes that are no record behind the records. */
void tls_client_put_raw(struct tls_client *client, const void *data, size_t len);

/* Send up to len bytes of what has been made, by one call; one of the bytes is changed when flip is not 0. */
void tls_client_send(struct tls_client *client, size_t len, unsigned flip);

/* Read what the server has sent. */
void tls_client_receive(struct tls_client *client);

/* Close the socket, if it is open: a reset where bytes of the server have not been received. */
void tls_client_hang_up(struct tls_client *client);

/* Hang up and give memory back. */
void tls_client_clear(struct tls_client *client);

#endif
