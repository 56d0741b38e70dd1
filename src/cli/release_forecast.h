#ifndef CLI_RELEASE_FORECAST_H
#define CLI_RELEASE_FORECAST_H

#include <librdkafka/rdkafka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/json.h"
#include "config/config.h"
#include "model/release.h"
#include "model/reverification.h"

/* What the router will do with a release, if it has this configuration. */

struct release_forecast {
        const char *topic;  /* it publishes it there; NULL: it does not, or that is unknown */
        const char *reason; /* it quarantines it again */
        char *detail;       /* of the reason */
};

struct release_forecaster;

/* Returns NULL with the reason. */
struct release_forecaster *release_forecaster_new(const struct config *config,
                                                  struct error *error) MUST_CHECK;
void release_forecaster_free(struct release_forecaster *forecaster);

#define RELEASE_FORECAST_SIGNATURE_SIZE RELEASE_SIGNATURE_SIZE

/**
 * release_forecast_make(forecaster, message, id, signature, forecast):
 * Sign the release of a record of quarantine, for routers that verify; the signature is empty if its source
 * is not configured. Make the forecast, which release_forecast_clear() ends. Returns 0, or -1 when memory or
 * OpenSSL fails.
 */
int release_forecast_make(struct release_forecaster *forecaster, const rd_kafka_message_t *message,
                          const struct release_id *id, char signature[RELEASE_FORECAST_SIGNATURE_SIZE],
                          struct release_forecast *forecast) MUST_CHECK;
void release_forecast_clear(struct release_forecast *forecast);

/* Print the forecast, as the end of a sentence. */
void release_forecast_print(const struct release_forecast *forecast);

/* Add it to an open JSON object: topic, comesBack, comesBackDetail. */
void release_forecast_put_json(struct json_writer *json, const struct release_forecast *forecast);

/* Whether the event of a delivery with this reason may have been published from another one, or before. */
int release_forecast_may_repeat(const char *reason);

#endif
