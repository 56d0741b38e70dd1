#include "cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/mem.h"
#include "cli/arguments.h"
#include "cli/kafka_access.h"
#include "cli/show_record.h"
#include "kafka/message.h"
#include "kafka/outage.h"
#include "kafka/reader.h"

#define POLL_MS 200

static struct {
        const char *bootstrap;
        int64_t from_ms;
        int until_end;
        int as_json;
        int with_quarantine;
        int with_headers;
        char **filters; /* kinds, ended by NULL; none: all */
} args = {.from_ms = READER_FROM_END};

static int
has_topic(const struct config *config, const char *kind)
{
        for (size_t t = 0; t < topic_table_size(config->topics); t++) {
                if (arguments_kind_may_match(kind, config->topics, topic_table_rule(config->topics, t)))
                        return 1;
        }
        return 0;
}

/* Return whether the topic of a rule may hold events to print. */
static int
is_wanted(const struct config *config, const struct topic_rule *rule)
{
        for (char **filter = args.filters; *filter != NULL; filter++) {
                if (arguments_kind_may_match(*filter, config->topics, rule))
                        return 1;
        }
        return *args.filters == NULL;
}

/* Return a filter that matches no topic, or NULL. */
static const char *
find_unmatched(const struct config *config)
{
        for (char **filter = args.filters; *filter != NULL; filter++) {
                if (!has_topic(config, *filter))
                        return *filter;
        }
        return NULL;
}

/* Return the topics to read, an array that the caller frees. */
static const char **
choose_topics(const struct config *config, size_t *n)
{
        size_t n_rules = topic_table_size(config->topics);
        const char **topics = mem_alloc((n_rules + 1) * sizeof(*topics));

        *n = 0;
        for (size_t i = 0; i < n_rules; i++) {
                const struct topic_rule *rule = topic_table_rule(config->topics, i);

                if (is_wanted(config, rule))
                        topics[(*n)++] = rule->topic;
        }
        if (args.with_quarantine)
                topics[(*n)++] = config->quarantine_topic;
        return topics;
}

/* Return whether records are read from the beginning because an embedded broker does not search by time. */
static int
searches_itself(const struct config *config)
{
        return config->embedded && args.from_ms != READER_FROM_BEGINNING && args.from_ms != READER_FROM_END;
}

/* Return whether a record may be older than --from: then it is not printed. */
static int
is_too_old(const struct config *config, const rd_kafka_message_t *message)
{
        return searches_itself(config) && rd_kafka_message_timestamp(message, NULL) < args.from_ms;
}

/* Return whether a filter matches the kind in a type, which may follow the ce_type_prefix of any source. */
static int
matches(const struct config *config, const char *filter, const char *type, size_t len)
{
        int result = arguments_kind_matches(filter, type, len);

        for (size_t i = 0; i < config->n_sources && !result; i++) {
                const char *prefix = config->sources[i].ce_type_prefix;
                size_t n = prefix == NULL ? 0 : strlen(prefix);

                result = n > 0 && n < len && memcmp(type, prefix, n) == 0 &&
                         arguments_kind_matches(filter, type + n, len - n);
        }
        return result;
}

/* Return whether to print a record: its topic may hold other kinds, and quarantine markers of releases. */
static int
has_wanted_kind(const struct config *config, const rd_kafka_message_t *message)
{
        rd_kafka_headers_t *headers;
        const void *value;
        size_t len;

        if (message_is_marker(message))
                return 0;
        if (*args.filters == NULL ||
            rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR ||
            rd_kafka_header_get_last(headers, "ce_type", &value, &len) != RD_KAFKA_RESP_ERR_NO_ERROR)
                return 1;
        for (char **filter = args.filters; *filter != NULL; filter++) {
                if (matches(config, *filter, value, len))
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

        return failure == NULL ? 0 : kafka_access_fail(is_denied, failure);
}

/* Print records or, with --until-end, those until the end. Returns an exit status. */
static int
follow(const struct config *config, struct reader *reader)
{
        int status = 0, is_any = 0;

        while (!ferror(stdout) && status == 0 && !(args.until_end && reader_reached_ends(reader))) {
                rd_kafka_message_t *message = reader_poll(reader, POLL_MS);

                if (reader_notice(reader) != NULL)
                        (void)command_fail(0, "%s", reader_notice(reader));
                if (message == NULL) {
                        status = find_failure(reader);
                        if (status == 0 && args.until_end && reader_is_stalled(reader))
                                status = command_fail(EX_UNAVAILABLE, "Kafka has not answered for a minute");
                        continue;
                }
                if (has_wanted_kind(config, message) && !is_too_old(config, message)) {
                        is_any = 1;
                        if (args.as_json)
                                show_record_json(message);
                        else
                                show_record_text(message, args.with_headers);
                        (void)fflush(stdout);
                }
                rd_kafka_message_destroy(message);
        }
        if (args.until_end && !is_any && status == 0)
                (void)command_fail(0, "no events; a delivery may take a second to become one");
        return status;
}

static int
run(const struct config *config)
{
        int status = kafka_access_find(config, &args.bootstrap);
        struct reader_wish wish;
        struct reader *reader;
        struct error error;
        const char **topics, *unmatched;
        size_t n;

        if (status != 0)
                return status;
        unmatched = find_unmatched(config);
        if (unmatched != NULL)
                return command_fail(EX_USAGE,
                                    "no topic has events of the kind %s; gatepost config shows the kinds and "
                                    "topics",
                                    unmatched);
        topics = choose_topics(config, &n);
        wish = (struct reader_wish){topics, n, args.from_ms, args.until_end};
        if (searches_itself(config))
                wish.from_ms = READER_FROM_BEGINNING;
        reader = reader_new(config, args.bootstrap, &wish, KAFKA_ACCESS_TIMEOUT_MS, &error);
        free(topics);
        if (reader == NULL) {
                (void)command_fail(0, "%s", error.text);
                command_note_routers(config);
                return EX_UNAVAILABLE;
        }
        outage_set_logging(1); /* it waits until Kafka is back */
        status = follow(config, reader);
        reader_free(reader);
        return status;
}

/* Parse --from. Returns 0, or -1 with the reason. */
static int
parse_from(const char *text, struct error *error)
{
        if (strcmp(text, "beginning") == 0)
                args.from_ms = READER_FROM_BEGINNING;
        else if (strcmp(text, "end") == 0)
                args.from_ms = READER_FROM_END;
        else if (arguments_time(text, &args.from_ms, error) != 0)
                return error_prefix(error, "'%.64s' is neither beginning nor end, nor an age or a past time",
                                    text);
        return 0;
}

static const struct command_option options[] = {
    {NULL, "[KIND ...]", "print only these kinds, such as invoice.accepted or 'invoice.*'",
     .rest = &args.filters},
    {"from", "WHERE", "start at the beginning, the end (default), an age such as 2h, or 2026-11-21T03:04:05Z",
     .parse = parse_from},
    {"until-end", NULL, "stop at the present end", .flag = &args.until_end},
    {"headers", NULL, "print each record's headers below it", .flag = &args.with_headers},
    {"json", NULL, "print JSON, one object per line", .flag = &args.as_json},
    {"quarantine", NULL, "follow quarantine, too", .flag = &args.with_quarantine},
    KAFKA_ACCESS_BOOTSTRAP(args.bootstrap),
};

const struct command tail_command = {
    .name = "tail",
    .help = "follow the published events as a consumer sees them",
    .run = run,
    COMMAND_OPTIONS(options),
};
