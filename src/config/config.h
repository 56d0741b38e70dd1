#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/address.h"
#include "base/compiler.h"
#include "base/log.h"
#include "config/certificate.h"
#include "config/findings.h"
#include "config/ini.h"
#include "model/delivery_check.h"
#include "model/rules.h"
#include "model/signature.h"
#include "model/topic_table.h"

/*
 * The configuration, read from one INI file, const after loading. Times are in milliseconds, sizes in bytes.
 * The table in options.c has all options; gatepost.conf(5) describes them.
 */
enum config_role { CONFIG_RECEIVER = 1, CONFIG_ROUTER = 2 };

/* The configuration, unless -c names another. */
#define CONFIG_DEFAULT_FILE SYSCONFDIR "/gatepost/gatepost.conf"

/*
 * Return how to call gatepost with a configuration file, for a shell: `gatepost`, or `gatepost -c FILE`. The
 * caller frees it.
 */
char *config_command(const char *file);

#define CONFIG_LISTEN_MAX 64

/* Where to listen: an address of the family, or a path for AF_UNIX. */
struct config_listen {
        char *text; /* as configured: 0.0.0.0:8443, [::1]:8443, unix:/run/gatepost/receiver.sock */
        struct sockaddr_storage address;
        socklen_t address_len;
};

/* A file that was read, and its state before that. */
struct config_file {
        char *path; /* absolute */
        struct stat st;
        int is_of_kafka; /* [kafka] names it, so that another one takes effect at a restart */
};

/* A file from which a secret was read. */
struct config_secret_file {
        char *path;
        int64_t written_s; /* since the epoch */
};

struct config_source {
        struct event_rules rules; /* rules.source is the name */
        char *name;
        char *path;          /* begins with a slash, has no `?` */
        char *header_prefix; /* lowercase, without the final hyphen */
        char *ce_source;     /* these three are in the rules, too */
        char *ce_type_prefix;
        char *ce_dataschema_base;
        struct signature_key **keys;
        size_t n_keys;                           /* at least 1 */
        struct config_secret_file *secret_files; /* files of the keys that come from files */
        size_t n_secret_files;
        const char *secret_doubt; /* what makes one of the secrets doubtful: secrets_doubt() */
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
        atomic_uint n_holders; /* besides the caller who loaded it */
        char *file;
        struct ini ini;            /* its entries, with secrets masked */
        struct config_file *files; /* first this one, then those that it names and that gatepostd reads */
        size_t n_files;
        char **awaiting; /* options of the file that only a restart applies, such as "[receiver] threads" */
        size_t n_awaiting;
        unsigned roles; /* config_role bits, at least one */
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
        int trusts_unix_sockets; /* clients of Unix-domain sockets are trusted proxies */
        uint64_t max_headers;
        uint64_t header_timeout_ms;
        uint64_t request_timeout_ms;
        uint64_t idle_timeout_ms;
        uint64_t ack_timeout_ms;
        char *spool; /* the directory; NULL: none */
        uint64_t spool_max;
        int requires_proxy; /* connections begin with the PROXY protocol */
        uint64_t handshake_timeout_ms;
        char *tls_certificate_file; /* NULL, like tls_key_file: no TLS */
        char *tls_key_file;
        char *tls_client_ca_file; /* NULL: clients need no certificate */
        /* Certificate and key from these files; NULL without TLS or without a receiver. */
        struct certificate *certificate;

        uint64_t dedup_window_ms;
        char *state; /* the directory of the router's state; NULL: none */
        uint64_t max_batch;
        uint64_t max_batch_bytes;
        int standby; /* the router keeps the dedup tables of other routers' partitions, too */
        int verify;  /* the router verifies signatures; then the rules of each source have its keys */

        struct config_source *sources;
        size_t n_sources; /* at least 1 */

        char *topics_prefix;
        char *deliveries_topic;     /* <prefix>.deliveries */
        char *quarantine_topic;     /* <prefix>.quarantine */
        char *group;                /* <prefix>.router */
        struct topic_table *topics; /* [events] and the default table */

        int embedded; /* bootstrap.servers = embedded, which is not kept as a property */
        struct config_property *kafka;
        size_t n_kafka;

        struct config_listen *admin; /* NULL: no admin endpoint */
        int admin_allows_remote;     /* other machines may connect to it */

        char *service_base_url;     /* NULL: not configured */
        char *service_api_key_file; /* likewise; cli/service.c reads it */
        char *service_api_key;      /* likewise */
        char *service_ca_file;      /* NULL: the system's */
};

/**
 * config_load_reporting(file, findings):
 * Read and check a configuration. Append all errors and warnings, in the order of their lines. Return the
 * configuration, or NULL if there is an error. No finding contains a secret.
 */
struct config *config_load_reporting(const char *file, struct findings *findings) MUST_CHECK;

/* The same, but write the errors to stderr, and leave out the warnings. */
struct config *config_load(const char *file) MUST_CHECK;

/**
 * config_find_line(config, section, name):
 * Return the line that sets an option, of any source, or 0.
 */
size_t config_find_line(const struct config *config, const char *section, const char *name);

/* Return the last line whose value is this text, such as an address or a file, or 0. */
size_t config_line_of_value(const struct config *config, const char *value);

/*
 * Add a holder, who releases the configuration with config_free(). Any thread may call both. Return config.
 */
const struct config *config_hold(const struct config *config);

/* Release the configuration; the last holder frees it. NULL is harmless. */
void config_free(const struct config *config);

/**
 * config_print(file, json, out):
 * Write the effective configuration: every option with its value and its origin, a line or the default.
 * Secrets are masked. Return 0, or -1 after writing the errors to stderr.
 */
int config_print(const char *file, int json, FILE *out) MUST_CHECK;

/* Return the largest size of a record, which topics must allow: max_body and 64 KiB for headers. */
int64_t config_max_record(const struct config *config);

/* Return whether an ID is among the webhook_ids of a source, which if it has none accepts any. */
int config_lists_webhook(const struct config_source *source, const char *id);

/* Return the value of a property in [kafka], or NULL. */
const char *config_property(const struct config *config, const char *name);

/*
 * Return what follows --bootstrap-server in a command of Kafka's tools: where the brokers want TLS or an
 * account, the tools need a file with such settings, too.
 */
const char *config_tool_broker(const struct config *config);

/* Return bootstrap.servers: a list of brokers, or "embedded". */
const char *config_brokers(const struct config *config);

/* Room for the overhead of a broker's response: a few bytes per partition. */
#define CONFIG_ANSWER_BYTES (1 << 20)

/**
 * config_receive_limit(config), config_receive_needed(config, max_record):
 * Return the largest response of a broker that a consumer accepts, receive.message.max.bytes, and the size it
 * needs for records of at most max_record bytes. librdkafka drops a larger response and fetches it again,
 * forever.
 */
int64_t config_receive_limit(const struct config *config);
int64_t config_receive_needed(const struct config *config, int64_t max_record);

/**
 * config_for_secret(secret_file, header_prefix, error):
 * Make a configuration without a file: one source with this secret and header prefix, which is also its name,
 * and defaults. Release it with config_free(). Return NULL with the reason if the secret cannot be read.
 */
struct config *config_for_secret(const char *secret_file, const char *header_prefix,
                                 struct error *error) MUST_CHECK;

/* Add a secret of len bytes to a source. Return 0, or -1 with the reason. */
int config_add_secret(struct config_source *source, const char *secret, size_t len,
                      struct error *error) MUST_CHECK;

/* Add a file with a signing secret to a source, and the secret. Return 0, or -1 with the reason. */
int config_add_secret_file(struct config *config, struct config_source *source, const char *path,
                           struct error *error) MUST_CHECK;

/* Add a file that was read, with its state before that. */
void config_add_file(struct config *config, const char *path, const struct stat *st, int is_of_kafka);

/* Set the names of topics and the topics of events by a prefix, and [events] of the file. */
void config_set_topics(struct config *config, const char *prefix);

/* Note that only a restart applies an option of this file, or a whole section, whose name is NULL. */
void config_await_restart(struct config *config, const char *section, const char *name);

/* Return the source with the name of len bytes, or NULL. */
const struct config_source *config_find_source(const struct config *config, const char *name, size_t len);

/* The source's rules for deliveries; they borrow from the source. */
struct delivery_policy config_delivery_policy(const struct config_source *source);

#endif
