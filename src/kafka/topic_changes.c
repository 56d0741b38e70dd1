#include "kafka/topic_changes.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "kafka/client.h"

void
topic_changes_add(struct topic_changes *changes, const char *topic, const char *setting, const char *before,
                  const char *after)
{
        struct topic_change *change;

        changes->items = mem_resize(changes->items, changes->n + 1, sizeof(*changes->items));
        change = &changes->items[changes->n++];
        *change = (struct topic_change){.topic = topic, .setting = setting};
        (void)snprintf(change->before, sizeof(change->before), "%s", before);
        (void)snprintf(change->after, sizeof(change->after), "%s", after);
}

/* A request about the settings of one topic, and its answer. */
struct settings_request {
        rd_kafka_queue_t *queue;
        rd_kafka_AdminOptions_t *options;
        rd_kafka_event_t *event; /* the answer, or NULL */
        rd_kafka_resp_err_t err;
        const char *reason; /* why it failed; valid as long as the event */
};

static void
request_open(struct settings_request *request, rd_kafka_t *client, rd_kafka_admin_op_t operation,
             int timeout_ms)
{
        *request = (struct settings_request){.queue = rd_kafka_queue_new(client),
                                             .options = rd_kafka_AdminOptions_new(client, operation)};
        (void)rd_kafka_AdminOptions_set_request_timeout(request->options, timeout_ms, NULL, 0);
}

static void
request_wait(struct settings_request *request, int timeout_ms)
{
        request->event = rd_kafka_queue_poll(request->queue, timeout_ms + 1000);
        request->err =
            request->event == NULL ? RD_KAFKA_RESP_ERR__TIMED_OUT : rd_kafka_event_error(request->event);
        request->reason = request->event == NULL ? rd_kafka_err2str(request->err)
                                                 : rd_kafka_event_error_string(request->event);
}

/* Take the error of the answer's only resource. Return the resource, or NULL. */
static const rd_kafka_ConfigResource_t *
take_resource(struct settings_request *request, const rd_kafka_ConfigResource_t **resources, size_t n)
{
        if (n != 1)
                return NULL;
        request->err = rd_kafka_ConfigResource_error(resources[0]);
        request->reason = rd_kafka_ConfigResource_error_string(resources[0]);
        return request->err == RD_KAFKA_RESP_ERR_NO_ERROR ? resources[0] : NULL;
}

static void
request_close(struct settings_request *request)
{
        rd_kafka_event_destroy(request->event);
        rd_kafka_AdminOptions_destroy(request->options);
        rd_kafka_queue_destroy(request->queue);
}

static int
is_changed(const struct topic_change *changes, size_t n, const char *setting)
{
        for (size_t i = 0; i < n; i++) {
                if (strcmp(changes[i].setting, setting) == 0)
                        return 1;
        }
        return 0;
}

/* Add the settings that were set for a topic, and stay as they are, to a new resource. */
static void
keep_settings(const rd_kafka_ConfigResource_t *present, const struct topic_change *changes, size_t n,
              rd_kafka_ConfigResource_t *resource)
{
        size_t n_entries;
        const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(present, &n_entries);

        for (size_t i = 0; i < n_entries; i++) {
                const char *name = rd_kafka_ConfigEntry_name(entries[i]);
                const char *value = rd_kafka_ConfigEntry_value(entries[i]);

                if (rd_kafka_ConfigEntry_source(entries[i]) == RD_KAFKA_CONFIG_SOURCE_DYNAMIC_TOPIC_CONFIG &&
                    value != NULL && !is_changed(changes, n, name))
                        (void)rd_kafka_ConfigResource_set_config(resource, name, value);
        }
}

/* Read the present settings into a new resource of the topic. */
static rd_kafka_resp_err_t
read_present(rd_kafka_t *client, const struct topic_change *changes, size_t n, int timeout_ms,
             rd_kafka_ConfigResource_t *resource, struct error *error)
{
        rd_kafka_ConfigResource_t *asked =
            rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, changes[0].topic);
        const rd_kafka_ConfigResource_t **found, *present = NULL;
        struct settings_request request;
        rd_kafka_resp_err_t err;
        size_t n_found;

        request_open(&request, client, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, timeout_ms);
        rd_kafka_DescribeConfigs(client, &asked, 1, request.options, request.queue);
        request_wait(&request, timeout_ms);
        if (request.err == RD_KAFKA_RESP_ERR_NO_ERROR) {
                found = rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(
                                                                      request.event),
                                                                  &n_found);
                present = take_resource(&request, found, n_found);
        }
        if (present != NULL)
                keep_settings(present, changes, n, resource);
        else
                (void)error_set(error, "its settings cannot be read: %s", request.reason);
        err = request.err;
        request_close(&request);
        rd_kafka_ConfigResource_destroy(asked);
        return err;
}

static rd_kafka_resp_err_t
write_settings(rd_kafka_t *client, rd_kafka_ConfigResource_t *resource, int timeout_ms, struct error *error)
{
        struct settings_request request;
        const rd_kafka_ConfigResource_t **found;
        rd_kafka_resp_err_t err;
        size_t n_found;

        request_open(&request, client, RD_KAFKA_ADMIN_OP_ALTERCONFIGS, timeout_ms);
        rd_kafka_AlterConfigs(client, &resource, 1, request.options, request.queue);
        request_wait(&request, timeout_ms);
        if (request.err == RD_KAFKA_RESP_ERR_NO_ERROR) {
                found =
                    rd_kafka_AlterConfigs_result_resources(rd_kafka_event_AlterConfigs_result(request.event),
                                                           &n_found);
                (void)take_resource(&request, found, n_found);
        }
        if (request.err != RD_KAFKA_RESP_ERR_NO_ERROR)
                (void)error_set(error, "its settings cannot be changed: %s", request.reason);
        err = request.err;
        request_close(&request);
        return err;
}

/*
 * librdkafka 2.0.2 has no IncrementalAlterConfigs (2.2 and later): AlterConfigs sets what it does not name to
 * its default. So it names everything that is set.
 */
int
topic_changes_apply(rd_kafka_t *client, const struct topic_change *changes, size_t n, int timeout_ms,
                    int *is_denied, struct error *error)
{
        rd_kafka_ConfigResource_t *resource =
            rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, changes[0].topic);
        rd_kafka_resp_err_t err = read_present(client, changes, n, timeout_ms, resource, error);

        for (size_t i = 0; i < n; i++)
                (void)rd_kafka_ConfigResource_set_config(resource, changes[i].setting, changes[i].after);
        if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
                err = write_settings(client, resource, timeout_ms, error);
        rd_kafka_ConfigResource_destroy(resource);
        *is_denied = client_is_denied(err);
        return err == RD_KAFKA_RESP_ERR_NO_ERROR ? 0 : -1;
}
