#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "config/config.h"
#include "config/options.h"

/* A value and its origin. argument is the NAME of [source NAME], else "". */
struct shown {
        const char *section;
        const char *argument;
        const char *name;
        const char *value;
        size_t line; /* 0: a default */
};

struct dump {
        const struct config *config;
        const struct ini *ini;
        void (*show)(const struct shown *shown, void *arg);
        void *arg;
};

/* Return the value of an option that the file does not set, or NULL if it has none. */
static const char *
computed(const struct dump *dump, const struct option_row *option, const struct config_source *source)
{
        if (strcmp(option->name, "instance") == 0)
                return dump->config->instance;
        if (strcmp(option->name, "header_prefix") == 0)
                return source->header_prefix;
        if (strcmp(option->name, "ce_source") == 0)
                return source->ce_source;
        return option->fallback;
}

static void
dump_option(const struct dump *dump, const struct option_row *option, const struct config_source *source)
{
        const char *argument = source == NULL ? "" : source->name;
        const char *value = computed(dump, option, source);
        int given = 0;

        for (size_t i = 0; i < dump->ini->n; i++) {
                const struct ini_entry *entry = &dump->ini->entries[i];

                if (entry->name == NULL || strcmp(entry->section, option->section) != 0 ||
                    strcmp(entry->argument, argument) != 0 || strcmp(entry->name, option->name) != 0)
                        continue;
                dump->show(&(struct shown){option->section, argument, option->name, entry->value,
                                           entry->line},
                           dump->arg);
                given = 1;
        }
        if (!given && value != NULL)
                dump->show(&(struct shown){option->section, argument, option->name, value, 0}, dump->arg);
}

static void
dump_section(const struct dump *dump, const char *section, const struct config_source *source)
{
        for (size_t i = 0; i < options_count(); i++) {
                const struct option_row *option = options_at(i);

                if (strcmp(option->section, section) == 0)
                        dump_option(dump, option, source);
        }
}

/* The lines of the file, then the defaults that they leave. */
static void
dump_events(const struct dump *dump)
{
        const struct ini *ini = dump->ini;

        for (size_t i = 0; i < ini->n; i++) {
                const struct ini_entry *entry = &ini->entries[i];

                if (entry->name != NULL && strcmp(entry->section, "events") == 0)
                        dump->show(&(struct shown){"events", "", entry->name, entry->value, entry->line},
                                   dump->arg);
        }
        for (size_t i = 0; i < topic_table_size(dump->config->topics); i++) {
                const struct topic_rule *rule = topic_table_rule(dump->config->topics, i);

                if (ini_line(ini, "events", "", rule->pattern) == 0)
                        dump->show(&(struct shown){"events", "", rule->pattern, rule->topic, 0}, dump->arg);
        }
}

static void
dump_kafka(const struct dump *dump)
{
        for (size_t i = 0; i < dump->ini->n; i++) {
                const struct ini_entry *entry = &dump->ini->entries[i];

                if (entry->name != NULL && strcmp(entry->section, "kafka") == 0)
                        dump->show(&(struct shown){"kafka", "", entry->name, entry->value, entry->line},
                                   dump->arg);
        }
}

static void
dump_all(const struct dump *dump)
{
        dump_section(dump, "gatepost", NULL);
        dump_section(dump, "receiver", NULL);
        dump_section(dump, "router", NULL);
        for (size_t i = 0; i < dump->config->n_sources; i++)
                dump_section(dump, "source", &dump->config->sources[i]);
        dump_section(dump, "topics", NULL);
        dump_events(dump);
        dump_kafka(dump);
        dump_section(dump, "admin", NULL);
        dump_section(dump, "service", NULL);
}

struct text_out {
        FILE *out;
        const char *file;
        char header[128]; /* of the current section */
};

static void
show_text(const struct shown *shown, void *arg)
{
        struct text_out *text = arg;
        char header[sizeof(text->header)];
        int len;

        (void)snprintf(header, sizeof(header), "[%s%s%s]", shown->section,
                       *shown->argument == '\0' ? "" : " ", shown->argument);
        if (strcmp(header, text->header) != 0) {
                fprintf(text->out, "%s%s\n", *text->header == '\0' ? "" : "\n", header);
                memcpy(text->header, header, sizeof(header));
        }
        len = fprintf(text->out, "%s = \"%s\"", shown->name,
                      shown->value); /* a comment may follow only quotes */
        fprintf(text->out, "%*s ; ", len < 56 ? 56 - len : 0, "");
        if (shown->line > 0)
                fprintf(text->out, "line %zu\n", shown->line);
        else
                fputs("default\n", text->out);
}

static void
show_json(const struct shown *shown, void *arg)
{
        struct json_writer *json = arg;

        json_open_object(json, NULL);
        json_member(json, "section", shown->section);
        if (*shown->argument != '\0') {
                json_member(json, "source", shown->argument);
        }
        json_member(json, "name", shown->name);
        json_member(json, "value", shown->value);
        if (shown->line > 0)
                json_number(json, "line", (int64_t)shown->line);
        else
                json_null(json, "line");
        json_close_object(json);
}

static void
print_json(struct dump *dump, FILE *out)
{
        struct json_writer *json = json_new(1);

        dump->show = show_json;
        dump->arg = json;
        json_open_array(json, NULL);
        dump_all(dump);
        json_close_array(json);
        json_write(json, out);
}

int
config_print(const char *file, int json, FILE *out)
{
        struct config *config = config_load(file);
        struct text_out text = {.out = out, .file = file};
        struct dump dump = {config, config == NULL ? NULL : &config->ini, show_text, &text};

        if (config != NULL && json)
                print_json(&dump, out);
        else if (config != NULL)
                dump_all(&dump);
        config_free(config);
        return config == NULL ? -1 : 0;
}
