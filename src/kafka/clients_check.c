#include "kafka/clients_check.h"

#include <stdio.h>

#include "kafka/consumer.h"
#include "kafka/producer.h"
#include "kafka/transaction.h"

#define NO_BROKERS ""
#define NO_DESCRIPTOR (-1)

static int
check_receiver(const struct config *config, struct error *error)
{
        struct producer *producer = producer_new(config, NO_BROKERS, NO_DESCRIPTOR, NULL, NULL, error);

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

int
clients_check(const struct config *config, problems_reporter *report)
{
        struct error error;
        char text[sizeof(error.text) + 16];
        const struct problem problem = {PROBLEM_ERROR, 0, text, "kafka", NULL, NULL};

        if ((!(config->roles & CONFIG_RECEIVER) || check_receiver(config, &error) == 0) &&
            (!(config->roles & CONFIG_ROUTER) || check_router(config, &error) == 0))
                return 0;
        (void)snprintf(text, sizeof(text), "[kafka]: %s", error.text);
        report(config->file, &problem);
        return -1;
}
