#ifndef KAFKA_BROKER_TLS_H
#define KAFKA_BROKER_TLS_H

#include <librdkafka/rdkafka.h>
#include <openssl/ssl.h>

#include "base/compiler.h"
#include "base/error.h"

/* TLS towards brokers as librdkafka's properties describe it, without librdkafka. */

/* Return the value of a property, "" if it is not set. The caller frees it. */
char *broker_tls_property(const rd_kafka_conf_t *conf, const char *name);

/**
 * broker_tls_context(conf, error):
 * Make the context of a client: authorities, own certificate and key. Returns NULL with the reason.
 */
SSL_CTX *broker_tls_context(const rd_kafka_conf_t *conf, struct error *error) MUST_CHECK;

/*
 * Let the next sessions verify that the certificate is for this host; NULL: for any. Returns whether the host
 * is an address.
 */
int broker_tls_expect(SSL_CTX *context, const char *host);

#endif
