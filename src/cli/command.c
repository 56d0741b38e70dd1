#include "cli/command.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/account.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/text.h"
#include "base/unit.h"
#include "cli/arguments.h"
#include "config/config.h"

/* Of a command, with its arguments and the common options. */
#define MAX_OPTIONS 32

/* What getopt_long() returns for the first option; for an option with a letter, it returns that. */
#define FIRST_OPTION 256

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

/* Write an option as in `-c, --config FILE`. Returns its length. */
static int
format_option(const struct command_option *option, char *text, size_t size)
{
        const char letter[] = {'-', option->letter, ',', ' ', '\0'};

        return snprintf(text, size, "%s%s%s%s%s", option->letter == '\0' ? "" : letter,
                        option->name == NULL ? "" : "--", option->name == NULL ? "" : option->name,
                        option->name == NULL || option->argument == NULL ? "" : " ",
                        option->argument == NULL ? "" : option->argument);
}

int
command_help(const struct command *command)
{
        const struct command_option *option;
        int width = 0;
        char text[80];

        print_usage(stdout, command);
        if (command->help != NULL)
                printf("\n%s\n", command->help);
        for (size_t i = 0; (option = command_option_at(command, i)) != NULL; i++) {
                int len = format_option(option, text, sizeof(text));

                width = len > width ? len : width;
        }
        putchar('\n');
        for (size_t i = 0; (option = command_option_at(command, i)) != NULL; i++) {
                (void)format_option(option, text, sizeof(text));
                printf("  %-*s  %s\n", width, text, option->help);
        }
        if (command->list_commands != NULL)
                command->list_commands(stdout, command);
        return 0;
}

char *
command_unit(const char *file)
{
        const char *role = unit_role(file), *slash = strrchr(file, '/');
        const char *name = (slash == NULL ? file : slash + 1) + (role == NULL ? 0 : strlen(role) + 1);

        if (role == NULL)
                return mem_strdup("gatepostd");
        return mem_printf("gatepost-%s@%.*s", role, (int)(strlen(name) - strlen(".conf")), name);
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

static int
code_of(const struct command_option *option, size_t index)
{
        return option->letter != '\0' ? option->letter : FIRST_OPTION + (int)index;
}

/* Return the option for which getopt_long() returns a code, or NULL. */
static const struct command_option *
find_option(int code)
{
        const struct command_option *option;

        for (size_t i = 0; (option = command_option_at(running, i)) != NULL; i++) {
                if (option->name != NULL && code_of(option, i) == code)
                        break;
        }
        return option;
}

/* Explain an option that getopt_long() does not accept. */
static int
refuse_option(int result, const char *word)
{
        const struct command_option *option = find_option(optopt);
        const char *names[MAX_OPTIONS], *closest;
        char name[64];
        size_t n = 0;

        if (option != NULL)
                return result == ':' ? command_misused("--%s needs %s", option->name, option->argument)
                                     : command_misused("--%s takes no argument", option->name);
        if (optopt != 0)
                return command_misused("unknown option -%c", optopt);
        for (size_t i = 0; (option = command_option_at(running, i)) != NULL; i++) {
                if (option->name != NULL)
                        names[n++] = option->name;
        }
        (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
        if (running->removed != NULL && strcmp(name, running->removed) == 0)
                return command_misused("--%s has been removed: %s", name, running->instead);
        closest = text_closest(name, names, n);
        return command_misused("unknown option --%s%s%s%s", name, closest == NULL ? "" : "; did you mean --",
                               closest == NULL ? "" : closest, closest == NULL ? "" : "?");
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

/* Describe the options of the running command to getopt_long(). */
static void
describe_options(struct option *long_options, char *letters)
{
        const struct command_option *option;

        letters = stpcpy(letters, running->list_commands == NULL ? ":" : "+:");
        for (size_t i = 0; (option = command_option_at(running, i)) != NULL; i++) {
                int has_arg = option->argument == NULL ? no_argument : required_argument;

                if (option->name != NULL)
                        *long_options++ = (struct option){option->name, has_arg, NULL, code_of(option, i)};
                if (option->letter != '\0')
                        letters +=
                            sprintf(letters, "%c%s", option->letter, has_arg == no_argument ? "" : ":");
        }
}

/* Take the options, up to optind. Returns -1, or an exit status. */
static int
take_options(int argc, char **argv)
{
        struct option long_options[MAX_OPTIONS + 1] = {0};
        char letters[2 * MAX_OPTIONS + 3];
        int code, status = -1;

        describe_options(long_options, letters);
        optind = 0; /* glibc: begin anew */
        opterr = 0;
        while (status < 0 && (code = getopt_long(argc, argv, letters, long_options, NULL)) != -1) {
                const struct command_option *option = find_option(code);

                if (option == NULL)
                        return refuse_option(code, argv[optind - 1]);
                status = take(option, optarg);
                if (wants_help)
                        return command_help(running);
        }
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
        return status < 0 && *values != NULL
                   ? command_misused("unexpected argument '%s'%s", *values,
                                     strstr(*values, ".conf") == NULL ? ""
                                                                      : "; -c FILE names a configuration")
                   : status;
}

int
command_parse(const struct command *command, char **argv)
{
        struct error error;
        int argc = 0, status;

        running = command;
        while (argv[argc] != NULL)
                argc++;
        status = take_options(argc, argv);
        if (status < 0)
                status = take_arguments(argv + optind);
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
