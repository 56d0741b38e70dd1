#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

#include "kafka/topic_settings.h"
#include "model/judge.h"
#include "model/topic_table.h"

/*
 * A completion script is a table, followed by the text of a file that completes by it. A row of the table is
 *
 *      COMMAND|+||HELP                  a command
 *      COMMAND|--OPTION|VALUE|HELP      an option, and the name of its value
 *      COMMAND||VALUE|HELP              an argument
 *      =VALUE|VALUES                    the known values of an option or argument
 *
 * where the program itself is a command without a name.
 */

/* Files with these names, defined by embed.sh. */
extern const char completion_bash[];
extern const char completion_zsh[];
extern const char completion_fish[];

/* Print a text for a string in single quotes, in which `escape` is a single quote. */
static void
print_quoted(const char *text, const char *escape)
{
        for (; *text != '\0'; text++) {
                if (*text == '\'')
                        fputs(escape, stdout);
                else
                        putchar(*text);
        }
}

static void
print_command(const struct command *command, const char *escape)
{
        const struct command_option *option;

        if (*command->name != '\0') {
                printf("%s|+||", command->name);
                print_quoted(command->help, escape);
                putchar('\n');
        }
        for (size_t i = 0; (option = command_option_at(command, i)) != NULL; i++) {
                const char *value =
                    option->argument == NULL ? "" : option->argument + strspn(option->argument, "[");

                printf("%s|%s%s|%.*s|", command->name, option->name == NULL ? "" : "--",
                       option->name == NULL ? "" : option->name, (int)strcspn(value, " ]"), value);
                print_quoted(option->help, escape);
                putchar('\n');
        }
}

static void
print_values(void)
{
        struct topic_table *topics = topic_table_new();
        const struct command *command;

        topic_table_add_defaults(topics, "any");
        printf("=KIND|");
        for (size_t i = 0; i < topic_table_size(topics); i++)
                printf(" %s", topic_table_rule(topics, i)->pattern);
        printf("\n=REASON|");
        for (size_t i = 0; i < QUARANTINE_N_REASONS; i++)
                printf(" %s", judge_reason_name((enum quarantine_reason)i));
        printf("\n=SETTING|");
        for (enum topic_setting s = 0; s < TOPIC_N_SETTINGS; s++)
                printf(" %s", topic_settings_name(s));
        printf("\n=WHERE|beginning end\n=COMMAND|");
        for (size_t i = 1; (command = commands_at(i)) != NULL; i++)
                printf(" %.*s", (int)strcspn(command->name, " "), command->name);
        topic_table_free(topics);
}

static int
print_script(const char *begin, const char *escape, const char *end, const char *file)
{
        const struct command *command;

        fputs(begin, stdout);
        for (size_t i = 0; (command = commands_at(i)) != NULL; i++)
                print_command(command, escape);
        print_values();
        printf("%s\n%s", end, file);
        return 0;
}

static int
run_bash(const char *config_file)
{
        (void)config_file;
        return print_script("# bash completion for gatepost(1)\n_gatepost_table='", "'\\''", "'",
                            completion_bash);
}

static int
run_zsh(const char *config_file)
{
        (void)config_file;
        return print_script("#compdef gatepost\n_gatepost_table='", "'\\''", "'", completion_zsh);
}

static int
run_fish(const char *config_file)
{
        (void)config_file;
        return print_script(
            "# fish completion for gatepost(1)\nset -g __gatepost_table (string split \\n -- '", "\\'", "')",
            completion_fish);
}

const struct command completion_bash_command = {
    .name = "completion bash",
    .help = "print the completion script for bash",
    .run_with_file = run_bash,
};

const struct command completion_zsh_command = {
    .name = "completion zsh",
    .help = "print the completion script for zsh",
    .run_with_file = run_zsh,
};

const struct command completion_fish_command = {
    .name = "completion fish",
    .help = "print the completion script for fish",
    .run_with_file = run_fish,
};
