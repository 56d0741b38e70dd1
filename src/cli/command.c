#include "cli/command.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/account.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "config/config.h"

static const char *config_file = CONFIG_DEFAULT_FILE;
static int wants_help;
static const struct command_option common_options[] = {
    {"config", "FILE", "read this configuration file (default: " CONFIG_DEFAULT_FILE ")", .letter = 'c',
     .text = &config_file},
    {"help", NULL, "print this help and exit", .letter = 'h', .flag = &wants_help},
};

static const char *user;
static const struct command_option user_option = {
    "user", "NAME", "become this user, if root runs it (default: " ACCOUNT_SERVICE_USER ")", .text = &user};

/* The command that runs, for messages. */
static const struct command *running;

const struct command_option *
command_option_at(const struct command *command, size_t index)
{
        if (index < command->n_options)
                return &command->options[index];
        index -= command->n_options;
        if (index < ARRAY_LEN(common_options))
                return &common_options[index];
        return index == ARRAY_LEN(common_options) && command->becomes_daemon ? &user_option : NULL;
}

static void
print_usage(FILE *out, const struct command *command)
{
        const struct command_option *option;

        fprintf(out, "usage: gatepost%s%s", *command->name == '\0' ? "" : " ", command->name);
        for (size_t i = 0; (option = command_option_at(command, i)) != NULL; i++) {
                if (option->name != NULL && option->is_required)
                        fprintf(out, " --%s %s", option->name, option->argument);
        }
        fputs(" [OPTION...]", out);
        for (size_t i = 0; (option = command_option_at(command, i)) != NULL; i++) {
                if (option->name == NULL)
                        fprintf(out, " %s", option->argument);
        }
        fputc('\n', out);
}

/* Write an option as in `-c, --config FILE`. */
static void
format_option(const struct command_option *option, char *text, size_t size)
{
        const char letter[] = {'-', option->letter, ',', ' ', '\0'};
        const char *argument = option->argument == NULL ? "" : option->argument;

        if (option->name == NULL)
                (void)snprintf(text, size, "%s", argument);
        else
                (void)snprintf(text, size, "%s--%s%s%s", option->letter == '\0' ? "" : letter, option->name,
                               *argument == '\0' ? "" : " ", argument);
}

int
command_help(const struct command *command)
{
        const struct command_option *option;
        char text[80];

        print_usage(stdout, command);
        if (command->help != NULL)
                printf("\n%s\n", command->help);
        putchar('\n');
        for (size_t i = 0; (option = command_option_at(command, i)) != NULL; i++) {
                format_option(option, text, sizeof(text));
                printf("  %-24s  %s\n", text, option->help);
        }
        if (command->list_commands != NULL)
                command->list_commands(stdout, "");
        return 0;
}

/* Print a line that may quote untrusted text, such as the name of a file. */
static void
print_line(const char *format, va_list args)
{
        char *line = mem_vprintf(format, args);

        text_print(stderr, line, strlen(line));
        fputc('\n', stderr);
        free(line);
}

static void
print_error(const char *format, va_list args)
{
        fprintf(stderr, "gatepost%s%s: ", *running->name == '\0' ? "" : " ", running->name);
        print_line(format, args);
}

int
command_fail(int status, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        print_error(format, args);
        va_end(args);
        return status;
}

void
command_note_routers(const struct config *config)
{
        if (!(config->roles & CONFIG_ROUTER))
                (void)command_fail(0,
                                   "%s does not have the role router; the files of the routers decide what "
                                   "is published, and to which topics",
                                   config->file);
}

void
command_advise(const char *format, ...)
{
        va_list args;

        fputs("    ", stderr);
        va_start(args, format);
        print_line(format, args);
        va_end(args);
}

int
command_misused(const char *format, ...)
{
        va_list args;

        va_start(args, format);
        print_error(format, args);
        va_end(args);
        print_usage(stderr, running);
        return EX_USAGE;
}

/* Find the option that a word such as --name or -n begins with, of this length; NULL: there is none. */
static const struct command_option *
find_option(const char *word, size_t len)
{
        const struct command_option *option;

        for (size_t i = 0; (option = command_option_at(running, i)) != NULL; i++) {
                if (option->name == NULL)
                        continue;
                if (word[1] != '-' && word[1] == option->letter)
                        break;
                if (word[1] == '-' && strlen(option->name) == len - 2 &&
                    strncmp(option->name, word + 2, len - 2) == 0)
                        break;
        }
        return option;
}

/* Store the value of an option or argument; NULL: it has none. Returns -1, or an exit status. */
static int
take(const struct command_option *option, const char *value)
{
        struct error error;
        int result = 0;

        if (option->flag != NULL)
                *option->flag = 1;
        if (value == NULL)
                return -1;
        if (option->text != NULL)
                *option->text = value;
        if (option->number != NULL)
                result = number_parse(value, option->min, option->max, option->number, &error);
        if (option->duration_ms != NULL)
                result = number_parse_duration(value, option->min, option->max, option->duration_ms, &error);
        if (option->time_ms != NULL)
                result = arguments_time(value, option->time_ms, &error);
        if (option->parse != NULL)
                result = option->parse(value, &error);
        if (result == 0)
                return -1;
        return command_misused("%s%s: %s", option->name == NULL ? "" : "--",
                               option->name == NULL ? option->argument : option->name, error.text);
}

/* Take the option at *argv, and go on to its value if it is the next word. Returns -1, or an exit status. */
static int
take_option(char ***argv)
{
        const char *word = **argv;
        size_t len = word[1] == '-' ? strcspn(word, "=") : 2;
        const char *value = word[len] == '\0' ? NULL : word + len + (word[len] == '=');
        const struct command_option *option = find_option(word, len);

        if (option == NULL)
                return command_misused("unknown option %.*s; --help lists the options", (int)len, word);
        if (option->argument == NULL && value != NULL)
                return command_misused("--%s takes no argument", option->name);
        if (option->argument != NULL && value == NULL && (value = *++*argv) == NULL)
                return command_misused("--%s needs %s", option->name, option->argument);
        return take(option, value);
}

/* Take the options, and leave the arguments alone in argv. Returns -1, or an exit status. */
static int
take_options(char **argv)
{
        char **arguments = argv;
        int status = -1, has_ended = 0;

        for (; status < 0 && *argv != NULL; argv++) {
                if (has_ended || argv[0][0] != '-' || argv[0][1] == '\0') {
                        *arguments++ = *argv;
                        has_ended |= running->list_commands != NULL;
                } else if (strcmp(*argv, "--") == 0) {
                        has_ended = 1;
                } else {
                        status = take_option(&argv);
                }
                if (wants_help)
                        return command_help(running);
        }
        *arguments = NULL;
        for (size_t i = 0; i < running->n_options && status < 0; i++) {
                const struct command_option *option = &running->options[i];

                if (option->is_required && *option->text == NULL)
                        status = command_misused("needs --%s %s", option->name, option->argument);
        }
        return status;
}

/* Take the arguments that are left. Returns -1, or an exit status. */
static int
take_arguments(char **values)
{
        int status = -1;

        for (size_t i = 0; i < running->n_options && status < 0; i++) {
                const struct command_option *option = &running->options[i];

                if (option->rest != NULL) {
                        *option->rest = values;
                        return -1;
                }
                if (option->name != NULL)
                        continue;
                if (*values != NULL)
                        status = take(option, *values++);
                else if (*option->argument != '[')
                        status = command_misused("needs %s: %s", option->argument, option->help);
        }
        return status < 0 && *values != NULL ? command_misused("unexpected argument '%s'", *values) : status;
}

int
command_parse(const struct command *command, char **argv)
{
        struct error error;
        int status;

        running = command;
        status = take_options(argv + 1);
        if (status < 0)
                status = take_arguments(argv + 1);
        if (status < 0 && command->check != NULL && command->check(&error) != 0)
                status = command_misused("%s", error.text);
        return status;
}

/* Become the user of the daemon, if root runs the command. Returns 0, or an exit status. */
static int
become_daemon(void)
{
        struct error error;
        int result = account_become(user, &error);

        if (result < 0)
                return command_fail(EX_NOPERM, "--user: %s", error.text);
        if (result > 0)
                (void)command_fail(0, "running as user %s, like gatepostd; --user root does not",
                                   user == NULL ? ACCOUNT_SERVICE_USER : user);
        return 0;
}

int
command_run(const struct command *command, char **argv)
{
        int status = command_parse(command, argv);
        struct config *config;

        if (status >= 0)
                return status;
        if (command->becomes_daemon && (status = become_daemon()) != 0)
                return status;
        if (command->run_with_file != NULL)
                return command->run_with_file(config_file);
        config = config_load(config_file);
        if (config == NULL)
                return EX_CONFIG;
        status = command->run(config);
        config_free(config);
        return status;
}
