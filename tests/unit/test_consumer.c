#include <check.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "kafka/client.h"
#include "kafka/consumer.h"
#include "kafka/embedded.h"
#include "kafka/offsets.h"
#include "kafka/reader.h"
#include "router/member.h"
#include "router/partition_status.h"
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

/* Append empty records to partition 0, each in a batch of its own or all in one. */
static void
append(const struct config *config, const char *bootstrap, const char *topic, int n, int are_apart)
{
        static const struct client_property properties[] = {{"linger.ms", "10000", 0}, {NULL, NULL, 0}};
        struct error error = {.text = ""};
        rd_kafka_t *client = client_new(RD_KAFKA_PRODUCER, config, bootstrap, properties, NULL, NULL, &error);

        ck_assert_msg(client != NULL, "%s", error.text);
        for (int i = 0; i < n; i++) {
                ck_assert_int_eq(rd_kafka_producev(client, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0),
                                                   RD_KAFKA_V_END),
                                 0);
                if (are_apart || i == n - 1)
                        ck_assert_int_eq(rd_kafka_flush(client, JOINED_WITHIN_MS), 0);
        }
        rd_kafka_destroy(client);
}

/* Return the offset of the next record. */
static int64_t
next_offset(struct consumer *consumer)
{
        int64_t deadline = clock_monotonic_ms() + JOINED_WITHIN_MS, offset = -1;

        while (offset < 0 && clock_monotonic_ms() < deadline) {
                rd_kafka_message_t *message;
                int32_t partition;
                struct error error;

                if (consumer_poll(consumer, 100, &message, &partition, &error) == CONSUMER_MESSAGE)
                        offset = message->offset;
                if (message != NULL)
                        rd_kafka_message_destroy(message);
        }
        return offset;
}

START_TEST(test_assignment_discards_polled_messages_not_yet_returned)
{
        struct loaded loaded = scratch_load(scratch_embedded);
        rd_kafka_topic_partition_list_t *assigned = NULL;
        struct error error = {.text = ""};
        struct embedded *embedded;
        struct consumer *consumer;

        ck_assert_msg(loaded.config != NULL, "%s", loaded.messages);
        embedded = embedded_new(loaded.config, &error);
        ck_assert_msg(embedded != NULL, "%s", error.text);
        append(loaded.config, embedded_bootstrap(embedded), loaded.config->deliveries_topic, 100, 0);
        consumer = consumer_new(loaded.config, embedded_bootstrap(embedded), &events, &assigned, &error);
        ck_assert_msg(consumer != NULL, "%s", error.text);
        join(consumer, &assigned);
        for (int i = 0; i < 3; i++) {
                ck_assert_int_eq(consumer_assign(consumer, assigned, &error), 0);
                ck_assert_int_eq(next_offset(consumer), 0);
                ck_assert_int_eq(next_offset(consumer), 1);
        }
        rd_kafka_topic_partition_list_destroy(assigned);
        consumer_free(consumer);
        embedded_free(embedded);
        scratch_release(&loaded);
}
END_TEST

/* Make a range begin at a time after its last record, by the configuration of an embedded or of another broker. */
static void
begin_after_the_end(const struct config *config, const char *bootstrap, struct range *range)
{
        struct error error = {.text = ""};
        struct offsets *offsets = offsets_new(config, bootstrap, &error);
        int64_t offset;

        ck_assert_msg(offsets != NULL, "%s", error.text);
        ck_assert_int_eq(offsets_at_time(offsets, range->topic, 0, clock_now_ms() + 60000, &offset,
                                         JOINED_WITHIN_MS, &error),
                         0);
        ck_assert_int_eq(offset, -1);
        ck_assert_int_eq(offsets_begin_at(offsets, range, clock_now_ms() + 60000, JOINED_WITHIN_MS, &error),
                         0);
        offsets_free(offsets);
}

/*
 * The broker inside the process knows of no time, and says so as Kafka does of a time after the last record.
 * A range of Kafka becomes empty then; one of an embedded broker is read from where it began.
 */
START_TEST(test_range_from_a_time_after_the_last_record_is_empty_in_kafka_only)
{
        struct loaded loaded = scratch_load(scratch_embedded), other = scratch_load(scratch_minimal);
        struct range range = {.topic = loaded.config->deliveries_topic, .from = 2, .to = 5};
        struct error error = {.text = ""};
        struct embedded *embedded = embedded_new(loaded.config, &error);

        ck_assert_msg(embedded != NULL, "%s", error.text);
        append(loaded.config, embedded_bootstrap(embedded), range.topic, 5, 0);
        begin_after_the_end(loaded.config, embedded_bootstrap(embedded), &range);
        ck_assert_int_eq(range.from, 2);
        begin_after_the_end(other.config, embedded_bootstrap(embedded), &range);
        ck_assert_int_eq(range.from, 5);
        ck_assert_int_eq(range.to, 5);
        embedded_free(embedded);
        scratch_release(&other);
        scratch_release(&loaded);
}
END_TEST

/* The broker inside the process returns a batch of a partition at a time: the short log ends long before the other. */
START_TEST(test_end_of_one_partition_is_not_counted_for_another)
{
        struct loaded loaded = scratch_load(scratch_embedded);
        const char *topics[] = {loaded.config->deliveries_topic, loaded.config->quarantine_topic};
        const struct reader_wish wish = {.topics = topics,
                                         .n_topics = 2,
                                         .from_ms = READER_FROM_BEGINNING,
                                         .stops_at_ends = 1};
        int64_t deadline_ms = clock_monotonic_ms() + JOINED_WITHIN_MS;
        struct error error = {.text = ""};
        struct embedded *embedded = embedded_new(loaded.config, &error);
        struct reader *reader;
        int n = 0;

        ck_assert_msg(embedded != NULL, "%s", error.text);
        append(loaded.config, embedded_bootstrap(embedded), topics[0], 2, 0);
        append(loaded.config, embedded_bootstrap(embedded), topics[1], 20, 1);
        reader = reader_new(loaded.config, embedded_bootstrap(embedded), &wish, JOINED_WITHIN_MS, &error);
        ck_assert_msg(reader != NULL, "%s", error.text);
        while (!reader_reached_ends(reader) && clock_monotonic_ms() < deadline_ms) {
                rd_kafka_message_t *message = reader_poll(reader, 100);

                n += message != NULL;
                if (message != NULL)
                        rd_kafka_message_destroy(message);
        }
        ck_assert(reader_reached_ends(reader));
        ck_assert_int_eq(n, 22);
        reader_free(reader);
        embedded_free(embedded);
        scratch_release(&loaded);
}
END_TEST

/* The router as a consumer */

START_TEST(test_router_fenced_five_times_in_two_minutes_reports_a_rival)
{
        struct member member = {.n_fenced = 0};

        for (int i = 0; i < 4; i++)
                ck_assert(!member_note_fenced(&member));
        member.fenced_since_ms -= 119000;
        ck_assert(member_note_fenced(&member));
        member.n_fenced = 4;
        member.fenced_since_ms -= 2000;
        ck_assert(!member_note_fenced(&member));
        ck_assert_int_eq(member.n_fenced, 1);
}
END_TEST

START_TEST(test_lag_includes_unassigned_partitions)
{
        static const struct unassigned_partition unassigned[] = {{.partition = 4, .waiting = 7},
                                                                 {.partition = 2, .waiting = 3}};
        struct loaded loaded = scratch_load(scratch_embedded);
        struct metrics *metrics = metrics_new(loaded.config, NULL, NULL);
        struct partition_list partitions = {.items = NULL}, followed = {.items = NULL};
        struct partition *own = partition_add(&partitions, 3);
        struct partition_status status;

        ck_assert_ptr_nonnull(own);
        own->decide_from = 10;
        own->high = 15;
        partition_status_read(&status, &partitions, &followed, NULL, "deliveries", unassigned, 2, NULL,
                              metrics);
        ck_assert_uint_eq(status.n, 1);
        ck_assert_uint_eq(status.n_unassigned, 2);
        ck_assert_uint_eq(status.lag, 15);
        ck_assert_str_eq(status.reason.text, "partition 4 is assigned to no router");
        ck_assert_uint_eq(status.to_read, 0);
        own->stage = PARTITION_POSITIONED;
        own->next = 4;
        partition_status_read(&status, &partitions, &followed, NULL, "deliveries", unassigned, 2, NULL,
                              metrics);
        ck_assert_uint_eq(status.to_read, 6);
        partition_clear(&partitions);
        metrics_free(metrics);
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
        tcase_add_test(tcase, test_assignment_discards_polled_messages_not_yet_returned);
        tcase_add_test(tcase, test_range_from_a_time_after_the_last_record_is_empty_in_kafka_only);
        tcase_add_test(tcase, test_end_of_one_partition_is_not_counted_for_another);
        tcase_add_test(tcase, test_router_fenced_five_times_in_two_minutes_reports_a_rival);
        tcase_add_test(tcase, test_lag_includes_unassigned_partitions);
        suite_add_tcase(suite, tcase);
        return suite;
}
