#include "cli/completion.h"

#include <stdio.h>
#include <string.h>

/* A script is a table, in quotes, and the files of the shell, which embed.sh makes strings of. */
extern const char completion_sh[];
extern const char completion_bash[];
extern const char completion_zsh[];
extern const char completion_fish[];

static const struct {
        const char *begin, *end;
        const char *common, *own;
} scripts[] = {
    [COMPLETION_BASH] = {"# bash completion for gatepost(1)\n_gatepost_table='", "'\n", completion_sh,
                         completion_bash},
    [COMPLETION_ZSH] = {"#compdef gatepost\n_gatepost_table='", "'\n", completion_sh, completion_zsh},
    [COMPLETION_FISH] = {"# fish completion for gatepost(1)\nset -g __gatepost_table (string split \\n -- '",
                         "')\n", "", completion_fish},
};

/* Return the word of a command's name after that of its group, or NULL if it is not in the group. */
static const char *
word_in(const struct command *command, const char *group)
{
        size_t len = strlen(group);

        if (strncmp(command->name, group, len) != 0)
                return NULL;
        if (len == 0)
                return command->name;
        return command->name[len] == ' ' ? command->name + len + 1 : NULL;
}

/* Print the words that follow the name of a group, each once. The commands of a group are neighbours. */
static void
print_words(const struct command *const *commands, const char *group)
{
        const char *last = "";
        size_t last_len = 0;

        for (commands++; *commands != NULL; commands++) {
                const char *word = word_in(*commands, group);
                size_t len = word == NULL ? 0 : strcspn(word, " ");

                if (word == NULL || (len == last_len && strncmp(word, last, len) == 0))
                        continue;
                printf("%s%.*s", *last == '\0' ? "" : " ", (int)len, word);
                last = word;
                last_len = len;
        }
}

static void
print_options(const struct command *command)
{
        const struct command_option *option;
        const char *space = "";

        for (size_t i = 0; (option = command_option_at(command, i)) != NULL; i++) {
                if (option->name == NULL)
                        continue;
                printf("%s--%s", space, option->name);
                space = " ";
        }
}

/* Print a row of the table: a name, the words that may follow it, its options. */
static void
print_row(const struct command *const *commands, const char *name, const struct command *command)
{
        printf("\n%s|", name);
        print_words(commands, name);
        putchar('|');
        if (command != NULL)
                print_options(command);
}

void
completion_print(enum completion_shell shell, const struct command *const *commands)
{
        char group[32] = "";

        fputs(scripts[shell].begin, stdout);
        for (size_t i = 0; commands[i] != NULL; i++) {
                size_t len = strcspn(commands[i]->name, " ");

                if (commands[i]->name[len] == ' ' &&
                    (strlen(group) != len || strncmp(group, commands[i]->name, len) != 0)) {
                        (void)snprintf(group, sizeof(group), "%.*s", (int)len, commands[i]->name);
                        print_row(commands, group, NULL);
                }
                print_row(commands, commands[i]->name, commands[i]);
        }
        printf("%s%s%s", scripts[shell].end, scripts[shell].common, scripts[shell].own);
}
