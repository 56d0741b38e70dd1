#ifndef CLI_TEST_DELIVERY_H
#define CLI_TEST_DELIVERY_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/http_client.h"
#include "cli/receiver_url.h"
#include "cli/sign.h"
#include "model/pointer.h"
#include "model/record.h"

/*
 * A delivery that tries the way from a URL to the router, signed and sent as the service would. The router
 * recognises it by its kind and drops it, so that consumers never see it (model/judge.h).
 */
struct test_delivery {
        struct sign_input signing;
        int64_t sent_ms, answered_ms; /* by this machine's clock */
        struct http_client_answer answer;
        struct error error; /* why there is none */
};

/*
 * Sign a delivery with the source's first secret, and send it. Returns 0, or -1 with the reason when there is
 * no answer. The caller clears it.
 */
int test_delivery_send(const struct config_source *source, const struct receiver_url *to,
                       struct test_delivery *delivery) MUST_CHECK;
void test_delivery_clear(struct test_delivery *delivery);

/*
 * Make a body with the kind of test deliveries where a source looks for it, never twice the same. The caller
 * frees it.
 */
char *test_delivery_body(const struct pointer *kind);

/*
 * Return whether a body is from test_delivery_body(), of any source: nothing but a UUID and the kind, both by
 * a reserved name. So no body of the service is one.
 */
int test_delivery_recognises(struct span body);

#endif
