#ifndef TESTS_FUZZ_TLS_CLIENT_H
#define TESTS_FUZZ_TLS_CLIENT_H

#include <stddef.h>
#include <sys/socket.h>

#include <openssl/ssl.h>

/*
 * A non-blocking TLS client that keeps records in memory until they are sent, so that several can share a
 * segment.
 */
struct tls_client {
        int fd;           /* -1: closed */
        SSL *session;     /* NULL: not opened yet */
        char *written;    /* plaintext of all records, for framing */
        size_t n_written; /* its length */
};

/*
 * Connect; server is the address of a stream socket. Returns 0, or -1 if the server refuses the connection.
 */
int tls_client_open(struct tls_client *client, SSL_CTX *context, const struct sockaddr *server,
                    socklen_t len);

/* Continue the handshake with the bytes received so far. Returns whether it is complete. */
int tls_client_handshake(struct tls_client *client);

/* Make a record. Does nothing before the handshake is complete. */
void tls_client_write(struct tls_client *client, const void *data, size_t len);

/* Make a close_notify record. */
void tls_client_close_notify(struct tls_client *client);

/* Request a key update (TLS 1.3) or a renegotiation (TLS 1.2), which the server refuses. */
void tls_client_rekey(struct tls_client *client);

/* Append bytes that are not a record. */
void tls_client_put_raw(struct tls_client *client, const void *data, size_t len);

/* Send up to len bytes of the records with one call. If flip is not 0, one byte is changed. */
void tls_client_send(struct tls_client *client, size_t len, unsigned flip);

/* Read the bytes that the server has sent. */
void tls_client_receive(struct tls_client *client);

/* Close the socket, if it is open. This resets the connection if bytes from the server are unread. */
void tls_client_hang_up(struct tls_client *client);

/* Close the socket and free all memory. */
void tls_client_clear(struct tls_client *client);

#endif
