/*
 * An OpenSSL provider with all algorithms of the default provider except Poly1305, like the FIPS provider.
 * OPENSSL_CONF activates it instead of the default provider.
 */
#include <string.h>

#include <openssl/core.h>
#include <openssl/core_dispatch.h>
#include <openssl/crypto.h>
#include <openssl/provider.h>

#define MAX_MACS 32

static OSSL_LIB_CTX *own;
static OSSL_PROVIDER *whole;
static OSSL_ALGORITHM macs[MAX_MACS];

static const OSSL_ALGORITHM *
query(void *context, int operation, int *no_cache)
{
        const OSSL_ALGORITHM *all = OSSL_PROVIDER_query_operation(whole, operation, no_cache);
        size_t n = 0;

        (void)context;
        if (operation != OSSL_OP_MAC || all == NULL)
                return all;
        for (; all->algorithm_names != NULL && n < MAX_MACS - 1; all++) {
                if (strstr(all->algorithm_names, "POLY1305") == NULL)
                        macs[n++] = *all;
        }
        macs[n] = (OSSL_ALGORITHM){0};
        return macs;
}

/* Capabilities, such as the TLS groups. */
static int
get_capabilities(void *context, const char *capability, OSSL_CALLBACK *callback, void *arg)
{
        (void)context;
        return OSSL_PROVIDER_get_capabilities(whole, capability, callback, arg);
}

static void
tear_down(void *context)
{
        (void)context;
        (void)OSSL_PROVIDER_unload(whole);
        OSSL_LIB_CTX_free(own);
}

int
OSSL_provider_init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in, const OSSL_DISPATCH **out,
                   void **context)
{
        static const OSSL_DISPATCH functions[] = {{OSSL_FUNC_PROVIDER_QUERY_OPERATION, (void (*)(void))query},
                                                  {OSSL_FUNC_PROVIDER_GET_CAPABILITIES,
                                                   (void (*)(void))get_capabilities},
                                                  {OSSL_FUNC_PROVIDER_TEARDOWN, (void (*)(void))tear_down},
                                                  {0, NULL}};

        (void)handle;
        (void)in;
        own = OSSL_LIB_CTX_new();
        whole = own == NULL ? NULL : OSSL_PROVIDER_load(own, "default");
        if (whole == NULL) {
                OSSL_LIB_CTX_free(own);
                return 0;
        }
        *context = OSSL_PROVIDER_get0_provider_ctx(whole);
        *out = functions;
        return 1;
}
