#include "kafka/inquiry.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <librdkafka/rdkafka.h>

#include "kafka/wire.h"

#define TIMEOUT_MS 8000
#define UNKNOWN INT32_MIN /* instead of operations */

static int
call(struct dial *dial, struct wire_request *request, struct wire_answer *answer, struct error *error)
{
        enum dial_failure failure;

        return wire_call(dial, request, answer, TIMEOUT_MS, &failure, error);
}

/* Finish reading: an answer that is too short is an error. */
static int
end(struct wire_answer *answer, int result, struct error *error)
{
        if (result == 0 && answer->is_short)
                result = error_set(error, "the broker's answer is too short");
        wire_clear(answer);
        return result;
}

static void
note(struct inquiry_answer *answer, int code, int64_t operations)
{
        answer->code = code;
        answer->operations = (int32_t)operations;
        answer->is_known = code != 0 || operations != UNKNOWN;
}

static void
skip_partition(struct wire_answer *answer)
{
        wire_skip(answer, 2 + 4 + 4 + 4); /* error, index, leader and its epoch */
        for (int list = 0; list < 3; list++)
                wire_skip(answer, 4 * (size_t)wire_get_count(answer)); /* replicas: all, in-sync, offline */
}

static void
read_topic(struct wire_answer *answer, struct inquiry_answer *topics, size_t n)
{
        int code = (int)wire_get(answer, 2);
        char *name = wire_get_string(answer);
        int64_t operations;

        wire_skip(answer, 1);
        for (int32_t i = wire_get_count(answer); i > 0 && !answer->is_short; i--)
                skip_partition(answer);
        operations = wire_get(answer, 4);
        for (size_t i = 0; i < n && !answer->is_short; i++) {
                if (strcmp(topics[i].name, name) == 0)
                        note(&topics[i], code, operations);
        }
        free(name);
}

/* Ask for topics, and read the answer up to the id of the cluster. Returns 0, or -1 with the reason. */
static int
ask_metadata(struct dial *dial, const struct inquiry_answer *topics, size_t n, struct wire_answer *answer,
             struct error *error)
{
        struct wire_request request;

        wire_begin(&request, WIRE_METADATA, 8);
        wire_put(&request, (int64_t)n, 4);
        for (size_t i = 0; i < n; i++)
                wire_put_string(&request, topics[i].name);
        wire_put(&request, 0, 1); /* do not create topics */
        wire_put(&request, 0, 1); /* operations on the cluster are not asked for */
        wire_put(&request, 1, 1); /* operations on topics are */
        if (call(dial, &request, answer, error) != 0)
                return -1;
        wire_skip(answer, 4);
        for (int32_t i = wire_get_count(answer); i > 0 && !answer->is_short; i--) {
                wire_skip(answer, 4);
                wire_skip_string(answer);
                wire_skip(answer, 4);
                wire_skip_string(answer);
        }
        return 0;
}

int
inquiry_cluster(struct dial *dial, char id[INQUIRY_CLUSTER_SIZE], struct error *error)
{
        struct wire_answer answer;
        int result = ask_metadata(dial, NULL, 0, &answer, error);

        if (result == 0) {
                char *text = wire_get_string(&answer);

                (void)snprintf(id, INQUIRY_CLUSTER_SIZE, "%s", text);
                free(text);
        }
        return end(&answer, result, error);
}

int
inquiry_topics(struct dial *dial, struct inquiry_answer *topics, size_t n, struct error *error)
{
        struct wire_answer answer;
        int result = ask_metadata(dial, topics, n, &answer, error);

        if (result == 0) {
                wire_skip_string(&answer);
                wire_skip(&answer, 4);
                for (int32_t i = wire_get_count(&answer); i > 0 && !answer.is_short; i--)
                        read_topic(&answer, topics, n);
        }
        return end(&answer, result, error);
}

int
inquiry_coordinator(struct dial *dial, enum inquiry_coordinator kind, const char *name,
                    struct inquiry_broker *broker, int *code, struct error *error)
{
        struct wire_request request;
        struct wire_answer answer;
        int result;

        wire_begin(&request, WIRE_FIND_COORDINATOR, 1);
        wire_put_string(&request, name);
        wire_put(&request, kind, 1);
        result = call(dial, &request, &answer, error);
        if (result == 0) {
                char *host;

                wire_skip(&answer, 4);
                *code = (int)wire_get(&answer, 2);
                wire_skip_string(&answer);
                wire_skip(&answer, 4);
                host = wire_get_string(&answer);
                (void)snprintf(broker->host, sizeof(broker->host), "%s", host);
                (void)snprintf(broker->port, sizeof(broker->port), "%" PRId64, wire_get(&answer, 4));
                free(host);
        }
        return end(&answer, result, error);
}

/* Count a member, whose texts it frees. */
static void
count_member(struct inquiry_strangers *strangers, char *instance, char *client_id, char *host)
{
        strangers->n_members++;
        if (*instance == '\0' && strangers->n++ == 0) {
                (void)snprintf(strangers->client_id, sizeof(strangers->client_id), "%s", client_id);
                (void)snprintf(strangers->host, sizeof(strangers->host), "%s", host + (*host == '/'));
        }
        free(instance);
        free(client_id);
        free(host);
}

static void
read_member(struct wire_answer *answer, struct inquiry_strangers *strangers)
{
        char *instance, *client_id, *host;
        size_t len;

        wire_skip_string(answer);
        instance = wire_get_string(answer);
        client_id = wire_get_string(answer);
        host = wire_get_string(answer);
        (void)wire_get_bytes(answer, &len);
        (void)wire_get_bytes(answer, &len);
        count_member(strangers, instance, client_id, host);
}

static void
skip_assignment(struct wire_answer *answer)
{
        for (int32_t i = wire_get_compact_count(answer); i > 0 && !answer->is_short; i--) {
                wire_skip(answer, 16); /* the topic's id */
                wire_skip_compact(answer);
                wire_skip(answer, 4 * (size_t)wire_get_compact_count(answer));
                wire_skip_tags(answer);
        }
        wire_skip_tags(answer);
}

static void
read_new_member(struct wire_answer *answer, struct inquiry_strangers *strangers)
{
        char *instance, *client_id, *host;

        wire_skip_compact(answer);
        instance = wire_get_compact(answer);
        wire_skip_compact(answer); /* rack */
        wire_skip(answer, 4);
        client_id = wire_get_compact(answer);
        host = wire_get_compact(answer);
        for (int32_t i = wire_get_compact_count(answer); i > 0 && !answer->is_short; i--)
                wire_skip_compact(answer); /* topics */
        wire_skip_compact(answer);         /* expression for topics */
        skip_assignment(answer);
        skip_assignment(answer); /* the one to come */
        wire_skip_tags(answer);
        count_member(strangers, instance, client_id, host);
}

/*
 * Read the members of a group in which a consumer has group.protocol = consumer (KIP-848), which
 * does not exist for the other request. Brokers before 3.7 have neither such groups nor this request, and
 * close the connection.
 */
static void
ask_new_group(struct dial *coordinator, const char *name, struct inquiry_strangers *strangers)
{
        struct wire_request request;
        struct wire_answer answer;
        struct error ignored;
        int result;

        wire_begin(&request, WIRE_CONSUMER_GROUP_DESCRIBE, 0);
        wire_put(&request, 0, 1);
        wire_put(&request, 1 + 1, 1); /* one group */
        wire_put_compact(&request, name);
        wire_put(&request, 0, 2); /* no operations, no tags */
        result = call(coordinator, &request, &answer, &ignored);
        if (result == 0) {
                wire_skip_tags(&answer);
                wire_skip(&answer, 4);
                (void)wire_get_compact_count(&answer);
                strangers->code = (int)wire_get(&answer, 2);
                for (int text = 0; text < 3; text++)
                        wire_skip_compact(&answer); /* message, group and state */
                wire_skip(&answer, 4 + 4);
                wire_skip_compact(&answer);
                for (int32_t i = wire_get_compact_count(&answer); i > 0 && !answer.is_short; i--)
                        read_new_member(&answer, strangers);
        }
        if (end(&answer, result, &ignored) != 0)
                *strangers = (struct inquiry_strangers){0};
        if (strangers->code == RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND)
                strangers->code = 0;
}

int
inquiry_group(struct dial *coordinator, struct inquiry_answer *group, struct inquiry_strangers *strangers,
              struct error *error)
{
        struct wire_request request;
        struct wire_answer answer;
        int result, exists = 1;

        *strangers = (struct inquiry_strangers){0};
        wire_begin(&request, WIRE_DESCRIBE_GROUPS, 4);
        wire_put(&request, 1, 4);
        wire_put_string(&request, group->name);
        wire_put(&request, 1, 1);
        result = call(coordinator, &request, &answer, error);
        if (result == 0) {
                char *state;
                int code;

                wire_skip(&answer, 4);
                (void)wire_get_count(&answer);
                code = (int)wire_get(&answer, 2);
                wire_skip_string(&answer);
                state = wire_get_string(&answer);
                exists = code != 0 || strcmp(state, "Dead") != 0;
                free(state);
                wire_skip_string(&answer);
                wire_skip_string(&answer);
                for (int32_t i = wire_get_count(&answer); i > 0 && !answer.is_short; i--)
                        read_member(&answer, strangers);
                note(group, code, wire_get(&answer, 4));
        }
        result = end(&answer, result, error);
        if (result == 0 && !exists)
                ask_new_group(coordinator, group->name, strangers);
        return result;
}

int
inquiry_transactional_id(struct dial *coordinator, const char *name, int *code, struct error *error)
{
        struct wire_request request;
        struct wire_answer answer;
        int result;

        wire_begin(&request, WIRE_END_TXN, 1);
        wire_put_string(&request, name);
        wire_put(&request, INT64_MAX, 8); /* no producer: Kafka counts from 0 */
        wire_put(&request, 0, 2);
        wire_put(&request, 0, 1); /* abort */
        result = call(coordinator, &request, &answer, error);
        if (result == 0) {
                wire_skip(&answer, 4);
                *code = (int)wire_get(&answer, 2);
        }
        return end(&answer, result, error);
}

int
inquiry_producer_id(struct dial *dial, int *code, struct error *error)
{
        struct wire_request request;
        struct wire_answer answer;
        int result;

        wire_begin(&request, WIRE_INIT_PRODUCER_ID, 0);
        wire_put_string(&request, NULL);
        wire_put(&request, 60000, 4);
        result = call(dial, &request, &answer, error);
        if (result == 0) {
                wire_skip(&answer, 4);
                *code = (int)wire_get(&answer, 2);
        }
        return end(&answer, result, error);
}
