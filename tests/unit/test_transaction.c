#include <check.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "kafka/client.h"
#include "kafka/embedded.h"
#include "kafka/transaction.h"
#include "router/processor.h"
#include "scratch.h"
#include "suites.h"

/* A producer on the embedded broker: behaviour of librdkafka that does not depend on the broker. */

#define N_GIVEN_UP 200
#define INIT_TIMEOUT_MS 60000

static const struct message_origin origin;

static void
produce(struct transaction *transaction, const char *topic)
{
        static const char value[] = "{}";
        struct error error = {.text = ""};
        int result = transaction_produce(transaction, topic, (struct span){"key", 3},
                                         (struct span){value, sizeof(value) - 1}, rd_kafka_headers_new(0),
                                         &origin, &error);

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

/*
 * Commit what was produced, without offsets. Return whether it is confirmed: librdkafka's broker draws producer
 * IDs at random (2.0.2), and takes a record for the repetition of one that an earlier producer with the same ID
 * has sent.
 */
static int
commit(struct transaction *transaction, const struct config *config)
{
        int result;
        rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata_new(config->group);
        rd_kafka_topic_partition_list_t *offsets = rd_kafka_topic_partition_list_new(0);
        struct error error = {.text = ""};

        result = transaction_commit(transaction, group, offsets, &error);
        ck_assert_msg(result == 0 || strstr(error.text, "no broker has confirmed it") != NULL, "%s",
                      error.text);
        rd_kafka_topic_partition_list_destroy(offsets);
        rd_kafka_consumer_group_metadata_destroy(group);
        return result == 0;
}

/*
 * Begin a transaction, possibly after another, and abandon it before any partition is added in Kafka. Return
 * whether it came so far.
 */
static int
give_up(const struct config *config, const char *bootstrap, int comes_second)
{
        struct error error = {.text = ""};
        struct transaction *transaction = transaction_new(config, bootstrap, NULL, NULL, &error);
        int is_ready = 1;

        ck_assert_msg(transaction != NULL, "%s", error.text);
        ck_assert_msg(transaction_init(transaction, INIT_TIMEOUT_MS, &error) == 0, "%s", error.text);
        if (comes_second) {
                begin(transaction, config);
                is_ready = commit(transaction, config);
        }
        if (is_ready)
                begin(transaction, config);
        transaction_free(transaction);
        return is_ready;
}

/* librdkafka aborts if a producer is destroyed just as it sends the first request of a transaction. */
START_TEST(test_transaction_can_be_abandoned_right_after_begin)
{
        struct loaded loaded = scratch_load(scratch_embedded);
        struct error error = {.text = ""};
        struct embedded *embedded;
        int n_begun = 0;

        ck_assert_msg(loaded.config != NULL, "%s", loaded.messages);
        embedded = embedded_new(loaded.config, &error);
        ck_assert_msg(embedded != NULL, "%s", error.text);
        for (int i = 0; i < N_GIVEN_UP; i++)
                n_begun += give_up(loaded.config, embedded_bootstrap(embedded), i % 2);
        ck_assert_int_ge(n_begun, N_GIVEN_UP - 5);
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
        ck_assert(!transaction_has_old_brokers(transaction));
        ck_assert_int_eq(transaction_commit(transaction, group, offsets, &error), -1);
        ck_assert_ptr_nonnull(strstr(error.text, "older than Kafka 2.5"));
        ck_assert(transaction_has_old_brokers(transaction));
        rd_kafka_topic_partition_list_destroy(offsets);
        rd_kafka_consumer_group_metadata_destroy(group);
        transaction_free(transaction);
        embedded_free(embedded);
        scratch_release(&loaded);
}
END_TEST

/* Return the first record of partition 0 of a topic. */
static rd_kafka_message_t *
read_first(rd_kafka_t *reader, const char *topic)
{
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        int64_t deadline_ms = clock_monotonic_ms() + INIT_TIMEOUT_MS;
        rd_kafka_message_t *message = NULL;

        rd_kafka_topic_partition_list_add(list, topic, 0)->offset = 0;
        ck_assert_int_eq(rd_kafka_assign(reader, list), 0);
        rd_kafka_topic_partition_list_destroy(list);
        while ((message == NULL || message->err != 0) && clock_monotonic_ms() < deadline_ms) {
                if (message != NULL)
                        rd_kafka_message_destroy(message);
                message = rd_kafka_consumer_poll(reader, 100);
        }
        ck_assert_ptr_nonnull(message);
        ck_assert_int_eq(message->err, 0);
        return message;
}

/* A null value would make a tombstone. */
START_TEST(test_value_of_a_stub_is_empty_and_not_null)
{
        struct loaded loaded = scratch_load(scratch_embedded);
        const char *topic = loaded.config->quarantine_topic;
        struct error error = {.text = ""};
        struct embedded *embedded = embedded_new(loaded.config, &error);
        struct transaction *transaction;
        rd_kafka_message_t *message;
        rd_kafka_t *reader;

        ck_assert_msg(embedded != NULL, "%s", error.text);
        transaction = transaction_new(loaded.config, embedded_bootstrap(embedded), NULL, NULL, &error);
        ck_assert_msg(transaction != NULL, "%s", error.text);
        ck_assert_msg(transaction_init(transaction, INIT_TIMEOUT_MS, &error) == 0, "%s", error.text);
        ck_assert_msg(transaction_begin(transaction, &error) == 0, "%s", error.text);
        ck_assert_int_eq(transaction_produce(transaction, topic, (struct span){NULL, 0},
                                             (struct span){NULL, 0}, rd_kafka_headers_new(0), &origin,
                                             &error),
                         0);
        commit(transaction, loaded.config);
        transaction_free(transaction);
        reader = client_new_reader(loaded.config, embedded_bootstrap(embedded), &error);
        ck_assert_msg(reader != NULL, "%s", error.text);
        message = read_first(reader, topic);
        ck_assert_uint_eq(message->len, 0);
        ck_assert_ptr_nonnull(message->payload);
        ck_assert_ptr_null(message->key);
        rd_kafka_message_destroy(message);
        ck_assert_int_eq(client_destroy(reader), 0);
        embedded_free(embedded);
        scratch_release(&loaded);
}
END_TEST

/* Batches of the router */

START_TEST(test_batch_is_full_at_each_of_its_limits)
{
        struct loaded loaded = scratch_load(scratch_embedded);
        const struct config *config = loaded.config;
        struct batch batch;

        ck_assert_msg(config != NULL, "%s", loaded.messages);
        batch_init(&batch, config);
        batch.max_records = config->max_batch;
        batch.started_ms = clock_monotonic_ms() + 60000;
        batch.n_records = config->max_batch - 1;
        batch.n_bytes = config->max_batch_bytes - 1;
        ck_assert(!batch_is_full(&batch, config));
        batch.n_bytes++;
        ck_assert(batch_is_full(&batch, config));
        batch.n_bytes = 0;
        batch.n_records++;
        ck_assert(batch_is_full(&batch, config));
        batch_shrink(&batch);
        batch.n_records = config->max_batch / 2;
        ck_assert(batch_is_full(&batch, config));
        batch.n_records--;
        ck_assert(!batch_is_full(&batch, config));
        batch.started_ms = clock_monotonic_ms() - 1000;
        ck_assert(batch_is_full(&batch, config));
        batch_free(&batch);
        scratch_release(&loaded);
}
END_TEST

START_TEST(test_batch_adapts_to_the_time_of_its_records)
{
        struct loaded loaded = scratch_load(scratch_embedded);
        const struct config *config = loaded.config;
        struct batch batch;
        size_t before;

        ck_assert_msg(config != NULL, "%s", loaded.messages);
        batch_init(&batch, config);
        ck_assert_uint_lt(batch.max_records, config->max_batch / 10);
        before = batch.max_records;
        batch.n_bytes = 10 * 1024 * 1024;
        batch.n_records = before - 1;
        batch_adapt(&batch, config, 100);
        ck_assert_uint_eq(batch.max_records, before);
        for (size_t quick = 0; quick < 10; quick++) {
                batch.n_records = batch.max_records;
                batch_adapt(&batch, config, 3000);
        }
        ck_assert_uint_eq(batch.max_records, config->max_batch);
        batch.n_records = 20000;
        batch_adapt(&batch, config, 7000);
        ck_assert_uint_eq(batch.max_records, config->max_batch);
        batch_adapt(&batch, config, 9000);
        ck_assert_uint_eq(batch.max_records, 10000);
        batch.n_bytes = batch.n_records = 10000; /* bodies are not all that is sent */
        batch_adapt(&batch, config, 9000);
        ck_assert_uint_eq(batch.max_records, 5000);
        batch_free(&batch);
        scratch_release(&loaded);
}
END_TEST

/* After an abort by a single record, the next ones must not go one by one because Kafka takes long. */
START_TEST(test_small_batch_grows_however_long_its_records_take)
{
        struct loaded loaded = scratch_load(scratch_embedded);
        struct batch batch;

        ck_assert_msg(loaded.config != NULL, "%s", loaded.messages);
        batch_init(&batch, loaded.config);
        batch.n_records = 1;
        batch_shrink(&batch);
        ck_assert_uint_eq(batch.max_records, 1);
        for (batch.n_records = 1; batch.n_records < 1024; batch.n_records = batch.max_records) {
                batch.n_bytes = batch.n_records * 500;
                batch_adapt(&batch, loaded.config, 12000);
                ck_assert_uint_eq(batch.max_records, 2 * batch.n_records);
        }
        batch_free(&batch);
        scratch_release(&loaded);
}
END_TEST

/* Add a partition that is read, and whose dedup table has records up to an offset. */
static struct partition *
add_partition(struct processor *processor, int32_t id, int64_t decide_from, int64_t known_to)
{
        struct partition *partition = partition_add(&processor->partitions, id);

        ck_assert_ptr_nonnull(partition);
        partition->dedup = dedup_new(1000, DEDUP_COMPLETE);
        partition->stage = PARTITION_POSITIONED;
        partition->decide_from = decide_from;
        partition->known_to = known_to;
        return partition;
}

START_TEST(test_reload_voids_uncommitted_decisions)
{
        struct loaded loaded = scratch_load(scratch_embedded), newer = scratch_load(scratch_embedded);
        struct current *current = current_new(loaded.config);
        struct metrics *metrics = metrics_new(loaded.config, NULL, NULL);
        const struct partition *undecided, *decided;
        struct error error = {.text = ""};
        struct processor processor;

        ck_assert_msg(processor_open(&processor, current, NULL, metrics, &error) == 0, "%s", error.text);
        undecided = add_partition(&processor, 0, 5, 5);
        decided = add_partition(&processor, 1, 5, 6);
        processor_reload(&processor);
        ck_assert_ptr_nonnull(decided->dedup);
        current_set(current, newer.config);
        processor.is_open = 1;
        processor_reload(&processor);
        ck_assert(processor_is_outdated(&processor));
        processor.is_open = 0;
        processor_reload(&processor);
        ck_assert(!processor_is_outdated(&processor));
        ck_assert_ptr_null(decided->dedup);
        ck_assert_int_eq(decided->stage, PARTITION_UNPOSITIONED);
        ck_assert_ptr_nonnull(undecided->dedup);
        ck_assert_int_eq(undecided->stage, PARTITION_POSITIONED);
        processor_close(&processor);
        metrics_free(metrics);
        current_free(current);
        scratch_release(&loaded);
        scratch_release(&newer);
}
END_TEST

/* The producer is replaced after a commit whose requests went unanswered, and a reload commits between two records. */
START_TEST(test_record_is_not_decided_without_a_producer)
{
        struct loaded loaded = scratch_load(scratch_embedded);
        struct error error = {.text = ""};
        struct embedded *embedded = embedded_new(loaded.config, &error);
        struct current *current = current_new(loaded.config);
        struct metrics *metrics = metrics_new(loaded.config, NULL, NULL);
        const struct consumer_origin unknown = {0};
        struct transaction *transaction;
        rd_kafka_message_t *message;
        struct processor processor;
        rd_kafka_t *reader;

        ck_assert_msg(embedded != NULL, "%s", error.text);
        transaction = transaction_new(loaded.config, embedded_bootstrap(embedded), NULL, NULL, &error);
        ck_assert_msg(transaction != NULL, "%s", error.text);
        ck_assert_msg(transaction_init(transaction, INIT_TIMEOUT_MS, &error) == 0, "%s", error.text);
        begin(transaction, loaded.config);
        commit(transaction, loaded.config);
        transaction_free(transaction);
        reader = client_new_reader(loaded.config, embedded_bootstrap(embedded), &error);
        ck_assert_msg(reader != NULL, "%s", error.text);
        message = read_first(reader, loaded.config->deliveries_topic);
        ck_assert_msg(processor_open(&processor, current, NULL, metrics, &error) == 0, "%s", error.text);
        (void)add_partition(&processor, message->partition, message->offset, message->offset);
        ck_assert_int_eq(processor_take(&processor, &processor.partitions, message, &unknown, &error),
                         PROCESSOR_FAILED);
        ck_assert_str_eq(error.text, "the producer is being replaced");
        processor_close(&processor);
        ck_assert_int_eq(client_destroy(reader), 0);
        embedded_free(embedded);
        metrics_free(metrics);
        current_free(current);
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
        tcase_add_test(tcase, test_value_of_a_stub_is_empty_and_not_null);
        tcase_add_test(tcase, test_batch_is_full_at_each_of_its_limits);
        tcase_add_test(tcase, test_batch_adapts_to_the_time_of_its_records);
        tcase_add_test(tcase, test_small_batch_grows_however_long_its_records_take);
        tcase_add_test(tcase, test_reload_voids_uncommitted_decisions);
        tcase_add_test(tcase, test_record_is_not_decided_without_a_producer);
        suite_add_tcase(suite, tcase);
        return suite;
}
