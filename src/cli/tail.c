#include "cli/commands.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/mem.h"
#include "cli/interrupt.h"
#include "cli/kafka_access.h"
#include "cli/kind_filter.h"
#include "cli/show_record.h"
#include "cli/since.h"
#include "kafka/reader.h"

#define POLL_MS 200

struct wish {
        const char *bootstrap;
        int64_t from_ms;
        int until_end;
        int as_json;
        int quarantine;
        int headers;
        char **kinds; /* all when there are none */
        size_t n_kinds;
};

/* Whether the topic of a rule is to be read at all. */
static int
is_wanted(const struct config *config, const struct topic_rule *rule, const struct wish *wish)
{
        for (size_t i = 0; i < wish->n_kinds; i++) {
                if (kind_filter_concerns(wish->kinds[i], config->topics, rule))
                        return 1;
        }
        return wish->n_kinds == 0;
}

/* A kind that no topic has events of, or NULL. */
static const char *
find_vain(const struct config *config, const struct wish *wish)
{
        for (size_t i = 0; i < wish->n_kinds; i++) {
                size_t t = 0, n = topic_table_size(config->topics);

                while (t < n && !kind_filter_concerns(wish->kinds[i], config->topics,
                                                      topic_table_rule(config->topics, t)))
                        t++;
                if (t == n)
                        return wish->kinds[i];
        }
        return NULL;
}

/* The topics to read: an array that the caller frees. */
static const char **
choose_topics(const struct config *config, const struct wish *wish, size_t *n)
{
        size_t n_rules = topic_table_size(config->topics);
        const char **topics = mem_alloc((n_rules + 1) * sizeof(*topics));

        *n = 0;
        for (size_t i = 0; i < n_rules; i++) {
                const struct topic_rule *rule = topic_table_rule(config->topics, i);

                if (is_wanted(config, rule, wish))
                        topics[(*n)++] = rule->topic;
        }
        if (wish->quarantine)
                topics[(*n)++] = config->quarantine_topic;
        return topics;
}

/* A topic may have more kinds than those asked for. */
static int
has_wanted_kind(const rd_kafka_message_t *message, const struct wish *wish)
{
        rd_kafka_headers_t *headers;
        const void *value;
        size_t len;

        if (wish->n_kinds == 0 || rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR ||
            rd_kafka_header_get_last(headers, "ce_type", &value, &len) != RD_KAFKA_RESP_ERR_NO_ERROR)
                return 1;
        for (size_t i = 0; i < wish->n_kinds; i++) {
                if (kind_filter_matches(wish->kinds[i], value, len))
                        return 1;
        }
        return 0;
}

/* Returns an exit status, after saying why if no more can be read. */
static int
find_failure(const struct reader *reader)
{
        int is_denied;
        const char *failure = reader_failure(reader, &is_denied);

        if (failure == NULL)
                return 0;
        fprintf(stderr, "gatepost tail: %s\n", failure);
        return is_denied ? EX_NOPERM : EX_UNAVAILABLE;
}

/* Show records until told to stop, or at the end. Returns an exit status. */
static int
follow(struct reader *reader, const struct wish *wish)
{
        int status = 0;

        while (!interrupt_came() && !ferror(stdout) && status == 0 &&
               !(wish->until_end && reader_reached_ends(reader))) {
                rd_kafka_message_t *message = reader_poll(reader, POLL_MS);

                if (reader_notice(reader) != NULL)
                        fprintf(stderr, "gatepost tail: %s\n", reader_notice(reader));
                if (message == NULL) {
                        status = find_failure(reader);
                        if (status == 0 && wish->until_end && reader_is_stalled(reader)) {
                                fprintf(stderr, "gatepost tail: Kafka has not answered for a minute\n");
                                status = EX_UNAVAILABLE;
                        }
                        continue;
                }
                if (has_wanted_kind(message, wish)) {
                        if (wish->as_json)
                                show_record_json(message);
                        else
                                show_record_text(message, wish->headers);
                        (void)fflush(stdout);
                }
                rd_kafka_message_destroy(message);
        }
        return status;
}

static int
run(const struct config *config, const struct wish *wish)
{
        int status;
        const char *bootstrap = kafka_access_bootstrap(config, wish->bootstrap, &status);
        struct reader *reader;
        struct error error;
        const char **topics, *vain;
        size_t n;

        if (status != 0)
                return status;
        vain = find_vain(config, wish);
        if (vain != NULL) {
                fprintf(stderr,
                        "gatepost tail: no topic has events of the kind %s; gatepost topics list shows all\n",
                        vain);
                return EX_USAGE;
        }
        topics = choose_topics(config, wish, &n);
        reader =
            reader_new(config, bootstrap, &(struct reader_wish){topics, n, wish->from_ms, wish->until_end},
                       KAFKA_ACCESS_TIMEOUT_MS, &error);
        free(topics);
        if (reader == NULL) {
                fprintf(stderr, "gatepost tail: %s\n", error.text);
                return EX_UNAVAILABLE;
        }
        interrupt_watch();
        status = follow(reader, wish);
        reader_free(reader);
        return status;
}

/* Read --from. Returns 0, or -1 with the reason. */
static int
parse_from(const char *text, int64_t *from_ms, struct error *error)
{
        if (strcmp(text, "beginning") == 0)
                *from_ms = READER_FROM_BEGINNING;
        else if (strcmp(text, "end") == 0)
                *from_ms = READER_FROM_END;
        else if (since_parse(text, from_ms, error) != 0)
                return error_set(
                    error,
                    "'%.64s' is neither beginning nor end, nor an age, such as 2h, nor a time past, such as "
                    "2026-11-21T03:04:05Z",
                    text);
        return 0;
}

/* Read the arguments. Returns -1 to go on, or an exit status. */
static int
parse(const struct command_context *context, int argc, char **argv, struct wish *wish)
{
        static const struct option options[] = {{"from", required_argument, NULL, 'f'},
                                                {"until-end", no_argument, NULL, 'u'},
                                                {"json", no_argument, NULL, 'j'},
                                                {"quarantine", no_argument, NULL, 'q'},
                                                {"headers", no_argument, NULL, 'H'},
                                                {"help", no_argument, NULL, 'h'},
                                                {"bootstrap", required_argument, NULL, 'b'},
                                                {NULL, 0, NULL, 0}};
        struct error error;
        int option;

        while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
                if (option == 'h')
                        return command_help(context);
                if (option == '?')
                        return command_misused(context, "wrong option");
                if (option == 'f' && parse_from(optarg, &wish->from_ms, &error) != 0)
                        return command_misused(context, "--from: %s", error.text);
                wish->until_end |= option == 'u';
                wish->as_json |= option == 'j';
                wish->quarantine |= option == 'q';
                wish->headers |= option == 'H';
                if (option == 'b')
                        wish->bootstrap = optarg;
        }
        wish->kinds = argv + optind;
        wish->n_kinds = (size_t)(argc - optind);
        return -1;
}

int
tail_run(const struct command_context *context, int argc, char **argv)
{
        struct wish wish = {.from_ms = READER_FROM_END};
        int status = parse(context, argc, argv, &wish);
        struct config *config;

        if (status >= 0)
                return status;
        config = config_load(context->file);
        if (config == NULL)
                return EX_CONFIG;
        status = run(config, &wish);
        config_free(config);
        return status;
}
