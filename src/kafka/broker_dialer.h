#ifndef KAFKA_BROKER_DIALER_H
#define KAFKA_BROKER_DIALER_H

#include "base/compiler.h"
#include "base/dial.h"
#include "base/error.h"
#include "config/config.h"

/*
 * Connects to a broker step by step as the properties in [kafka] say: TLS, then the login. wire.h says why
 * librdkafka is not asked. For diagnosis only.
 */
struct broker_dialer;

/* Returns NULL with the reason, such as a certificate that cannot be read. */
struct broker_dialer *broker_dialer_new(const struct config *config, struct error *error) MUST_CHECK;
void broker_dialer_free(struct broker_dialer *dialer);

/* The values of the properties, and whether the protocol has TLS, and a login. */
const char *broker_dialer_protocol(const struct broker_dialer *dialer);
const char *broker_dialer_mechanism(const struct broker_dialer *dialer);
int broker_dialer_uses_tls(const struct broker_dialer *dialer);
int broker_dialer_uses_login(const struct broker_dialer *dialer);

/* Return the certificate that it shows to brokers, and the chain after it, in a list to be freed; or NULL. */
STACK_OF(X509) * broker_dialer_chain(const struct broker_dialer *dialer);

/* Whether it can log in by the mechanism; if not, only librdkafka can. */
int broker_dialer_can_login(const struct broker_dialer *dialer);

/* Make the handshake of TLS. host is the name that the certificate must have. Returns 0, or -1. */
int broker_dialer_secure(struct broker_dialer *dialer, struct dial *dial, const char *host,
                         enum dial_failure *failure, struct error *error) MUST_CHECK;

/**
 * broker_dialer_greet(dial, is_controller, failure, error):
 * Ask the broker which requests it knows, as every client does first. *is_controller receives whether the
 * port is a listener of a KRaft controller, which does not serve clients. Returns 0, or -1 with the reason.
 */
int broker_dialer_greet(struct dial *dial, int *is_controller, enum dial_failure *failure,
                        struct error *error) MUST_CHECK;

enum broker_login {
        BROKER_LOGIN_DONE,
        BROKER_LOGIN_REJECTED,    /* the user, the password or the certificate */
        BROKER_LOGIN_MECHANISM,   /* not enabled; the reason lists those that are */
        BROKER_LOGIN_UNEXPECTED,  /* this port has no login */
        BROKER_LOGIN_REQUIRED,    /* this port has one, but none is configured */
        BROKER_LOGIN_UNSUPPORTED, /* by this dialer */
        BROKER_LOGIN_BROKEN,      /* the connection, or the answer */
};

/* Log in, or without a login check that the broker takes requests. The reason is set unless it is done. */
enum broker_login broker_dialer_login(struct broker_dialer *dialer, struct dial *dial, struct error *error);

/* Ask for the mechanisms that the broker has enabled, over a new connection. Returns 0, or -1 without any. */
int broker_dialer_mechanisms(struct dial *dial, struct error *list) MUST_CHECK;

/* Whether a server speaks TLS, or Kafka's protocol without TLS; each over a connection of its own. */
int broker_dialer_finds_tls(const struct addrinfo *addresses);
int broker_dialer_finds_plain(const struct addrinfo *addresses);

/* Connect to a broker by its name, with TLS and login. Returns 0, or -1 with the reason. */
int broker_dialer_open(struct broker_dialer *dialer, const char *host, const char *port, struct dial *dial,
                       struct error *error) MUST_CHECK;

/* The time limit of each step. */
#define BROKER_DIALER_TIMEOUT_MS 5000

#endif
