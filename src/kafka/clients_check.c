#include "kafka/clients_check.h"

#include <stdio.h>
#include <string.h>

#include "kafka/consumer.h"
#include "kafka/producer.h"
#include "kafka/transaction.h"

#define NO_BROKERS ""
#define NO_DESCRIPTOR (-1)

static int
check_receiver(const struct config *config, struct error *error)
{
        struct producer *producer =
            producer_new(config, NO_BROKERS, (struct producer_manner){PRODUCER_PROMPT, 1}, NO_DESCRIPTOR,
                         NULL, NULL, error);

        producer_free(producer);
        return producer == NULL ? -1 : 0;
}

static int
check_router(const struct config *config, struct error *error)
{
        static const struct consumer_events events;
        struct transaction *transaction = transaction_new(config, NO_BROKERS, NULL, NULL, error);
        struct consumer *consumer =
            transaction == NULL ? NULL : consumer_new(config, NO_BROKERS, &events, NULL, error);

        transaction_free(transaction);
        consumer_free(consumer);
        return consumer == NULL ? -1 : 0;
}

/* Return the first property that a message of librdkafka names, or NULL. */
static const struct config_property *
named_in(const struct config *config, const char *message)
{
        static const char name_chars[] = "abcdefghijklmnopqrstuvwxyz.";

        for (size_t i = 0; i < config->n_kafka; i++) {
                const char *name = config->kafka[i].name, *at = strstr(message, name);

                if (at != NULL && strspn(at, name_chars) == strlen(name))
                        return &config->kafka[i];
        }
        return NULL;
}

void
clients_check(const struct config *config, struct findings *findings)
{
        const struct config_property *property;
        struct finding *finding;
        struct error error;

        if ((!(config->roles & CONFIG_RECEIVER) || check_receiver(config, &error) == 0) &&
            (!(config->roles & CONFIG_ROUTER) || check_router(config, &error) == 0))
                return;
        property = named_in(config, error.text);
        finding = findings_add(findings, FINDING_ERROR, config->file, "[kafka]: %s", error.text);
        finding->line = property == NULL ? 0 : config_find_line(config, "kafka", property->name);
}
