#include "cli/completion.h"

#include <stdio.h>
#include <string.h>

#define NAME_SIZE 64 /* of a command, as far as it is known */

static const char script[] =
    "# bash completion for gatepost(1); files are offered where there is no word.\n"
    "_gatepost() {\n"
    "        local current=${COMP_WORDS[COMP_CWORD]} words\n"
    "        words=$(gatepost completion words -- \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
    "}\n"
    "complete -o default -F _gatepost gatepost\n";

void
completion_print(void)
{
        fputs(script, stdout);
}

/* Return what follows a name in that of a command: "" if it is all; NULL if the command is another one. */
static const char *
word_after(const struct command *command, const char *name)
{
        size_t len = strlen(name);

        if (strncmp(command->name, name, len) != 0)
                return NULL;
        if (len == 0 || command->name[len] == '\0')
                return command->name + len;
        return command->name[len] == ' ' ? command->name + len + 1 : NULL;
}

/* Add a word to the name of the command, if there is a command that goes on so. */
static void
go_on(const struct command *const *commands, const char *word, char name[NAME_SIZE])
{
        char longer[NAME_SIZE];

        (void)snprintf(longer, sizeof(longer), "%s%s%s", name, *name == '\0' ? "" : " ", word);
        for (size_t i = 1; commands[i] != NULL; i++) {
                if (word_after(commands[i], longer) != NULL)
                        (void)strcpy(name, longer);
        }
}

static void
offer_options(const struct command *command)
{
        const struct command_option *option;

        for (size_t i = 0; (option = command_option_at(command, i)) != NULL; i++) {
                if (option->name != NULL)
                        printf("--%s\n", option->name);
        }
}

/* Offer the words that go on a name, each once: commands with the same first word are neighbours. */
static void
offer_words(const struct command *const *commands, const char *name)
{
        const char *last = "";
        size_t last_len = 0;

        for (size_t i = 0; commands[i] != NULL; i++) {
                const char *word = word_after(commands[i], name);
                size_t len = word == NULL ? 0 : strcspn(word, " ");

                if (len == 0 || (len == last_len && strncmp(word, last, len) == 0))
                        continue;
                printf("%.*s\n", (int)len, word);
                last = word;
                last_len = len;
        }
}

void
completion_offer(const struct command *const *commands, char **words)
{
        char name[NAME_SIZE] = "";

        for (; words[0] != NULL && words[1] != NULL; words++) {
                if ((strcmp(words[0], "-c") == 0 || strcmp(words[0], "--config") == 0) && words[2] != NULL)
                        words++;
                else
                        go_on(commands, words[0], name);
        }
        if (words[0] == NULL || words[0][0] != '-') {
                offer_words(commands, name);
                return;
        }
        for (size_t i = 0; commands[i] != NULL; i++) {
                if (strcmp(commands[i]->name, name) == 0)
                        offer_options(commands[i]);
        }
}
