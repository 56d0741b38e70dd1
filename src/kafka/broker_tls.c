#include "kafka/broker_tls.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/crypto.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/x509v3.h>

#include "base/address.h"
#include "base/mem.h"

char *
broker_tls_property(const rd_kafka_conf_t *conf, const char *name)
{
        size_t size = 0;
        char *value;

        if (rd_kafka_conf_get(conf, name, NULL, &size) != RD_KAFKA_CONF_OK || size == 0)
                return mem_strdup("");
        value = mem_alloc(size + 1);
        if (rd_kafka_conf_get(conf, name, value, &size) != RD_KAFKA_CONF_OK)
                value[0] = '\0';
        return value;
}

/* Trust the certificates in a PEM text. */
static int
trust_pem(SSL_CTX *context, const char *pem)
{
        BIO *bio = BIO_new_mem_buf(pem, -1);
        X509 *one;
        int n = 0;

        while (bio != NULL && (one = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
                n += X509_STORE_add_cert(SSL_CTX_get_cert_store(context), one) == 1;
                X509_free(one);
        }
        BIO_free(bio);
        return n > 0;
}

static int
set_authorities(SSL_CTX *context, const rd_kafka_conf_t *conf, struct error *error)
{
        char *location = broker_tls_property(conf, "ssl.ca.location"),
             *pem = broker_tls_property(conf, "ssl.ca.pem");
        struct stat st;
        int is_set;

        if (*pem != '\0')
                is_set = trust_pem(context, pem);
        else if (*location == '\0' || strcmp(location, "probe") == 0)
                is_set = SSL_CTX_set_default_verify_paths(context);
        else if (stat(location, &st) == 0 && S_ISDIR(st.st_mode))
                is_set = SSL_CTX_load_verify_dir(context, location);
        else
                is_set = SSL_CTX_load_verify_file(context, location);
        if (!is_set)
                (void)error_set_openssl(error, "ssl.ca.location");
        free(location);
        free(pem);
        return is_set ? 0 : -1;
}

static int
use_keystore(SSL_CTX *context, const char *path, const char *password)
{
        BIO *bio = BIO_new_file(path, "r");
        PKCS12 *store = bio == NULL ? NULL : d2i_PKCS12_bio(bio, NULL);
        EVP_PKEY *key = NULL;
        X509 *leaf = NULL;
        STACK_OF(X509) *chain = NULL;
        int is_set = store != NULL && PKCS12_parse(store, password, &key, &leaf, &chain) == 1 &&
                     SSL_CTX_use_cert_and_key(context, leaf, key, chain, 1) == 1;

        sk_X509_pop_free(chain, X509_free);
        X509_free(leaf);
        EVP_PKEY_free(key);
        PKCS12_free(store);
        BIO_free(bio);
        return is_set;
}

static int
use_pem(SSL_CTX *context, const char *certificate, const char *key, char *password)
{
        BIO *certificate_bio = BIO_new_mem_buf(certificate, -1), *key_bio = BIO_new_mem_buf(key, -1);
        X509 *leaf = certificate_bio == NULL ? NULL : PEM_read_bio_X509(certificate_bio, NULL, NULL, NULL);
        EVP_PKEY *own = key_bio == NULL ? NULL : PEM_read_bio_PrivateKey(key_bio, NULL, NULL, password);
        int is_set =
            leaf != NULL && own != NULL && SSL_CTX_use_cert_and_key(context, leaf, own, NULL, 1) == 1;

        X509_free(leaf);
        EVP_PKEY_free(own);
        BIO_free(certificate_bio);
        BIO_free(key_bio);
        return is_set;
}

/* The callback must not ask at the terminal. */
static int
give_password(char *buffer, int size, int for_writing, void *password)
{
        size_t len = password == NULL ? 0 : strlen(password);

        (void)for_writing;
        if (len > (size_t)size)
                return -1;
        memcpy(buffer, password == NULL ? "" : password, len);
        return (int)len;
}

/* Use our own certificate and key, if there are any. */
static int
set_own(SSL_CTX *context, const rd_kafka_conf_t *conf, struct error *error)
{
        char *certificate = broker_tls_property(conf, "ssl.certificate.location"),
             *certificate_pem = broker_tls_property(conf, "ssl.certificate.pem"),
             *key = broker_tls_property(conf, "ssl.key.location"),
             *key_pem = broker_tls_property(conf, "ssl.key.pem"),
             *key_password = broker_tls_property(conf, "ssl.key.password"),
             *store = broker_tls_property(conf, "ssl.keystore.location"),
             *store_password = broker_tls_property(conf, "ssl.keystore.password");
        const char *what = NULL;

        SSL_CTX_set_default_passwd_cb(context, give_password);
        SSL_CTX_set_default_passwd_cb_userdata(context, key_password);
        if (*certificate != '\0' && SSL_CTX_use_certificate_chain_file(context, certificate) != 1)
                what = "ssl.certificate.location";
        else if (*key != '\0' && SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
                what = "ssl.key.location";
        else if (*key_pem != '\0' && !use_pem(context, certificate_pem, key_pem, key_password))
                what = "ssl.key.pem";
        else if (*store != '\0' && !use_keystore(context, store, store_password))
                what = "ssl.keystore.location";
        SSL_CTX_set_default_passwd_cb_userdata(context, NULL);
        if (what != NULL)
                (void)error_set_openssl(error, what);
        OPENSSL_cleanse(key_password, strlen(key_password));
        OPENSSL_cleanse(store_password, strlen(store_password));
        OPENSSL_cleanse(key_pem, strlen(key_pem));
        free(certificate);
        free(certificate_pem);
        free(key);
        free(key_pem);
        free(key_password);
        free(store);
        free(store_password);
        return what == NULL ? 0 : -1;
}

SSL_CTX *
broker_tls_context(const rd_kafka_conf_t *conf, struct error *error)
{
        SSL_CTX *context = SSL_CTX_new(TLS_client_method());
        char *verification = broker_tls_property(conf, "enable.ssl.certificate.verification");
        int verifies = strcmp(verification, "false") != 0;

        free(verification);
        if (context == NULL) {
                (void)error_set_openssl(error, "TLS");
                return NULL;
        }
        if (set_authorities(context, conf, error) != 0 || set_own(context, conf, error) != 0) {
                SSL_CTX_free(context);
                return NULL;
        }
        SSL_CTX_set_verify(context, verifies ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
        return context;
}

int
broker_tls_expect(SSL_CTX *context, const char *host)
{
        X509_VERIFY_PARAM *expected = SSL_CTX_get0_param(context);
        struct address address;
        int is_address = host != NULL && address_parse(host, strlen(host), &address) == 0;

        (void)X509_VERIFY_PARAM_set1_ip(expected, NULL, 0);
        (void)X509_VERIFY_PARAM_set1_host(expected, is_address ? NULL : host, 0);
        if (is_address)
                (void)X509_VERIFY_PARAM_set1_ip_asc(expected, host);
        return is_address;
}
