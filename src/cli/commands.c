#include "cli/commands.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "cli/completion.h"

static int wants_version;
/* The command after the options of the program. */
static char **words;

static void list_commands(FILE *out, const char *group);
static const struct command completion_command;

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
    &subscriptions_ensure_command, &secret_command, &completion_command, NULL,
};
/* clang-format on */

/* Return whether a command is in a group; all are in the program, which has no name. */
static int
is_in(const struct command *command, const char *group)
{
        size_t len = strlen(group);

        return command != &program && strncmp(command->name, group, len) == 0 &&
               (len == 0 || command->name[len] == ' ');
}

static void
list_commands(FILE *out, const char *group)
{
        fprintf(out, "\ncommands:\n");
        for (size_t i = 0; commands[i] != NULL; i++) {
                if (is_in(commands[i], group))
                        fprintf(out, "  %-21s  %s\n", commands[i]->name, commands[i]->help);
        }
}

/* Return the command that the first one or two words name, or NULL. */
static const struct command *
find_command(void)
{
        char name[64];

        (void)snprintf(name, sizeof(name), "%s %s", words[0], words[1] == NULL ? "" : words[1]);
        for (size_t i = 1; commands[i] != NULL; i++) {
                if (strcmp(commands[i]->name, words[0]) == 0 || strcmp(commands[i]->name, name) == 0)
                        return commands[i];
        }
        return NULL;
}

/* Return the first word if commands begin with it, else "", the name of the program. */
static const char *
find_group(void)
{
        for (size_t i = 0; commands[i] != NULL && *words != NULL; i++) {
                if (is_in(commands[i], *words))
                        return *words;
        }
        return "";
}

/* List the commands of a group for --help, or after an error. Returns an exit status. */
static int
run_group(const char *group)
{
        const char *word = *group == '\0' ? words[0] : words[1];
        int status;

        if (word != NULL && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
                printf("usage: gatepost %s COMMAND ...\n", group);
                list_commands(stdout, group);
                return 0;
        }
        if (word == NULL)
                status = command_misused("missing command");
        else
                status = command_misused("unknown command '%s%s%s'", group, *group == '\0' ? "" : " ", word);
        list_commands(stderr, group);
        return status;
}

/* Turn `help COMMAND` into `COMMAND --help`. */
static void
turn_help(void)
{
        char **word = words;

        for (; word[1] != NULL; word++)
                word[0] = word[1];
        word[0] = "--help";
}

int
commands_run(char **argv)
{
        int status = command_parse(&program, argv);
        const struct command *command;

        if (status >= 0)
                return status;
        if (wants_version) {
                printf("gatepost %s\n", PACKAGE_VERSION);
                return 0;
        }
        if (*words != NULL && strcmp(*words, "help") == 0)
                turn_help();
        if (*words != NULL && strcmp(*words, "--help") == 0)
                return command_help(&program);
        command = *words == NULL ? NULL : find_command();
        if (command == NULL)
                return run_group(find_group());
        return command_run(command, strchr(command->name, ' ') == NULL ? words : words + 1);
}

static const char *shell;
static char **line;

static int
complete(const char *config_file)
{
        (void)config_file;
        if (strcmp(shell, "words") == 0)
                completion_offer(commands, line);
        else if (strcmp(shell, "bash") == 0 && *line == NULL)
                completion_print();
        else
                return command_misused("takes bash");
        return 0;
}

static const struct command_option completion_options[] = {
    {NULL, "SHELL", "bash; `words` is for its script", .text = &shell},
    {NULL, "[WORD ...]", "with `words`, print what the last of these may be", .rest = &line},
};

static const struct command completion_command = {
    .name = "completion",
    .help = "print the completion script for bash",
    .run_with_file = complete,
    COMMAND_OPTIONS(completion_options),
};
