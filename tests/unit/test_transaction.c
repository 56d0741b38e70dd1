#include <check.h>

#include "base/compiler.h"
#include "kafka/embedded.h"
#include "kafka/transaction.h"
#include "scratch.h"
#include "suites.h"

/* A producer on the embedded broker: behaviour of librdkafka that does not depend on the broker. */

#define N_GIVEN_UP 200
#define INIT_TIMEOUT_MS 60000

static void
produce(struct transaction *transaction, const char *topic)
{
        static const char value[] = "{}";
        struct error error = {.text = ""};
        int result =
            transaction_produce(transaction, topic, (struct span){"key", 3},
                                (struct span){value, sizeof(value) - 1}, rd_kafka_headers_new(0), 0, &error);

        ck_assert_msg(result == 0, "%s", error.text);
}

static void
begin(struct transaction *transaction, const struct config *config)
{
        struct error error = {.text = ""};

        ck_assert_msg(transaction_begin(transaction, &error) == 0, "%s", error.text);
        produce(transaction, config->deliveries_topic);
        produce(transaction, config->quarantine_topic);
}

/* Commit what was produced, without offsets. */
static void
commit(struct transaction *transaction, const struct config *config)
{
        rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata_new(config->group);
        rd_kafka_topic_partition_list_t *offsets = rd_kafka_topic_partition_list_new(0);
        struct error error = {.text = ""};

        ck_assert_msg(transaction_commit(transaction, group, offsets, &error) == 0, "%s", error.text);
        rd_kafka_topic_partition_list_destroy(offsets);
        rd_kafka_consumer_group_metadata_destroy(group);
}

/* Begin a transaction, possibly after another, and abandon it before any partition is added in Kafka. */
static void
give_up(const struct config *config, const char *bootstrap, int comes_second)
{
        struct error error = {.text = ""};
        struct transaction *transaction = transaction_new(config, bootstrap, NULL, NULL, &error);

        ck_assert_msg(transaction != NULL, "%s", error.text);
        ck_assert_msg(transaction_init(transaction, INIT_TIMEOUT_MS, &error) == 0, "%s", error.text);
        if (comes_second) {
                begin(transaction, config);
                commit(transaction, config);
        }
        begin(transaction, config);
        transaction_free(transaction);
}

/* librdkafka aborts if a producer is destroyed just as it sends the first request of a transaction. */
START_TEST(test_transaction_can_be_abandoned_right_after_begin)
{
        struct loaded loaded = scratch_load(scratch_embedded);
        struct error error = {.text = ""};
        struct embedded *embedded;

        ck_assert_msg(loaded.config != NULL, "%s", loaded.messages);
        embedded = embedded_new(loaded.config, &error);
        ck_assert_msg(embedded != NULL, "%s", error.text);
        for (int i = 0; i < N_GIVEN_UP; i++)
                give_up(loaded.config, embedded_bootstrap(embedded), i % 2);
        embedded_free(embedded);
        scratch_release(&loaded);
}
END_TEST

/* Like Kafka 2.4, the embedded broker has TxnOffsetCommit without the member's generation. */
START_TEST(test_brokers_without_fencing_by_generation_are_refused)
{
        struct loaded loaded = scratch_load(scratch_embedded);
        struct error error = {.text = ""};
        struct embedded *embedded;
        struct transaction *transaction;
        struct config config;
        rd_kafka_consumer_group_metadata_t *group;
        rd_kafka_topic_partition_list_t *offsets = rd_kafka_topic_partition_list_new(1);

        ck_assert_msg(loaded.config != NULL, "%s", loaded.messages);
        embedded = embedded_new(loaded.config, &error);
        ck_assert_msg(embedded != NULL, "%s", error.text);
        config = *loaded.config;
        config.embedded = 0; /* as for a separate cluster */
        transaction = transaction_new(&config, embedded_bootstrap(embedded), NULL, NULL, &error);
        ck_assert_msg(transaction != NULL, "%s", error.text);
        ck_assert_msg(transaction_init(transaction, INIT_TIMEOUT_MS, &error) == 0, "%s", error.text);
        begin(transaction, &config);
        group = rd_kafka_consumer_group_metadata_new(config.group);
        rd_kafka_topic_partition_list_add(offsets, config.deliveries_topic, 0)->offset = 1;
        ck_assert(!transaction_is_unfenced(transaction));
        ck_assert_int_eq(transaction_commit(transaction, group, offsets, &error), -1);
        ck_assert_ptr_nonnull(strstr(error.text, "older than Kafka 2.5"));
        ck_assert(transaction_is_unfenced(transaction));
        rd_kafka_topic_partition_list_destroy(offsets);
        rd_kafka_consumer_group_metadata_destroy(group);
        transaction_free(transaction);
        embedded_free(embedded);
        scratch_release(&loaded);
}
END_TEST

Suite *
suite_transaction(void)
{
        Suite *suite = suite_create("transaction");
        TCase *tcase = tcase_create("transaction");

        tcase_set_timeout(tcase, 240);
        tcase_add_checked_fixture(tcase, scratch_setup, scratch_teardown);
        tcase_add_test(tcase, test_transaction_can_be_abandoned_right_after_begin);
        tcase_add_test(tcase, test_brokers_without_fencing_by_generation_are_refused);
        suite_add_tcase(suite, tcase);
        return suite;
}
