#include "config/single.h"

#include <string.h>

#include "base/mem.h"
#include "config/options.h"
#include "config/values.h"

static int
set(struct config *config, const char *name, const char *value, struct error *error)
{
        return values_set(options_find("source", name), value, config, &config->sources[0], error);
}

static int
take_defaults(struct config *config, struct error *error)
{
        for (size_t i = 0; i < options_count(); i++) {
                const struct option_row *option = options_at(i);

                if (strcmp(option->section, "source") == 0 && option->fallback != NULL &&
                    set(config, option->name, option->fallback, error) != 0)
                        return -1;
        }
        return 0;
}

struct config *
single_new(const char *secret_file, const char *header_prefix, struct error *error)
{
        struct config *config = mem_alloc(sizeof(*config));

        config->sources = mem_alloc(sizeof(*config->sources));
        config->n_sources = 1;
        config->sources[0].name = mem_strdup(header_prefix);
        config->sources[0].rules.source = config->sources[0].name;
        if (take_defaults(config, error) == 0 && set(config, "header_prefix", header_prefix, error) == 0 &&
            set(config, "secret_file", secret_file, error) == 0)
                return config;
        config_free(config);
        return NULL;
}
