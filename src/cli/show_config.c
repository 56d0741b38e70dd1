#include "cli/commands.h"

#include <stdio.h>
#include <sysexits.h>

static int as_json;

static int
run(const char *file)
{
        return config_print(file, as_json, stdout) == 0 ? 0 : EX_CONFIG;
}

static const struct command_option options[] = {
    {"json", NULL, "print JSON", .flag = &as_json},
};

const struct command show_config_command = {
    .name = "config",
    .help = "print each option, its value and where it comes from",
    .run_with_file = run,
    COMMAND_OPTIONS(options),
};
