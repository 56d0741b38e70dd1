#include "cli/commands.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/mem.h"
#include "cli/arguments.h"
#include "cli/kafka_access.h"
#include "cli/show_record.h"
#include "cli/terminal.h"
#include "kafka/reader.h"

#define POLL_MS 200

struct tail_options {
        const char *bootstrap;
        int64_t from_ms;
        int until_end;
        int as_json;
        int with_quarantine;
        int with_headers;
        char **kinds; /* filters; none: all kinds */
        size_t n_kinds;
};

/* Return whether the topic of a rule may hold events to print. */
static int
is_wanted(const struct config *config, const struct topic_rule *rule, const struct tail_options *options)
{
        for (size_t i = 0; i < options->n_kinds; i++) {
                if (arguments_kind_may_match(options->kinds[i], config->topics, rule))
                        return 1;
        }
        return options->n_kinds == 0;
}

/* Return a filter that matches no topic, or NULL. */
static const char *
find_unmatched(const struct config *config, const struct tail_options *options)
{
        for (size_t i = 0; i < options->n_kinds; i++) {
                size_t t = 0, n = topic_table_size(config->topics);

                while (t < n && !arguments_kind_may_match(options->kinds[i], config->topics,
                                                          topic_table_rule(config->topics, t)))
                        t++;
                if (t == n)
                        return options->kinds[i];
        }
        return NULL;
}

/* Return the topics to read, an array that the caller frees. */
static const char **
choose_topics(const struct config *config, const struct tail_options *options, size_t *n)
{
        size_t n_rules = topic_table_size(config->topics);
        const char **topics = mem_alloc((n_rules + 1) * sizeof(*topics));

        *n = 0;
        for (size_t i = 0; i < n_rules; i++) {
                const struct topic_rule *rule = topic_table_rule(config->topics, i);

                if (is_wanted(config, rule, options))
                        topics[(*n)++] = rule->topic;
        }
        if (options->with_quarantine)
                topics[(*n)++] = config->quarantine_topic;
        return topics;
}

/* Return whether to print a record: its topic may hold other kinds, too. */
static int
has_wanted_kind(const rd_kafka_message_t *message, const struct tail_options *options)
{
        rd_kafka_headers_t *headers;
        const void *value;
        size_t len;

        if (options->n_kinds == 0 ||
            rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR ||
            rd_kafka_header_get_last(headers, "ce_type", &value, &len) != RD_KAFKA_RESP_ERR_NO_ERROR)
                return 1;
        for (size_t i = 0; i < options->n_kinds; i++) {
                if (arguments_kind_matches(options->kinds[i], value, len))
                        return 1;
        }
        return 0;
}

/* Print why no more can be read, if so. Returns an exit status. */
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

/* Print records until interrupted or, with --until-end, until the end. Returns an exit status. */
static int
follow(struct reader *reader, const struct tail_options *options)
{
        int status = 0;

        while (!terminal_is_interrupted() && !ferror(stdout) && status == 0 &&
               !(options->until_end && reader_reached_ends(reader))) {
                rd_kafka_message_t *message = reader_poll(reader, POLL_MS);

                if (reader_notice(reader) != NULL)
                        fprintf(stderr, "gatepost tail: %s\n", reader_notice(reader));
                if (message == NULL) {
                        status = find_failure(reader);
                        if (status == 0 && options->until_end && reader_is_stalled(reader)) {
                                fprintf(stderr, "gatepost tail: Kafka has not answered for a minute\n");
                                status = EX_UNAVAILABLE;
                        }
                        continue;
                }
                if (has_wanted_kind(message, options)) {
                        if (options->as_json)
                                show_record_json(message);
                        else
                                show_record_text(message, options->with_headers);
                        (void)fflush(stdout);
                }
                rd_kafka_message_destroy(message);
        }
        return status;
}

static int
run(const struct config *config, const struct tail_options *options)
{
        int status;
        const char *bootstrap = kafka_access_bootstrap(config, options->bootstrap, &status);
        struct reader *reader;
        struct error error;
        const char **topics, *unmatched;
        size_t n;

        if (status != 0)
                return status;
        unmatched = find_unmatched(config, options);
        if (unmatched != NULL) {
                fprintf(stderr,
                        "gatepost tail: no topic has events of the kind %s; gatepost topics list shows all\n",
                        unmatched);
                return EX_USAGE;
        }
        topics = choose_topics(config, options, &n);
        reader = reader_new(config, bootstrap,
                            &(struct reader_wish){topics, n, options->from_ms, options->until_end},
                            KAFKA_ACCESS_TIMEOUT_MS, &error);
        free(topics);
        if (reader == NULL) {
                fprintf(stderr, "gatepost tail: %s\n", error.text);
                return EX_UNAVAILABLE;
        }
        terminal_catch_interrupts();
        status = follow(reader, options);
        reader_free(reader);
        return status;
}

/* Parse --from. Returns 0, or -1 with the reason. */
static int
parse_from(const char *text, int64_t *from_ms, struct error *error)
{
        if (strcmp(text, "beginning") == 0)
                *from_ms = READER_FROM_BEGINNING;
        else if (strcmp(text, "end") == 0)
                *from_ms = READER_FROM_END;
        else if (arguments_time(text, from_ms, error) != 0)
                return error_set(
                    error,
                    "'%.64s' is neither beginning nor end, nor an age, such as 2h, nor a past time, such as "
                    "2026-11-21T03:04:05Z",
                    text);
        return 0;
}

/* Parse the arguments. Returns -1 to continue, or an exit status. */
static int
parse(const struct command_context *context, int argc, char **argv, struct tail_options *options)
{
        static const struct option long_options[] = {{"from", required_argument, NULL, 'f'},
                                                     {"until-end", no_argument, NULL, 'u'},
                                                     {"json", no_argument, NULL, 'j'},
                                                     {"quarantine", no_argument, NULL, 'q'},
                                                     {"headers", no_argument, NULL, 'H'},
                                                     {"help", no_argument, NULL, 'h'},
                                                     {"bootstrap", required_argument, NULL, 'b'},
                                                     {NULL, 0, NULL, 0}};
        struct error error;
        int option;

        while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
                if (option == 'h')
                        return command_help(context);
                if (option == '?')
                        return command_misused(context, "wrong option");
                if (option == 'f' && parse_from(optarg, &options->from_ms, &error) != 0)
                        return command_misused(context, "--from: %s", error.text);
                options->until_end |= option == 'u';
                options->as_json |= option == 'j';
                options->with_quarantine |= option == 'q';
                options->with_headers |= option == 'H';
                if (option == 'b')
                        options->bootstrap = optarg;
        }
        options->kinds = argv + optind;
        options->n_kinds = (size_t)(argc - optind);
        return -1;
}

int
tail_run(const struct command_context *context, int argc, char **argv)
{
        struct tail_options options = {.from_ms = READER_FROM_END};
        int status = parse(context, argc, argv, &options);
        struct config *config;

        if (status >= 0)
                return status;
        config = config_load(context->file);
        if (config == NULL)
                return EX_CONFIG;
        status = run(config, &options);
        config_free(config);
        return status;
}
