#include "config/config.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "config/secrets.h"

#define HEADERS_BYTES 65536

/*
 * librdkafka's default of receive.message.max.bytes, and the margin that it adds to a larger fetch.max.bytes.
 */
#define RECEIVE_DEFAULT INT64_C(100000000)
#define RECEIVE_MARGIN 512

static void
free_source(struct config_source *source)
{
        free(source->name);
        free(source->path);
        free(source->header_prefix);
        free(source->ce_source);
        free(source->ce_type_prefix);
        free(source->ce_dataschema_base);
        for (size_t i = 0; i < source->n_keys; i++)
                signature_key_free(source->keys[i]);
        free(source->keys);
        for (size_t i = 0; i < source->n_secret_files; i++)
                free(source->secret_files[i].path);
        free(source->secret_files);
        for (size_t i = 0; i < source->n_webhook_ids; i++)
                free(source->webhook_ids[i]);
        free(source->webhook_ids);
        pointer_clear(&source->rules.kind);
        pointer_clear(&source->rules.key);
        pointer_clear(&source->rules.subject);
}

static void
free_lists(struct config *config)
{
        for (size_t i = 0; i < config->n_listen; i++)
                free(config->listen[i].text);
        free(config->listen);
        free(config->trusted_proxies);
        for (size_t i = 0; i < config->n_sources; i++)
                free_source(&config->sources[i]);
        free(config->sources);
        for (size_t i = 0; i < config->n_kafka; i++) {
                free(config->kafka[i].name);
                secrets_free(config->kafka[i].value, strlen(config->kafka[i].value));
        }
        free(config->kafka);
        for (size_t i = 0; i < config->n_files; i++)
                free(config->files[i].path);
        free(config->files);
        for (size_t i = 0; i < config->n_awaiting; i++)
                free(config->awaiting[i]);
        free(config->awaiting);
}

/* After loading, only the number of holders changes. */
static struct config *
writable(const struct config *config)
{
        return (struct config *)(uintptr_t)config;
}

const struct config *
config_hold(const struct config *config)
{
        (void)atomic_fetch_add(&writable(config)->n_holders, 1);
        return config;
}

void
config_free(const struct config *held)
{
        struct config *config = writable(held);

        if (config == NULL || atomic_fetch_sub(&config->n_holders, 1) != 0)
                return;
        ini_clear(&config->ini);
        free_lists(config);
        topic_table_free(config->topics);
        if (config->admin != NULL)
                free(config->admin->text);
        free(config->admin);
        free(config->file);
        free(config->instance);
        free(config->topics_prefix);
        free(config->deliveries_topic);
        free(config->quarantine_topic);
        free(config->group);
        free(config->service_base_url);
        free(config->service_api_key_file);
        secrets_free(config->service_api_key,
                     config->service_api_key == NULL ? 0 : strlen(config->service_api_key));
        free(config->service_ca_file);
        free(config->tls_certificate_file);
        free(config->tls_key_file);
        free(config->spool);
        free(config->state);
        free(config->tls_client_ca_file);
        certificate_free(config->certificate);
        free(config);
}

static void
replace(char **text, char *other)
{
        free(*text);
        *text = other;
}

void
config_set_topics(struct config *config, const char *prefix)
{
        struct error ignored; /* the lines were accepted, or reported */

        replace(&config->topics_prefix, mem_strdup(prefix));
        replace(&config->deliveries_topic, mem_printf("%s.deliveries", config->topics_prefix));
        replace(&config->quarantine_topic, mem_printf("%s.quarantine", config->topics_prefix));
        replace(&config->group, mem_printf("%s.router", config->topics_prefix));
        topic_table_free(config->topics);
        config->topics = topic_table_new();
        for (size_t i = 0; i < config->ini.n; i++) {
                const struct ini_entry *entry = &config->ini.entries[i];

                if (entry->name != NULL && strcmp(entry->section, "events") == 0)
                        (void)!topic_table_add(config->topics, entry->name, entry->value, &ignored);
        }
        topic_table_add_defaults(config->topics, config->topics_prefix);
}

int64_t
config_max_record(const struct config *config)
{
        return (int64_t)config->max_body + HEADERS_BYTES;
}

const char *
config_property(const struct config *config, const char *name)
{
        for (size_t i = 0; i < config->n_kafka; i++) {
                if (strcmp(config->kafka[i].name, name) == 0)
                        return config->kafka[i].value;
        }
        return NULL;
}

size_t
config_find_line(const struct config *config, const char *section, const char *name)
{
        for (size_t i = 0; i < config->ini.n; i++) {
                const struct ini_entry *entry = &config->ini.entries[i];

                if (entry->name != NULL && strcmp(entry->section, section) == 0 &&
                    strcmp(entry->name, name) == 0)
                        return entry->line;
        }
        return 0;
}

size_t
config_line_of_value(const struct config *config, const char *value)
{
        size_t line = 0;

        for (size_t i = 0; i < config->ini.n; i++) {
                if (config->ini.entries[i].name != NULL && strcmp(config->ini.entries[i].value, value) == 0)
                        line = config->ini.entries[i].line;
        }
        return line;
}

const char *
config_tool_broker(const struct config *config)
{
        const char *protocol = config_property(config, "security.protocol");

        return protocol == NULL || strcasecmp(protocol, "plaintext") == 0 ? "BROKER"
                                                                          : "BROKER --command-config SUPER";
}

const char *
config_brokers(const struct config *config)
{
        const char *brokers = config->embedded ? "embedded" : config_property(config, "bootstrap.servers");

        return brokers == NULL ? "" : brokers;
}

/* Return fetch.max.bytes, or 0 if it is not configured. */
static int64_t
fetch_bytes(const struct config *config)
{
        const char *fetch = config_property(config, "fetch.max.bytes");

        return fetch == NULL ? 0 : strtoll(fetch, NULL, 0);
}

int64_t
config_receive_limit(const struct config *config)
{
        const char *limit = config_property(config, "receive.message.max.bytes");
        int64_t least = fetch_bytes(config) + RECEIVE_MARGIN;

        if (limit != NULL)
                return strtoll(limit, NULL, 0);
        return least > RECEIVE_DEFAULT ? least : RECEIVE_DEFAULT;
}

/* A response has at least one record, and more up to fetch.max.bytes. */
int64_t
config_receive_needed(const struct config *config, int64_t max_record)
{
        int64_t fetched = fetch_bytes(config);

        return (max_record < fetched ? fetched : max_record) + CONFIG_ANSWER_BYTES;
}

char *
config_command(const char *file)
{
        char *word = text_for_shell(file);
        char *command = strcmp(file, CONFIG_DEFAULT_FILE) == 0 ? mem_strdup("gatepost")
                                                               : mem_printf("gatepost -c %s", word);

        free(word);
        return command;
}

int
config_lists_webhook(const struct config_source *source, const char *id)
{
        for (size_t i = 0; i < source->n_webhook_ids; i++) {
                if (strcmp(source->webhook_ids[i], id) == 0)
                        return 1;
        }
        return 0;
}

const struct config_source *
config_find_source(const struct config *config, const char *name, size_t len)
{
        for (size_t i = 0; i < config->n_sources; i++) {
                if (strlen(config->sources[i].name) == len && memcmp(config->sources[i].name, name, len) == 0)
                        return &config->sources[i];
        }
        return NULL;
}

struct delivery_policy
config_delivery_policy(const struct config_source *source)
{
        return (struct delivery_policy){.header_prefix = source->header_prefix,
                                        .webhook_ids = source->webhook_ids,
                                        .n_webhook_ids = source->n_webhook_ids,
                                        .tolerance_ms = source->tolerance_ms,
                                        .keys = source->keys,
                                        .n_keys = source->n_keys};
}

int
config_add_secret(struct config_source *source, const char *secret, size_t len, struct error *error)
{
        struct signature_key *key = signature_key_new(secret, len);

        if (key == NULL)
                return error_set_openssl(error, "cannot use the secret");
        source->keys = mem_resize(source->keys, source->n_keys + 1, sizeof(key));
        source->keys[source->n_keys++] = key;
        if (source->secret_doubt == NULL)
                source->secret_doubt = secrets_doubt(secret);
        return 0;
}

int
config_add_secret_file(struct config *config, struct config_source *source, const char *path,
                       struct error *error)
{
        struct stat st;
        size_t len;
        char *secret;
        int result;

        for (size_t i = 0; i < source->n_secret_files; i++) {
                if (strcmp(source->secret_files[i].path, path) == 0)
                        return error_set(error, "duplicate %.100s", path);
        }
        if (secrets_check_path(path, error) != 0)
                return -1;
        secret = secrets_read_signing(path, &len, &st, error);
        if (secret == NULL)
                return -1;
        source->secret_files =
            mem_resize(source->secret_files, source->n_secret_files + 1, sizeof(*source->secret_files));
        source->secret_files[source->n_secret_files++] =
            (struct config_secret_file){mem_strdup(path), (int64_t)st.st_mtime};
        config_add_file(config, path, &st, 0);
        result = config_add_secret(source, secret, len, error);
        secrets_free(secret, len);
        return result;
}

/* Return the path, from the root if the working directory is known. */
static char *
absolute(const char *path)
{
        char *directory = path[0] == '/' ? NULL : getcwd(NULL, 0), *result;

        result = directory == NULL ? mem_strdup(path) : mem_printf("%s/%s", directory, path);
        free(directory);
        return result;
}

void
config_add_file(struct config *config, const char *path, const struct stat *st, int is_of_kafka)
{
        config->files = mem_resize(config->files, config->n_files + 1, sizeof(*config->files));
        config->files[config->n_files++] = (struct config_file){absolute(path), *st, is_of_kafka};
}

void
config_await_restart(struct config *config, const char *section, const char *name)
{
        config->awaiting = mem_resize(config->awaiting, config->n_awaiting + 1, sizeof(*config->awaiting));
        config->awaiting[config->n_awaiting++] =
            mem_printf("[%s]%s%s", section, name == NULL ? "" : " ", name == NULL ? "" : name);
}
