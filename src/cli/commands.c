#include "cli/commands.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/text.h"
#include "cli/completion.h"

#define NAME_SIZE 64 /* of a command, even if it is unknown */

static int wants_version;
/* The command after the options of the program or of a group. */
static char **words;

static void list_commands(FILE *out, const struct command *group);
static const struct command completion_bash_command, completion_zsh_command, completion_fish_command;
static const struct command help_command;

static const struct command_option program_options[] = {
    {NULL, "COMMAND ...", "run this command; see gatepost COMMAND --help", .rest = &words},
    {"version", NULL, "print the version and exit", .letter = 'V', .flag = &wants_version},
};

static const struct command program = {
    .name = "",
    .help = "operate the webhook gateway",
    .list_commands = list_commands,
    COMMAND_OPTIONS(program_options),
};

/* clang-format off */
static const struct command *const commands[] = {
    &program, &check_command, &doctor_command, &show_config_command, &topics_create_command,
    &topics_list_command, &topics_fix_command,
    &sign_command, &verify_command, &send_command, &tail_command, &status_command, &audit_command,
    &quarantine_list_command, &quarantine_show_command, &quarantine_release_command,
    &spool_list_command, &spool_show_command, &spool_drain_command,
    &subscriptions_list_command, &subscriptions_add_command, &subscriptions_remove_command,
    &subscriptions_ensure_command, &secret_command, &completion_bash_command, &completion_zsh_command,
    &completion_fish_command, &help_command, NULL,
};
/* clang-format on */

#define N_COMMANDS (ARRAY_LEN(commands) - 1)

/* Return whether a command is in a group; all are in the program, which has no name. */
static int
is_in(const struct command *command, const char *group)
{
        size_t len = strlen(group);

        return command != &program && strncmp(command->name, group, len) == 0 &&
               (len == 0 || command->name[len] == ' ');
}

static void
list_commands(FILE *out, const struct command *group)
{
        fprintf(out, "\ncommands:\n");
        for (size_t i = 0; i < N_COMMANDS; i++) {
                if (is_in(commands[i], group->name))
                        fprintf(out, "  %-21s  %s\n", commands[i]->name, commands[i]->help);
        }
}

static const struct command *
find(const char *name)
{
        for (size_t i = 0; i < N_COMMANDS; i++) {
                if (commands[i] != &program && strcmp(commands[i]->name, name) == 0)
                        return commands[i];
        }
        return NULL;
}

/* Make a command of a group. Returns 0, or -1 if no command is in such a group. */
static int
find_group(const char *name, struct command *group)
{
        static const struct command_option options[] = {
            {NULL, "COMMAND ...", "run this command", .rest = &words},
        };

        *group = (struct command){.name = name, .list_commands = list_commands, COMMAND_OPTIONS(options)};
        for (size_t i = 0; i < N_COMMANDS && *name != '\0'; i++) {
                if (is_in(commands[i], name))
                        return 0;
        }
        return -1;
}

/* Refuse arguments without a command of the group, with the usage and the commands that it has. */
static int
refuse(const struct command *group, const char *reason)
{
        int status = command_misused("%s", reason);

        list_commands(stderr, group);
        return status;
}

/* Refuse a name that is no command of the group; with the word after it, it may resemble a command. */
static int
refuse_name(const struct command *group, const char *name, const char *next_word)
{
        const char *names[N_COMMANDS], *closest;
        char longer[NAME_SIZE];
        struct error reason;

        for (size_t i = 0; i < N_COMMANDS; i++)
                names[i] = commands[i]->name;
        closest = text_closest(name, names + 1, ARRAY_LEN(names) - 1);
        if (closest == NULL && next_word != NULL) {
                (void)snprintf(longer, sizeof(longer), "%s %s", name, next_word);
                closest = text_closest(longer, names + 1, ARRAY_LEN(names) - 1);
        }
        (void)error_set(&reason, "unknown command '%s'%s%s%s", name, closest == NULL ? "" : "; did you mean ",
                        closest == NULL ? "" : closest, closest == NULL ? "" : "?");
        return refuse(group, reason.text);
}

/* Run the command of a group, or of the program, that the arguments name. Returns an exit status. */
static int
run(const struct command *group, char **argv)
{
        int status = command_parse(group, argv);
        const char *space = *group->name == '\0' ? "" : " ";
        const struct command *command;
        struct command inner;
        char name[NAME_SIZE];

        if (status >= 0)
                return status;
        if (wants_version) {
                printf("gatepost %s\n", PACKAGE_VERSION);
                return 0;
        }
        if (*words == NULL)
                return refuse(group, "missing command");
        (void)snprintf(name, sizeof(name), "%s%s%s", group->name, space, *words);
        command = find(name);
        if (command != NULL)
                return command_run(command, words);
        return find_group(name, &inner) == 0 ? run(&inner, words) : refuse_name(group, name, words[1]);
}

int
commands_run(char **argv)
{
        return run(&program, argv);
}

/* Print the help of the program, a group or a command. */
static int
help(const char *file)
{
        char name[NAME_SIZE] = "";
        const struct command *command;
        struct command group;

        (void)file;
        if (*words == NULL)
                return command_help(&program);
        (void)snprintf(name, sizeof(name), "%s%s%s", words[0], words[1] == NULL ? "" : " ",
                       words[1] == NULL ? "" : words[1]);
        command = find(name);
        if (command != NULL)
                return command_help(command);
        if (find_group(name, &group) == 0)
                return command_help(&group);
        return refuse_name(find_group(words[0], &group) == 0 ? &group : &program, name, NULL);
}

static const struct command_option help_options[] = {
    {NULL, "[COMMAND ...]", "print the help of this command or group", .rest = &words},
};

static const struct command help_command = {
    .name = "help",
    .help = "print the help of a command or a group of commands",
    .run_with_file = help,
    COMMAND_OPTIONS(help_options),
};

static int
print_for_bash(const char *config_file)
{
        (void)config_file;
        completion_print(COMPLETION_BASH, commands);
        return 0;
}

static int
print_for_zsh(const char *config_file)
{
        (void)config_file;
        completion_print(COMPLETION_ZSH, commands);
        return 0;
}

static int
print_for_fish(const char *config_file)
{
        (void)config_file;
        completion_print(COMPLETION_FISH, commands);
        return 0;
}

static const struct command completion_bash_command = {
    .name = "completion bash",
    .help = "print the completion script for bash",
    .run_with_file = print_for_bash,
};

static const struct command completion_zsh_command = {
    .name = "completion zsh",
    .help = "print the completion script for zsh",
    .run_with_file = print_for_zsh,
};

static const struct command completion_fish_command = {
    .name = "completion fish",
    .help = "print the completion script for fish",
    .run_with_file = print_for_fish,
};
