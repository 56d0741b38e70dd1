#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/address.h"
#include "base/compiler.h"
#include "base/log.h"
#include "config/certificate.h"
#include "config/problems.h"
#include "model/delivery_check.h"
#include "model/rules.h"
#include "model/signature.h"
#include "model/topic_table.h"

/*
 * The configuration, read from one INI file, const after loading. Times are in milliseconds, sizes in bytes.
 * Every option stands in the table of options.c; gatepost.conf(5) describes them.
 */
enum config_role { CONFIG_RECEIVER = 1, CONFIG_ROUTER = 2 };

#define CONFIG_LISTEN_MAX 64

/* Where to listen: an address of the family, or a path for AF_UNIX. */
struct config_listen {
        char *text; /* as configured: 0.0.0.0:8443, [::1]:8443, unix:/run/gatepost/receiver.sock */
        struct sockaddr_storage address;
        socklen_t address_len;
};

/* Where a secret was read from. */
struct config_secret_file {
        char *path;
        int64_t written_s; /* since the epoch */
};

struct config_source {
        struct event_rules rules; /* rules.source is the name */
        char *name;
        char *path;          /* begins with a slash, has no `?` */
        char *header_prefix; /* lowercase, without the hyphen at its end */
        struct signature_key **keys;
        size_t n_keys;                           /* at least 1 */
        struct config_secret_file *secret_files; /* those of the keys that come from files */
        size_t n_secret_files;
        char **webhook_ids;
        size_t n_webhook_ids; /* 0: any */
        uint64_t tolerance_ms;
        int replay_guard;
};

/* A property for every Kafka client, by librdkafka's own name. */
struct config_property {
        char *name;
        char *value;
        int secret;
};

struct config {
        atomic_uint n_holders; /* beside the one who loaded it */
        char *file;
        mode_t file_mode; /* when it was read */
        unsigned roles;   /* config_role bits, at least one */
        char *instance;
        enum log_level log_level;

        struct config_listen *listen;
        size_t n_listen; /* at least 1 for a receiver, CONFIG_LISTEN_MAX at most */
        uint64_t threads;
        uint64_t max_body;
        uint64_t max_in_flight;
        uint64_t max_connections;
        uint64_t max_connections_per_address; /* 0: no limit */
        uint64_t max_refusals_per_address;    /* a second; 0: no limit */
        struct network *trusted_proxies;
        size_t n_trusted_proxies;
        int trusts_unix_sockets; /* whoever connects to one is a trusted proxy */
        uint64_t max_headers;
        uint64_t header_timeout_ms;
        uint64_t request_timeout_ms;
        uint64_t idle_timeout_ms;
        uint64_t ack_timeout_ms;
        int requires_proxy; /* connections begin with the PROXY protocol */
        uint64_t handshake_timeout_ms;
        char *tls_certificate_file; /* NULL, as tls_key_file: deliveries come without TLS */
        char *tls_key_file;
        char *tls_client_ca_file; /* NULL: clients need no certificate */
        size_t tls_line;          /* of tls_certificate_file in the file */
        /* What stands in these files; NULL also where there is no receiver. */
        struct certificate *certificate;

        uint64_t dedup_window_ms;
        uint64_t max_batch;
        uint64_t max_batch_bytes;
        int verify; /* the router verifies records again: the rules of each source have its keys */

        struct config_source *sources;
        size_t n_sources; /* at least 1 */

        char *topics_prefix;
        char *deliveries_topic; /* <prefix>.deliveries */
        char *quarantine_topic; /* <prefix>.quarantine */
        char *group;            /* <prefix>.router */
        int has_events;         /* the table below is the file's, not the default one */
        struct topic_table *topics;

        int embedded; /* bootstrap.servers = embedded; then it is not among the properties */
        struct config_property *kafka;
        size_t n_kafka;
        size_t receive_line; /* of receive.message.max.bytes in the file of a router; 0: it is not there */

        struct config_listen *admin; /* NULL: no admin endpoint */
        int admin_allows_remote;     /* else only this machine can connect to it */

        char *service_base_url;     /* NULL: not configured */
        char *service_api_key_file; /* likewise; not looked into yet: cli/service_key.h */
        char *service_api_key;      /* likewise */
        char *service_ca_file;      /* NULL: the system's */
};

/**
 * config_load(file):
 * Read and check a configuration. Returns it, or NULL after writing every error in it to stderr, each as
 * `file:line: what is wrong and how to mend it`, without ever printing a secret. Warnings are written likewise.
 */
struct config *config_load(const char *file) MUST_CHECK;

/* The same, but each error is told to somebody. */
struct config *config_load_telling(const char *file, problems_teller *tell) MUST_CHECK;

/* One more may use the configuration, until it calls config_free(). Any thread may hold and free. Returns config. */
const struct config *config_hold(const struct config *config);

/* The caller has done with the configuration, which goes with the last of those who hold it. NULL is harmless. */
void config_free(const struct config *config);

/**
 * config_print(file, json, out):
 * Write the effective configuration: every option with its value and where it comes from (line, or default), secrets
 * masked. Returns 0, or -1 after writing the errors to stderr.
 */
int config_print(const char *file, int json, FILE *out) MUST_CHECK;

/* The size of the largest record of a delivery, which topics must take: max_body and 64 KiB for the headers. */
int64_t config_max_record(const struct config *config);

/* The value of a property in [kafka], or NULL. */
const char *config_property(const struct config *config, const char *name);

/* Room for what stands around the records of a broker's answer: a few bytes for each partition. */
#define CONFIG_ANSWER_BYTES (1 << 20)

/**
 * config_receive_limit(config), config_receive_needed(config, max_record):
 * The size of the largest answer of a broker that a consumer reads, receive.message.max.bytes, and the size that is needed
 * when records have at most max_record bytes. librdkafka drops a larger answer, and asks for it again and again.
 */
int64_t config_receive_limit(const struct config *config);
int64_t config_receive_needed(const struct config *config, int64_t max_record);

/* The source with the name of len bytes, or NULL. */
const struct config_source *config_find_source(const struct config *config, const char *name, size_t len);

/* The source's rules for deliveries; they borrow from the source. */
struct delivery_policy config_delivery_policy(const struct config_source *source);

#endif
