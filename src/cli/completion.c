#include "cli/commands.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "model/judge.h"
#include "model/topic_table.h"

static const char begin[] = "# bash completion for gatepost(1), as `gatepost completion bash` prints it\n"
                            "\n"
                            "# The options and arguments of a command, an option that takes one with "
                            "=ARGUMENT. Fails if it is not a command.\n"
                            "_gatepost_words() {\n"
                            "        case $1 in\n";

static const char middle[] = "        *) return 1 ;;\n"
                             "        esac\n"
                             "}\n"
                             "\n"
                             "# The first words of the commands, or the second words after $1.\n"
                             "_gatepost_commands() {\n"
                             "        case $1 in\n";

static const char values_begin[] = "        esac\n"
                                   "}\n"
                                   "\n"
                                   "# The values of an argument, if they are known.\n"
                                   "_gatepost_values() {\n"
                                   "        case $1 in\n"
                                   "        WHERE) echo 'beginning end' ;;\n";

static const char end[] =
    "        esac\n"
    "}\n"
    "\n"
    "# Complete $2, an argument of the kind $1.\n"
    "_gatepost_argument() {\n"
    "        case $1 in\n"
    "        FILE | BODY | HEADERS)\n"
    "                compopt -o filenames 2>/dev/null\n"
    "                mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$2\")\n"
    "                ;;\n"
    "        *) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W \"$(_gatepost_values \"$1\")\" -- "
    "\"$2\") ;;\n"
    "        esac\n"
    "}\n"
    "\n"
    "_gatepost() {\n"
    "        local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "        local command='' first='' options='' arguments='' word i IFS=$' \\t\\n'\n"
    "        COMPREPLY=()\n"
    "        # bash splits --option=VALUE into three words\n"
    "        if [[ $cur == = ]]; then\n"
    "                cur=''\n"
    "        elif [[ $prev == = ]]; then\n"
    "                prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "        fi\n"
    "        for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "                word=${COMP_WORDS[i]}\n"
    "                case $word in\n"
    "                -c | --config)\n"
    "                        [[ ${COMP_WORDS[i + 1]} != = ]] || ((i++))\n"
    "                        ((i++))\n"
    "                        ;;\n"
    "                -*) ;;\n"
    "                *)\n"
    "                        if _gatepost_words \"${first:+$first }$word\" >/dev/null; then\n"
    "                                command=${first:+$first }$word\n"
    "                                break\n"
    "                        fi\n"
    "                        first=$word\n"
    "                        ;;\n"
    "                esac\n"
    "        done\n"
    "        [[ $prev != -c ]] || prev=--config\n"
    "        for word in $(_gatepost_words \"$command\"); do\n"
    "                case $word in\n"
    "                \"$prev\"=*)\n"
    "                        _gatepost_argument \"${word#*=}\" \"$cur\"\n"
    "                        return\n"
    "                        ;;\n"
    "                -*) options+=\" ${word%%=*}\" ;;\n"
    "                *) arguments+=\" $word\" ;;\n"
    "                esac\n"
    "        done\n"
    "        if [[ $cur == -* ]]; then\n"
    "                mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
    "        elif [[ -z $command ]]; then\n"
    "                mapfile -t COMPREPLY < <(compgen -W \"$(_gatepost_commands \"$first\")\" -- \"$cur\")\n"
    "        else\n"
    "                for word in $arguments; do\n"
    "                        _gatepost_argument \"$word\" \"$cur\"\n"
    "                done\n"
    "        fi\n"
    "}\n"
    "complete -F _gatepost gatepost\n";

/*
 * Print the options of help lines such as `  -n, --name ARGUMENT  purpose`; an argument in brackets is
 * optional.
 */
static void
print_options(const char *lines)
{
        for (const char *line = lines; *line != '\0';) {
                const char *next = line + strcspn(line, "\n"), *name = line + strspn(line, " "), *argument;
                size_t len;

                if (name[0] == '-' && name[1] != '-')
                        name += strcspn(name, " ") + 1;
                len = strcspn(name, " \n");
                argument = name + len + (name[len] == ' ');
                if (strncmp(name, "--", 2) == 0)
                        printf(" %.*s", (int)len, name);
                if (strncmp(name, "--", 2) == 0 && *argument >= 'A' && *argument <= 'Z')
                        printf("=%.*s", (int)strcspn(argument, " \n"), argument);
                line = next + (*next == '\n');
        }
}

/* Print the arguments of a usage: words in capitals, except after an option. */
static void
print_arguments(const char *usage)
{
        static const char capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        int follows_option = 0;

        while (*usage != '\0') {
                size_t blank = strspn(usage, " [(|"), len = strcspn(usage + blank, " "), name;

                follows_option &= blank <= 1; /* only a space between them */
                usage += blank;
                name = strspn(usage, capitals);
                if (name > 1 && !follows_option)
                        printf(" %.*s", (int)name, usage);
                follows_option = strncmp(usage, "--", 2) == 0 && usage[len - 1] != ']';
                usage += len;
        }
}

static void
print_words(void)
{
        const struct command *command;

        printf("        '') echo '");
        print_options(command_main_options);
        printf("' ;;\n");
        for (size_t i = 0; (command = command_at(i)) != NULL; i++) {
                printf("        '%s') echo '", command->name);
                print_options(command->options);
                printf(" --help");
                print_arguments(command->usage);
                printf("' ;;\n");
        }
}

static int
is_first_of_group(size_t index)
{
        const char *name = command_at(index)->name;
        size_t len = strcspn(name, " ");

        for (size_t i = 0; i < index; i++) {
                if (strncmp(command_at(i)->name, name, len) == 0 && strcspn(command_at(i)->name, " ") == len)
                        return 0;
        }
        return 1;
}

static void
print_commands(void)
{
        const struct command *command;

        printf("        '') echo '");
        for (size_t i = 0; (command = command_at(i)) != NULL; i++) {
                if (is_first_of_group(i))
                        printf(" %.*s", (int)strcspn(command->name, " "), command->name);
        }
        printf("' ;;\n");
        for (size_t i = 0; (command = command_at(i)) != NULL; i++) {
                size_t len = strcspn(command->name, " ");

                if (command->name[len] == '\0' || !is_first_of_group(i))
                        continue;
                printf("        %.*s) echo '", (int)len, command->name);
                for (size_t j = i; command_at(j) != NULL; j++) {
                        if (strncmp(command_at(j)->name, command->name, len + 1) == 0)
                                printf(" %s", command_at(j)->name + len + 1);
                }
                printf("' ;;\n");
        }
}

static void
print_values(void)
{
        struct topic_table *topics = topic_table_new();

        topic_table_add_defaults(topics, "any");
        printf("        KIND) echo '");
        for (size_t i = 0; i < topic_table_size(topics); i++)
                printf(" %s", topic_table_rule(topics, i)->pattern);
        printf("' ;;\n        REASON) echo '");
        for (size_t i = 0; i < QUARANTINE_N_REASONS; i++)
                printf(" %s", judge_reason_name((enum quarantine_reason)i));
        printf("' ;;\n");
        topic_table_free(topics);
}

int
completion_run(const struct command_context *context, int argc, char **argv)
{
        static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
        int option;

        while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
                if (option == 'h')
                        return command_help(context);
                return command_misused(context, "wrong option");
        }
        if (optind != argc)
                return command_misused(context, "takes no arguments");
        fputs(begin, stdout);
        print_words();
        fputs(middle, stdout);
        print_commands();
        fputs(values_begin, stdout);
        print_values();
        fputs(end, stdout);
        return 0;
}
