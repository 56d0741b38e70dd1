#include <check.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "kafka/consumer.h"
#include "kafka/embedded.h"
#include "scratch.h"
#include "suites.h"

/* A consumer on the embedded broker: behaviour of librdkafka that does not depend on the broker. */

#define N_ASSIGNMENTS 500
#define JOINED_WITHIN_MS 60000

static void
on_assigned(const rd_kafka_topic_partition_list_t *partitions, void *arg)
{
        rd_kafka_topic_partition_list_t **assigned = arg;

        *assigned = rd_kafka_topic_partition_list_copy(partitions);
        for (int i = 0; i < (*assigned)->cnt; i++)
                (*assigned)->elems[i].offset = 0;
}

static void
on_revoked(void *arg)
{
        (void)arg;
}

static const struct consumer_events events = {on_assigned, on_revoked, NULL};

/* Poll until partitions are assigned to the consumer. */
static void
join(struct consumer *consumer, rd_kafka_topic_partition_list_t *const *assigned)
{
        int64_t deadline = clock_monotonic_ms() + JOINED_WITHIN_MS;
        rd_kafka_message_t *message;
        int32_t partition;
        struct error error;

        while (*assigned == NULL && clock_monotonic_ms() < deadline) {
                if (consumer_poll(consumer, 100, &message, &partition, &error) == CONSUMER_MESSAGE)
                        rd_kafka_message_destroy(message);
        }
        ck_assert_ptr_nonnull(*assigned);
}

/* librdkafka aborts if partitions are stopped a second time before it has noted that they have stopped. */
START_TEST(test_partitions_can_be_assigned_repeatedly)
{
        struct loaded loaded = scratch_load(scratch_embedded);
        rd_kafka_topic_partition_list_t *assigned = NULL;
        struct error error = {.text = ""};
        struct embedded *embedded;
        struct consumer *consumer;

        ck_assert_msg(loaded.config != NULL, "%s", loaded.messages);
        embedded = embedded_new(loaded.config, &error);
        ck_assert_msg(embedded != NULL, "%s", error.text);
        consumer = consumer_new(loaded.config, embedded_bootstrap(embedded), &events, &assigned, &error);
        ck_assert_msg(consumer != NULL, "%s", error.text);
        join(consumer, &assigned);
        for (int i = 0; i < N_ASSIGNMENTS; i++)
                ck_assert_int_eq(consumer_assign(consumer, assigned, &error), 0);
        rd_kafka_topic_partition_list_destroy(assigned);
        consumer_free(consumer);
        embedded_free(embedded);
        scratch_release(&loaded);
}
END_TEST

Suite *
suite_consumer(void)
{
        Suite *suite = suite_create("consumer");
        TCase *tcase = tcase_create("consumer");

        tcase_set_timeout(tcase, 120);
        tcase_add_checked_fixture(tcase, scratch_setup, scratch_teardown);
        tcase_add_test(tcase, test_partitions_can_be_assigned_repeatedly);
        suite_add_tcase(suite, tcase);
        return suite;
}
