#include "kafka/broker_dialer.h"

#include <stdlib.h>
#include <string.h>

#include <librdkafka/rdkafka.h>
#include <openssl/crypto.h>

#include "base/mem.h"
#include "kafka/broker_tls.h"
#include "kafka/scram.h"
#include "kafka/wire.h"

struct broker_dialer {
        char *protocol;  /* in lower case */
        char *mechanism; /* of SASL */
        char *user;
        char *password;
        SSL_CTX *tls; /* NULL: no TLS */
        int checks_name;
};

/* Make the conf of all clients, as far as [kafka] says. The configuration has been checked. */
static rd_kafka_conf_t *
make_conf(const struct config *config)
{
        rd_kafka_conf_t *conf = rd_kafka_conf_new();

        for (size_t i = 0; i < config->n_kafka; i++)
                (void)rd_kafka_conf_set(conf, config->kafka[i].name, config->kafka[i].value, NULL, 0);
        return conf;
}

struct broker_dialer *
broker_dialer_new(const struct config *config, struct error *error)
{
        struct broker_dialer *dialer = mem_alloc(sizeof(*dialer));
        rd_kafka_conf_t *conf = make_conf(config);
        char *identification = broker_tls_property(conf, "ssl.endpoint.identification.algorithm");
        int result = 0;

        dialer->protocol = broker_tls_property(conf, "security.protocol");
        dialer->mechanism = broker_tls_property(conf, "sasl.mechanism");
        dialer->user = broker_tls_property(conf, "sasl.username");
        dialer->password = broker_tls_property(conf, "sasl.password");
        dialer->checks_name = strcmp(identification, "https") == 0;
        free(identification);
        if (strstr(dialer->protocol, "ssl") != NULL) {
                dialer->tls = broker_tls_context(conf, error);
                result = dialer->tls == NULL ? -1 : 0;
        }
        rd_kafka_conf_destroy(conf);
        if (result == 0)
                return dialer;
        broker_dialer_free(dialer);
        return NULL;
}

void
broker_dialer_free(struct broker_dialer *dialer)
{
        if (dialer == NULL)
                return;
        OPENSSL_cleanse(dialer->password, strlen(dialer->password));
        free(dialer->protocol);
        free(dialer->mechanism);
        free(dialer->user);
        free(dialer->password);
        SSL_CTX_free(dialer->tls);
        free(dialer);
}

const char *
broker_dialer_protocol(const struct broker_dialer *dialer)
{
        return dialer->protocol;
}

const char *
broker_dialer_mechanism(const struct broker_dialer *dialer)
{
        return dialer->mechanism;
}

int
broker_dialer_uses_tls(const struct broker_dialer *dialer)
{
        return dialer->tls != NULL;
}

int
broker_dialer_uses_login(const struct broker_dialer *dialer)
{
        return strncmp(dialer->protocol, "sasl_", 5) == 0;
}

STACK_OF(X509) * broker_dialer_chain(const struct broker_dialer *dialer)
{
        X509 *leaf = dialer->tls == NULL ? NULL : SSL_CTX_get0_certificate(dialer->tls);
        STACK_OF(X509) *others = NULL, *all = leaf == NULL ? NULL : sk_X509_new_null();

        if (all == NULL || SSL_CTX_get0_chain_certs(dialer->tls, &others) != 1 ||
            X509_add_cert(all, leaf, X509_ADD_FLAG_DEFAULT) != 1 ||
            (others != NULL && X509_add_certs(all, others, X509_ADD_FLAG_DEFAULT) != 1)) {
                sk_X509_free(all);
                return NULL;
        }
        return all;
}

int
broker_dialer_can_login(const struct broker_dialer *dialer)
{
        static const char *const known[] = {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"};

        for (size_t i = 0; i < ARRAY_LEN(known) && broker_dialer_uses_login(dialer); i++) {
                if (strcmp(dialer->mechanism, known[i]) == 0)
                        return 1;
        }
        return !broker_dialer_uses_login(dialer);
}

int
broker_dialer_secure(struct broker_dialer *dialer, struct dial *dial, const char *host,
                     enum dial_failure *failure, struct error *error)
{
        int is_address = broker_tls_expect(dialer->tls, dialer->checks_name ? host : NULL);

        return dial_secure(dial, dialer->tls, is_address ? NULL : host, BROKER_DIALER_TIMEOUT_MS, failure,
                           error);
}

/* Whether a list of requests is that of a controller: all brokers know Metadata, but no controller does. */
static int
lists_no_metadata(struct wire_answer *answer)
{
        int32_t n = wire_get_count(answer);
        int found = 0;

        for (int32_t i = 0; i < n && !answer->is_short; i++) {
                if (wire_get(answer, 2) == WIRE_METADATA)
                        found = 1;
                wire_skip(answer, 2 + 2); /* the versions */
        }
        return n > 0 && !found && !answer->is_short;
}

int
broker_dialer_greet(struct dial *dial, int *is_controller, enum dial_failure *failure, struct error *error)
{
        struct wire_request request;
        struct wire_answer answer;
        int result;

        wire_begin(&request, WIRE_API_VERSIONS, 0);
        result = wire_call(dial, &request, &answer, BROKER_DIALER_TIMEOUT_MS, failure, error);
        if (result == 0 && (wire_get(&answer, 2) != 0 || answer.is_short))
                result = error_set(error, "the broker refuses the first request of every client");
        *is_controller = result == 0 && lists_no_metadata(&answer);
        wire_clear(&answer);
        return result;
}

/* Choose a mechanism. Returns Kafka's error, or -1 with the reason; list receives the broker's mechanisms. */
static int
choose(struct dial *dial, const char *mechanism, struct error *list, struct error *error)
{
        struct wire_request request;
        struct wire_answer answer;
        enum dial_failure failure;
        int code = -1;

        list->text[0] = '\0';
        wire_begin(&request, WIRE_SASL_HANDSHAKE, 1);
        wire_put_string(&request, mechanism);
        if (wire_call(dial, &request, &answer, BROKER_DIALER_TIMEOUT_MS, &failure, error) == 0) {
                code = (int)wire_get(&answer, 2);
                (void)error_set(error, "the broker answers: %s", rd_kafka_err2str(code));
                for (int32_t i = 0, n = wire_get_count(&answer); i < n && !answer.is_short; i++) {
                        char *each = wire_get_string(&answer), before[sizeof(list->text)];

                        memcpy(before, list->text, sizeof(before));
                        (void)error_set(list, "%s%s%s", before, i == 0 ? "" : ", ", each);
                        free(each);
                }
                if (answer.is_short)
                        code = error_set(error, "the broker's answer is too short");
        }
        wire_clear(&answer);
        return code;
}

/* Send a message of SASL. Returns the broker's message, which the caller frees; NULL with the reason. */
static char *
exchange(struct dial *dial, const void *message, size_t len, enum broker_login *login, struct error *error)
{
        struct wire_request request;
        struct wire_answer answer;
        enum dial_failure failure;
        char *reply = NULL, *why;

        wire_begin(&request, WIRE_SASL_AUTHENTICATE, 0);
        wire_put_bytes(&request, message, len);
        *login = BROKER_LOGIN_BROKEN;
        if (wire_call(dial, &request, &answer, BROKER_DIALER_TIMEOUT_MS, &failure, error) == 0) {
                int code = (int)wire_get(&answer, 2);
                const uint8_t *bytes;
                size_t n;

                why = wire_get_string(&answer);
                bytes = wire_get_bytes(&answer, &n);
                if (code == 0 && !answer.is_short)
                        reply = mem_strndup((const char *)bytes, n);
                else if (code == 0)
                        (void)error_set(error, "the broker's answer is too short");
                else
                        (void)error_set(error, "%s", *why == '\0' ? rd_kafka_err2str(code) : why);
                if (!answer.is_short)
                        *login = code == 0 ? BROKER_LOGIN_DONE : BROKER_LOGIN_REJECTED;
                free(why);
        }
        wire_clear(&answer);
        return reply;
}

static enum broker_login
login_plain(const struct broker_dialer *dialer, struct dial *dial, struct error *error)
{
        size_t user_len = strlen(dialer->user), password_len = strlen(dialer->password);
        size_t len = user_len + password_len + 2;
        char *message = mem_alloc(len + 1);
        enum broker_login login;

        memcpy(message + 1, dialer->user, user_len);
        memcpy(message + user_len + 2, dialer->password, password_len);
        free(exchange(dial, message, len, &login, error));
        OPENSSL_cleanse(message, len);
        free(message);
        return login;
}

static enum broker_login
login_scram(const struct broker_dialer *dialer, struct dial *dial, struct error *error)
{
        struct scram *scram = scram_new(dialer->mechanism, dialer->user, dialer->password);
        enum broker_login login;
        char *reply = exchange(dial, scram_first(scram), strlen(scram_first(scram)), &login, error);
        const char *final = reply == NULL ? NULL : scram_final(scram, reply, error);

        if (reply != NULL && final == NULL)
                login = BROKER_LOGIN_BROKEN;
        free(reply);
        reply = final == NULL ? NULL : exchange(dial, final, strlen(final), &login, error);
        if (reply != NULL && scram_check(scram, reply, error) != 0)
                login = BROKER_LOGIN_BROKEN;
        free(reply);
        scram_free(scram);
        return login;
}

/* Without a login: ask for something that only those may ask who need not log in. */
static enum broker_login
try_without(struct dial *dial, struct error *error)
{
        struct wire_request request;
        struct wire_answer answer;
        enum dial_failure failure;
        int result;

        wire_begin(&request, WIRE_METADATA, 8);
        wire_put(&request, 0, 4); /* of no topic */
        wire_put(&request, 0, 3); /* create none; no permissions */
        result = wire_call(dial, &request, &answer, BROKER_DIALER_TIMEOUT_MS, &failure, error);
        wire_clear(&answer);
        if (result == 0)
                return BROKER_LOGIN_DONE;
        return failure == DIAL_CLOSED ? BROKER_LOGIN_REQUIRED : BROKER_LOGIN_BROKEN;
}

enum broker_login
broker_dialer_login(struct broker_dialer *dialer, struct dial *dial, struct error *error)
{
        struct error list;
        int code;

        if (!broker_dialer_uses_login(dialer))
                return try_without(dial, error);
        code = choose(dial, dialer->mechanism, &list, error);
        if (code == RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM) {
                *error = list;
                return BROKER_LOGIN_MECHANISM;
        }
        if (code == RD_KAFKA_RESP_ERR_ILLEGAL_SASL_STATE) {
                (void)error_set(error, "this port has no login");
                return BROKER_LOGIN_UNEXPECTED;
        }
        if (code != 0)
                return BROKER_LOGIN_BROKEN;
        if (!broker_dialer_can_login(dialer)) {
                (void)error_set(error, "only librdkafka can log in by %s", dialer->mechanism);
                return BROKER_LOGIN_UNSUPPORTED;
        }
        return strcmp(dialer->mechanism, "PLAIN") == 0 ? login_plain(dialer, dial, error)
                                                       : login_scram(dialer, dial, error);
}

int
broker_dialer_mechanisms(struct dial *dial, struct error *list)
{
        struct error error;

        (void)choose(dial, "", list, &error);
        return list->text[0] == '\0' ? -1 : 0;
}

int
broker_dialer_finds_tls(const struct addrinfo *addresses)
{
        SSL_CTX *context = SSL_CTX_new(TLS_client_method());
        enum dial_failure failure;
        struct dial dial;
        struct error error;
        int found = 0;

        if (context != NULL &&
            dial_connect(&dial, addresses, BROKER_DIALER_TIMEOUT_MS, &failure, &error) == 0) {
                /* Even a server that rejects us, for want of a certificate of ours, has chosen a cipher. */
                found = dial_secure(&dial, context, NULL, BROKER_DIALER_TIMEOUT_MS, &failure, &error) == 0 ||
                        SSL_get_current_cipher(dial.session) != NULL;
                dial_close(&dial);
        }
        SSL_CTX_free(context);
        return found;
}

int
broker_dialer_finds_plain(const struct addrinfo *addresses)
{
        enum dial_failure failure;
        struct dial dial;
        struct error error;
        int found = 0, is_controller;

        if (dial_connect(&dial, addresses, BROKER_DIALER_TIMEOUT_MS, &failure, &error) == 0) {
                found = broker_dialer_greet(&dial, &is_controller, &failure, &error) == 0;
                dial_close(&dial);
        }
        return found;
}

int
broker_dialer_open(struct broker_dialer *dialer, const char *host, const char *port, struct dial *dial,
                   struct error *error)
{
        struct addrinfo *found;
        enum dial_failure failure;
        int result;

        *dial = (struct dial){.fd = -1};
        if (dial_resolve(host, port, BROKER_DIALER_TIMEOUT_MS, &found, error) != 0)
                return -1;
        result = dial_connect(dial, found, BROKER_DIALER_TIMEOUT_MS, &failure, error);
        freeaddrinfo(found);
        if (result == 0 && dialer->tls != NULL)
                result = broker_dialer_secure(dialer, dial, host, &failure, error);
        if (result == 0 && broker_dialer_login(dialer, dial, error) != BROKER_LOGIN_DONE)
                result = -1;
        if (result != 0)
                dial_close(dial);
        return result;
}
