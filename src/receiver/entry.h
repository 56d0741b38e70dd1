#ifndef RECEIVER_ENTRY_H
#define RECEIVER_ENTRY_H

#include <librdkafka/rdkafka.h>

#include "config/config.h"
#include "receiver/screen.h"

/**
 * entry_headers(config, screened, now_ms, request_id, replay_of):
 * The record headers of a delivery as it is appended to `deliveries`. replay_of is NULL or the delivery-id that its
 * signature came first with. Returns NULL when memory fails.
 */
rd_kafka_headers_t *entry_headers(const struct config *config, const struct screened *screened,
                                  int64_t now_ms, const char *request_id, const char *replay_of);

#endif
