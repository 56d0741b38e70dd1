#include "config/load.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/unit.h"
#include "base/uri.h"
#include "config/endpoint.h"
#include "config/secrets.h"

/* A value and the field to set. */
struct setting {
        const struct option_row *option;
        const char *value;
        void *field;
        struct config *config;
        struct config_source *source;
        struct error *error;
};

static const char name_chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

static int
set_text(struct setting *s)
{
        char **field = s->field;

        free(*field);
        *field = mem_strdup(s->value);
        return 0;
}

static int
set_name(struct setting *s)
{
        size_t len = strlen(s->value);

        if (len < s->option->min || len > s->option->max || strspn(s->value, name_chars) != len)
                return error_set(s->error, "'%.64s' is not a name of at most %d bytes", s->value,
                                 (int)s->option->max);
        return set_text(s);
}

/* A refused value leaves the field 0, so that later checks ignore it. */
static int
set_with(int (*parse)(const char *text, uint64_t min, uint64_t max, uint64_t *value, struct error *error),
         struct setting *s)
{
        uint64_t value;

        if (parse(s->value, s->option->min, s->option->max, &value, s->error) != 0)
                return -1;
        *(uint64_t *)s->field = value;
        return 0;
}

static int
set_number(struct setting *s)
{
        return set_with(number_parse, s);
}

static int
set_size(struct setting *s)
{
        return set_with(number_parse_size, s);
}

static int
set_duration(struct setting *s)
{
        return set_with(number_parse_duration, s);
}

/* Set a field by the word for 1; `off` is 0. */
static int
set_by_word(struct setting *s, const char *word)
{
        int is_on = strcmp(s->value, word) == 0;

        if (!is_on && strcmp(s->value, "off") != 0)
                return error_set(s->error, "'%.64s' is neither %s nor off", s->value, word);
        *(int *)s->field = is_on;
        return 0;
}

static int
set_switch(struct setting *s)
{
        return set_by_word(s, "on");
}

static int
set_required(struct setting *s)
{
        return set_by_word(s, "required");
}

static int
set_role(const char *name, unsigned *roles, struct error *error)
{
        if (strcmp(name, "receiver") == 0)
                *roles |= CONFIG_RECEIVER;
        else if (strcmp(name, "router") == 0)
                *roles |= CONFIG_ROUTER;
        else
                return error_set(error, "'%.64s' is not a role", name);
        return 0;
}

static int
set_roles(struct setting *s)
{
        char *list = mem_strdup(s->value), *rest = list, *name;
        unsigned roles = 0;
        int result = 0;

        while (result == 0 && (name = strsep(&rest, ",")) != NULL) {
                size_t len = strlen(name += strspn(name, " \t"));

                while (len > 0 && (name[len - 1] == ' ' || name[len - 1] == '\t'))
                        name[--len] = '\0';
                result = set_role(name, &roles, s->error);
        }
        free(list);
        *(unsigned *)s->field = roles;
        return result;
}

static int
set_level(struct setting *s)
{
        enum log_level *level = s->field;

        if (log_parse_level(s->value, level) == 0)
                return 0;
        return error_set(s->error, "'%.64s' is not a level", s->value);
}

static int
set_listen(struct setting *s)
{
        struct config *config = s->config;
        struct config_listen listen;

        if (endpoint_parse(s->value, &listen, s->error) != 0)
                return -1;
        config->listen = mem_resize(config->listen, config->n_listen + 1, sizeof(listen));
        config->listen[config->n_listen++] = listen;
        return 0;
}

static int
set_proxy(struct setting *s)
{
        struct config *config = s->config;
        struct network network;

        if (strcmp(s->value, "unix") == 0) {
                config->trusts_unix_sockets = 1;
                return 0;
        }
        if (network_parse(s->value, &network, s->error) != 0)
                return -1;
        config->trusted_proxies =
            mem_resize(config->trusted_proxies, config->n_trusted_proxies + 1, sizeof(network));
        config->trusted_proxies[config->n_trusted_proxies++] = network;
        return 0;
}

static int
set_admin(struct setting *s)
{
        struct config_listen listen;

        if (strcmp(s->value, "off") == 0)
                return 0;
        if (endpoint_parse(s->value, &listen, s->error) != 0)
                return -1;
        s->config->admin = mem_alloc(sizeof(listen));
        *s->config->admin = listen;
        return 0;
}

/* The path of a request target must equal it byte for byte, so it has only what such a path may have. */
static int
set_path(struct setting *s)
{
        static const char chars[] =
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/-._~!$&'()+,;=:@%";

        if (*s->value != '/' || s->value[strspn(s->value, chars)] != '\0')
                return error_set(s->error, "'%.64s' is not the path of a URL", s->value);
        return set_text(s);
}

static int
set_header(struct setting *s)
{
        size_t len = strlen(s->value);

        if (len == 0 || len > 100 || strspn(s->value, "abcdefghijklmnopqrstuvwxyz0123456789-") != len ||
            s->value[len - 1] == '-')
                return error_set(s->error, "'%.64s' is not the beginning of a header's name", s->value);
        return set_text(s);
}

/* The working directory of a daemon is not that of gatepost. */
static int
set_directory(struct setting *s)
{
        if (*s->value != '/')
                return error_set(s->error, "'%.100s' is not an absolute path", s->value);
        return set_text(s);
}

static int
set_secret(struct setting *s)
{
        size_t len = strlen(s->value);

        if (len < SIGNATURE_SECRET_MIN)
                return error_set(s->error, "the secret is shorter than %d bytes", SIGNATURE_SECRET_MIN);
        if (secrets_check_mode(s->config->files[0].st.st_mode, s->config->file, s->error) != 0)
                return -1;
        return config_add_secret(s->source, s->value, len, s->error);
}

static int
set_secret_file(struct setting *s)
{
        return config_add_secret_file(s->config, s->source, s->value, s->error);
}

static int
set_webhook_id(struct setting *s)
{
        struct config_source *source = s->source;
        size_t len = strlen(s->value);

        if (len < 1 || len > 64 || strspn(s->value, name_chars) != len || strpbrk(s->value, "._") != NULL)
                return error_set(s->error, "'%.70s' is not a webhook-id", s->value);
        source->webhook_ids = mem_resize(source->webhook_ids, source->n_webhook_ids + 1, sizeof(char *));
        source->webhook_ids[source->n_webhook_ids++] = mem_strdup(s->value);
        return 0;
}

static int
set_pointer(struct setting *s)
{
        return pointer_parse(s->value, s->field, s->error);
}

static int
set_key(struct setting *s)
{
        struct event_rules *rules = s->field;

        if (strcmp(s->value, "kind") == 0)
                rules->key_from = EVENT_KEY_KIND;
        else if (strcmp(s->value, "delivery-id") == 0)
                rules->key_from = EVENT_KEY_DELIVERY_ID;
        else if (strcmp(s->value, "webhook-id") == 0)
                rules->key_from = EVENT_KEY_WEBHOOK_ID;
        else if (s->value[0] == '/') {
                rules->key_from = EVENT_KEY_POINTER;
                return pointer_parse(s->value, &rules->key, s->error);
        } else
                return error_set(s->error, "'%.64s' is not a key", s->value);
        return 0;
}

/* Set a URI that consumers see. What a user and a password may be is not shown in the reason, either. */
static int
set_published(struct setting *s, int is_valid, const char *reason)
{
        if (uri_has_userinfo(s->value) || (!is_valid && strchr(s->value, '@') != NULL))
                return error_set(s->error,
                                 "what is before the @ would be published in each event (not shown, "
                                 "since it may be a password)");
        if (strlen(s->value) > s->option->max)
                return error_set(s->error, "'%.64s...' is longer than %d bytes", s->value,
                                 (int)s->option->max);
        return is_valid ? set_text(s) : error_set(s->error, "'%.64s' %s", s->value, reason);
}

static int
set_ce_source(struct setting *s)
{
        return set_published(s, uri_is_reference(s->value), "is not a URI or a path");
}

/* Without a separator at its end it would run into the kind. */
static int
set_ce_type(struct setting *s)
{
        static const char chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_/:";
        size_t len = strlen(s->value);
        int is_valid = strspn(s->value, chars) == len && strchr(".-_/:", s->value[len - 1]) != NULL;

        return set_published(s, is_valid, "is not a prefix that ends with one of . - _ / :");
}

static int
set_ce_schema(struct setting *s)
{
        int is_valid = uri_is_absolute(s->value) && strchr(s->value, '?') == NULL &&
                       s->value[strlen(s->value) - 1] == '/';

        return set_published(s, is_valid, "is not an absolute URI that ends with a slash");
}

static int
set_url(struct setting *s)
{
        return endpoint_check_url(s->value, s->error) != 0 ? -1 : set_text(s);
}

static int
set_api_key(struct setting *s)
{
        char **field = s->field;

        if (secrets_check_mode(s->config->files[0].st.st_mode, s->config->file, s->error) != 0 ||
            secrets_check_api_key(s->value, s->error) != 0)
                return -1;
        secrets_free(*field, *field == NULL ? 0 : strlen(*field));
        *field = mem_strdup(s->value);
        return 0;
}

/* This account need not be allowed to read the key, which only commands use. */
static int
set_api_key_file(struct setting *s)
{
        size_t len;
        char *key;
        int result;

        if (secrets_check_path(s->value, s->error) != 0 || secrets_check_file(s->value, s->error) != 0)
                return -1;
        if (eaccess(s->value, R_OK) != 0)
                return set_text(s);
        key = secrets_read(s->value, 1, &len, NULL, s->error);
        if (key == NULL)
                return -1;
        result = secrets_check_api_key(key, s->error);
        secrets_free(key, len);
        return result != 0 ? -1 : set_text(s);
}

static int (*const setters[])(struct setting *s) = {
    [OPTION_NAME] = set_name,
    [OPTION_NUMBER] = set_number,
    [OPTION_SIZE] = set_size,
    [OPTION_DURATION] = set_duration,
    [OPTION_SWITCH] = set_switch,
    [OPTION_REQUIRED] = set_required,
    [OPTION_ROLES] = set_roles,
    [OPTION_LEVEL] = set_level,
    [OPTION_LISTEN] = set_listen,
    [OPTION_PROXY] = set_proxy,
    [OPTION_ADMIN] = set_admin,
    [OPTION_PATH] = set_path,
    [OPTION_HEADER] = set_header,
    [OPTION_SECRET] = set_secret,
    [OPTION_SECRET_FILE] = set_secret_file,
    [OPTION_WEBHOOK_ID] = set_webhook_id,
    [OPTION_POINTER] = set_pointer,
    [OPTION_KEY] = set_key,
    [OPTION_CE_SOURCE] = set_ce_source,
    [OPTION_CE_TYPE] = set_ce_type,
    [OPTION_CE_SCHEMA] = set_ce_schema,
    [OPTION_URL] = set_url,
    [OPTION_API_KEY] = set_api_key,
    [OPTION_DIRECTORY] = set_directory,
    [OPTION_FILE] = set_text,
    [OPTION_API_KEY_FILE] = set_api_key_file,
};

int
values_set(const struct option_row *option, const char *value, struct config *config,
           struct config_source *source, struct error *error)
{
        struct setting setting = {option, value, NULL, config, source, error};

        if (*value == '\0')
                return error_set(error, "the value is missing");
        setting.field = source == NULL ? (char *)config + option->offset : (char *)source + option->offset;
        return setters[option->type](&setting);
}

const char *
values_form(const struct option_row *option)
{
        static const char *const forms[] = {
            [OPTION_NAME] = "use letters, digits, dots, hyphens and underscores only",
            [OPTION_ROLES] = "write receiver, router, or both: receiver, router",
            [OPTION_LEVEL] = "write debug, info, notice, warning or error",
            [OPTION_LISTEN] = "write 127.0.0.1:8080, [::1]:8080, *:8080 or unix:/run/gatepost/receiver.sock",
            [OPTION_ADMIN] = "write 127.0.0.1:9464, [::1]:9464, unix:/run/gatepost/admin.sock or off",
            [OPTION_PATH] =
                "write a path such as /webhooks/invoicing, with characters other than letters and "
                "digits as %NN",
            [OPTION_HEADER] = "use lowercase letters, digits and hyphens, such as x-invoicing",
            [OPTION_WEBHOOK_ID] = "use at most 64 letters, digits and hyphens",
            [OPTION_DIRECTORY] = "begin it with a slash, such as " STATE_DIRECTORY "/spool",
            [OPTION_KEY] = "write kind, delivery-id, webhook-id or a JSON pointer such as /invoiceId",
            [OPTION_CE_SOURCE] = "write a URI or a path such as /invoicing, with other characters as %NN",
            [OPTION_CE_TYPE] = "write a prefix such as com.example.",
            [OPTION_CE_SCHEMA] = "write a URI such as https://schemas.example/gatepost/",
            [OPTION_URL] = "write https://api.example/v1; http is for 127.0.0.1, [::1] and localhost only",
        };

        return option->type < ARRAY_LEN(forms) ? forms[option->type] : NULL;
}
