#include "tls_client.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/err.h>

#include "transcript.h"

int
tls_client_open(struct tls_client *client, SSL_CTX *context, const struct sockaddr *server, socklen_t len)
{
        memset(client, 0, sizeof(*client));
        client->fd = socket(server->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        MUST(client->fd >= 0);
        if (connect(client->fd, server, len) != 0) {
                (void)close(client->fd);
                client->fd = -1;
                return -1;
        }
        client->session = SSL_new(context);
        MUST(client->session != NULL);
        SSL_set_bio(client->session, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
        SSL_set_connect_state(client->session);
        return 0;
}

int
tls_client_handshake(struct tls_client *client)
{
        ERR_clear_error();
        (void)SSL_do_handshake(client->session);
        return SSL_is_init_finished(client->session);
}

void
tls_client_write(struct tls_client *client, const void *data, size_t len)
{
        size_t n = 0;

        ERR_clear_error();
        if (len == 0 || !SSL_is_init_finished(client->session) ||
            SSL_write_ex(client->session, data, len, &n) != 1)
                return;
        client->written = realloc(client->written, client->n_written + n);
        memcpy(client->written + client->n_written, data, n);
        client->n_written += n;
}

void
tls_client_close_notify(struct tls_client *client)
{
        ERR_clear_error();
        if (SSL_is_init_finished(client->session))
                (void)SSL_shutdown(client->session);
}

void
tls_client_rekey(struct tls_client *client)
{
        ERR_clear_error();
        if (!SSL_is_init_finished(client->session))
                return;
        if (SSL_version(client->session) == TLS1_3_VERSION)
                (void)SSL_key_update(client->session, SSL_KEY_UPDATE_REQUESTED);
        else
                (void)SSL_renegotiate(client->session);
        (void)SSL_do_handshake(client->session);
}

void
tls_client_put_raw(struct tls_client *client, const void *data, size_t len)
{
        (void)BIO_write(SSL_get_wbio(client->session), data, (int)len);
}

void
tls_client_send(struct tls_client *client, size_t len, unsigned flip)
{
        char *made;
        BIO *out = SSL_get_wbio(client->session);
        size_t there = BIO_ctrl_pending(out);

        if (there < len)
                len = there;
        if (len == 0 || client->fd < 0)
                return;
        made = malloc(len);
        MUST(BIO_read(out, made, (int)len) == (int)len);
        if (flip != 0)
                made[flip % len] ^= 1;
        (void)send(client->fd, made, len, MSG_NOSIGNAL); /* bytes that cannot be sent are lost */
        free(made);
}

void
tls_client_receive(struct tls_client *client)
{
        char data[16384];
        ssize_t n;

        while (client->fd >= 0 && (n = recv(client->fd, data, sizeof(data), 0)) > 0)
                (void)BIO_write(SSL_get_rbio(client->session), data, (int)n);
        if (!SSL_is_init_finished(client->session))
                return;
        do
                ERR_clear_error();
        while (SSL_read(client->session, data, sizeof(data)) > 0);
}

void
tls_client_hang_up(struct tls_client *client)
{
        if (client->fd >= 0)
                (void)close(client->fd);
        client->fd = -1;
}

void
tls_client_clear(struct tls_client *client)
{
        tls_client_hang_up(client);
        SSL_free(client->session);
        free(client->written);
        memset(client, 0, sizeof(*client));
        client->fd = -1;
        ERR_clear_error();
}
