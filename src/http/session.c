#include "http/session.h"

#include <openssl/err.h>

#include <event2/bufferevent_ssl.h>

#include "http/tls_log.h"

/* What OpenSSL said last of a connection that failed; 0: nothing. */
static unsigned long
take_error(struct bufferevent *bev)
{
        unsigned long code, last = 0;

        while ((code = bufferevent_get_openssl_error(bev)) != 0) {
                if (last == 0 && ERR_GET_LIB(code) != 0)
                        last = code;
        }
        return last;
}

void
session_end(const struct connection *connection)
{
        SSL *session = bufferevent_openssl_get_ssl(connection->bev);
        unsigned long code;

        if (session == NULL || connection->stage == STAGE_ARRIVING)
                return;
        code = take_error(connection->bev);
        if (!connection->broken_off)
                tls_log_end(session, connection->stage == STAGE_HANDSHAKE, code, &connection->client);
        if (code == 0)
                tls_say_goodbye(session);
}

void
session_detach(const struct connection *connection)
{
        SSL *session = bufferevent_openssl_get_ssl(connection->bev);

        if (session == NULL)
                return;
        SSL_set_info_callback(session, NULL);
        SSL_set_app_data(session, NULL);
}

int
session_is_current(const struct connection *connection)
{
        return tls_is_current(connection->all->tls, bufferevent_openssl_get_ssl(connection->bev));
}

/* The handshake is done; an info callback of OpenSSL's. */
static void
on_progress(const SSL *session, int where, int value)
{
        struct connection *connection = SSL_get_app_data(session);

        (void)value;
        if ((where & SSL_CB_HANDSHAKE_DONE) && connection->stage == STAGE_HANDSHAKE)
                connection_enter(connection, STAGE_IDLE);
}

struct bufferevent *
session_new(struct connection *connection)
{
        struct connections *all = connection->all;
        SSL *session;

        if (all->tls == NULL)
                return bufferevent_socket_new(all->base, -1, BEV_OPT_CLOSE_ON_FREE);
        session = tls_session(all->tls);
        if (session == NULL)
                return NULL;
        if (SSL_set_app_data(session, connection) != 1) { /* it allocates */
                ERR_clear_error();
                SSL_free(session);
                return NULL;
        }
        SSL_set_info_callback(session, on_progress);
        /* It also frees a session that it cannot take. */
        return bufferevent_openssl_socket_new(all->base, -1, session, BUFFEREVENT_SSL_ACCEPTING,
                                              BEV_OPT_CLOSE_ON_FREE);
}
