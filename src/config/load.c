#include "config/load.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/unit.h"
#include "config/ini.h"
#include "config/kafka_properties.h"
#include "config/options.h"
#include "config/secrets.h"
#include "model/signature.h"

/* A load under way. */
struct load {
        struct config *config;
        const struct ini *ini;
        struct findings *findings;
};

static struct finding *
add(struct findings *findings, enum finding_level level, size_t line, const char *format, va_list args)
{
        char *text = mem_vprintf(format, args);
        struct finding *finding = findings_add(findings, level, NULL, "%s", text);

        finding->line = line;
        free(text);
        return finding;
}

struct finding *
load_error(struct findings *findings, size_t line, const char *format, ...)
{
        struct finding *finding;
        va_list args;

        va_start(args, format);
        finding = add(findings, FINDING_ERROR, line, format, args);
        va_end(args);
        return finding;
}

struct finding *
load_warning(struct findings *findings, size_t line, const char *format, ...)
{
        struct finding *finding;
        va_list args;

        va_start(args, format);
        finding = add(findings, FINDING_WARNING, line, format, args);
        va_end(args);
        return finding;
}

static struct config_source *
find_source(const struct config *config, const char *name)
{
        for (size_t i = 0; i < config->n_sources; i++) {
                if (strcmp(config->sources[i].name, name) == 0)
                        return &config->sources[i];
        }
        return NULL;
}

/* Add a source. Report an invalid name, but read the options nevertheless. Return whether to read them. */
static int
add_source(struct load *load, const struct ini_entry *header)
{
        static const char chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
        struct config *config = load->config;
        struct config_source *source;
        size_t len = strlen(header->argument);

        if (len == 0) {
                load_error(load->findings, header->line, "a source needs a name, such as [source invoicing]");
                return 0;
        }
        if (find_source(config, header->argument) != NULL) {
                load_error(load->findings, header->line, "[source %.64s] is already on line %zu",
                           header->argument, ini_line(load->ini, "source", header->argument, NULL));
                return 0;
        }
        if (len > 64 || strspn(header->argument, chars) != len)
                load_error(load->findings, header->line,
                           "'%.64s' is not a source's name: 1 to 64 letters, digits, hyphens and underscores",
                           header->argument);
        config->sources = mem_resize(config->sources, config->n_sources + 1, sizeof(*source));
        source = &config->sources[config->n_sources++];
        memset(source, 0, sizeof(*source));
        source->name = mem_strdup(header->argument);
        return 1;
}

/* Return whether to read the options after a header; if not, the reason has been reported. */
static int
open_section(struct load *load, const struct ini_entry *header)
{
        struct finding *finding;
        const char *closest;

        if (strcmp(header->section, "source") == 0)
                return add_source(load, header);
        if (!options_is_section(header->section)) {
                closest = options_suggest_section(header->section);
                finding =
                    load_error(load->findings, header->line, "there is no section [%.64s]", header->section);
                if (closest != NULL)
                        finding_set_remedy(finding, "did you mean [%s]?", closest);
                return 0;
        }
        if (*header->argument == '\0')
                return 1;
        load_error(load->findings, header->line, "[%s] takes no name after it", header->section);
        return 0;
}

/* Return the line before this one that sets the same option, or 0. */
static size_t
line_before(const struct ini *ini, const struct ini_entry *entry)
{
        size_t first = ini_line(ini, entry->section, entry->argument, entry->name);

        return first == entry->line ? 0 : first;
}

/*
 * Return whether an unknown name may be shown. It may be a secret: base64 ends with `=`, so `secret: bG9...=`
 * and the second line of a secret look like options. Names are short words of lowercase letters and digits,
 * separated by ._- only.
 */
static int
may_be_shown(const char *name)
{
        static const char word_chars[] = "abcdefghijklmnopqrstuvwxyz0123456789";

        for (size_t len; *name != '\0'; name += len) {
                len = strspn(name, word_chars);
                if (len >= SIGNATURE_SECRET_MIN)
                        return 0;
                name += len;
                len = strspn(name, "._-*");
                if (len == 0 && *name != '\0')
                        return 0;
        }
        return 1;
}

static void
report_unknown(struct load *load, const struct ini_entry *entry)
{
        const char *closest = options_suggest(entry->section, entry->name);
        const char *home = options_section_of(entry->name);
        struct finding *finding;

        if (closest == NULL && home == NULL && !may_be_shown(entry->name)) {
                load_error(load->findings, entry->line,
                           "[%s] has no such option (its name is not shown, since it may be a secret)",
                           entry->section);
                return;
        }
        finding = load_error(load->findings, entry->line, "[%s] has no option '%.64s'", entry->section,
                             entry->name);
        if (closest != NULL)
                finding_set_remedy(finding, "did you mean %s?", closest);
        else if (home != NULL)
                finding_set_remedy(finding, "it belongs in [%s]", home);
}

static int
is_secret(const struct ini_entry *entry)
{
        if (strcmp(entry->section, "kafka") == 0)
                return kafka_property_is_secret(entry->name);
        return strcmp(entry->name, "secret") == 0 || strcmp(entry->name, "api_key") == 0;
}

static int
is_open_to_others(mode_t mode)
{
        return (mode & (S_IROTH | S_IWOTH)) != 0;
}

/* Set what to do about a file that cannot be used. */
void
load_set_file_remedy(struct finding *finding, const char *path)
{
        struct stat st;

        if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && is_open_to_others(st.st_mode))
                finding_set_remedy(finding, "chmod o= %s", path);
        else if (access(path, R_OK) != 0)
                finding_set_access_remedy(finding, path, errno);
}

/* Set what to do about the value of an option that was refused; option is NULL in [events] and [kafka]. */
static void
set_remedy(const struct load *load, struct finding *finding, const struct ini_entry *entry,
           const struct option_row *option)
{
        const char *form = option == NULL ? NULL : values_form(option);

        if (form != NULL)
                finding_set_remedy(finding, "%s", form);
        else if (is_secret(entry) && is_open_to_others(load->ini->st.st_mode))
                finding_set_remedy(finding, "chmod o= %s", load->config->file);
        else if (is_secret(entry) || *entry->value != '/')
                return;
        else if (strcmp(entry->name, "secret_file") == 0 && access(entry->value, F_OK) != 0 &&
                 errno == ENOENT && *unit_hint(entry->value, ENOENT) == '\0')
                finding_set_remedy(finding, "gatepost secret new %s", entry->value);
        else
                load_set_file_remedy(finding, entry->value);
}

static void
set_option(struct load *load, const struct ini_entry *entry)
{
        const struct option_row *option = options_find(entry->section, entry->name);
        struct config_source *source =
            strcmp(entry->section, "source") == 0 ? find_source(load->config, entry->argument) : NULL;
        struct error error;
        size_t before;

        if (option == NULL) {
                report_unknown(load, entry);
                return;
        }
        before = option->flags & OPTION_REPEATABLE ? 0 : line_before(load->ini, entry);
        if (entry->fault != NULL)
                load_error(load->findings, entry->line, "%s: %s", entry->name, entry->fault);
        else if (before != 0)
                load_error(load->findings, entry->line, "%s is already set on line %zu", entry->name, before);
        else if (values_set(option, entry->value, load->config, source, &error) != 0)
                set_remedy(load, load_error(load->findings, entry->line, "%s: %s", entry->name, error.text),
                           entry, option);
}

static void
set_free_form(struct load *load, const struct ini_entry *entry)
{
        size_t before = line_before(load->ini, entry);
        struct error error;
        int result, is_kafka = strcmp(entry->section, "kafka") == 0;

        if (before != 0 && may_be_shown(entry->name)) {
                load_error(load->findings, entry->line, "%.64s is already set on line %zu", entry->name,
                           before);
                return;
        }
        if (entry->fault != NULL)
                result = error_set(&error, "%s", entry->fault);
        else if (is_kafka)
                result = kafka_values_set(load->config, entry->name, entry->value, &error);
        else
                result = topic_table_add(load->config->topics, entry->name, entry->value, &error);
        if (result != 0 && !may_be_shown(entry->name))
                report_unknown(load, entry);
        else if (result != 0 && !is_kafka && options_section_of(entry->name) != NULL)
                report_unknown(load, entry); /* the value may be a secret below the wrong header */
        else if (result != 0)
                set_remedy(load,
                           load_error(load->findings, entry->line, "%.64s: %s", entry->name, error.text),
                           entry, NULL);
}

static void
set_options(struct load *load)
{
        int is_open = 0;

        for (size_t i = 0; i < load->ini->n; i++) {
                const struct ini_entry *entry = &load->ini->entries[i];

                if (entry->name == NULL)
                        is_open = open_section(load, entry);
                else if (is_open && options_is_free_form(entry->section))
                        set_free_form(load, entry);
                else if (is_open)
                        set_option(load, entry);
        }
}

/*
 * Set the options that the file does not set to their defaults. An invalid default is a bug that the tests
 * find.
 */
static void
set_defaults(struct load *load)
{
        struct config *config = load->config;
        struct error error;

        for (size_t i = 0; i < options_count(); i++) {
                const struct option_row *option = options_at(i);
                int in_source = strcmp(option->section, "source") == 0;

                if (option->fallback == NULL)
                        continue;
                for (size_t s = 0; s < (in_source ? config->n_sources : 1); s++) {
                        struct config_source *source = in_source ? &config->sources[s] : NULL;

                        if (ini_line(load->ini, option->section, in_source ? source->name : "",
                                     option->name) != 0)
                                continue;
                        if (values_set(option, option->fallback, config, source, &error) != 0)
                                load_error(load->findings, 0, "default of %s: %s", option->name, error.text);
                }
        }
}

/* The entries stay in memory as long as the configuration. */
static void
mask_secrets(struct ini *ini)
{
        for (size_t i = 0; i < ini->n; i++) {
                struct ini_entry *entry = &ini->entries[i];

                if (entry->name == NULL || !is_secret(entry))
                        continue;
                secrets_free(entry->value, strlen(entry->value));
                entry->value = mem_strdup("(secret)");
        }
}

/* Sort the findings of a load, add the file to them, and move them. Return the number of errors. */
static size_t
finish(struct findings *findings, struct findings *found, const char *file)
{
        size_t n_errors = findings_count(found, FINDING_ERROR);

        findings_sort_by_line(found);
        for (size_t i = 0; i < found->n; i++)
                found->items[i].subject = mem_strdup(file);
        findings_move(findings, found);
        return n_errors;
}

struct config *
config_load_reporting(const char *file, struct findings *findings)
{
        struct config *config = mem_alloc(sizeof(*config));
        struct findings found = {0};
        struct load load = {config, &config->ini, &found};

        config->file = mem_strdup(file);
        if (ini_read_file(file, &config->ini, &found) == 0) {
                config_add_file(config, file, &config->ini.st, 0);
                config->topics = topic_table_new();
                set_options(&load);
                set_defaults(&load);
                check_config(config, &config->ini, &found);
        }
        if (finish(findings, &found, file) > 0) {
                config_free(config);
                return NULL;
        }
        mask_secrets(&config->ini);
        return config;
}

struct config *
config_load(const char *file)
{
        struct findings findings = {0};
        struct config *config = config_load_reporting(file, &findings);

        for (size_t i = 0; i < findings.n; i++) {
                if (findings.items[i].level == FINDING_ERROR)
                        finding_print(stderr, &findings.items[i]);
        }
        findings_clear(&findings);
        return config;
}

static int
set_in_source(struct config *config, const char *name, const char *value, struct error *error)
{
        return values_set(options_find("source", name), value, config, &config->sources[0], error);
}

static int
set_source_defaults(struct config *config, struct error *error)
{
        for (size_t i = 0; i < options_count(); i++) {
                const struct option_row *option = options_at(i);

                if (strcmp(option->section, "source") == 0 && option->fallback != NULL &&
                    set_in_source(config, option->name, option->fallback, error) != 0)
                        return -1;
        }
        return 0;
}

struct config *
config_for_secret(const char *secret_file, const char *header_prefix, struct error *error)
{
        struct config *config = mem_alloc(sizeof(*config));

        config->sources = mem_alloc(sizeof(*config->sources));
        config->n_sources = 1;
        config->sources[0].name = mem_strdup(header_prefix);
        config->sources[0].rules.source = config->sources[0].name;
        if (set_source_defaults(config, error) == 0 &&
            set_in_source(config, "header_prefix", header_prefix, error) == 0 &&
            set_in_source(config, "secret_file", secret_file, error) == 0)
                return config;
        config_free(config);
        return NULL;
}
