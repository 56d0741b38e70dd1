#include "cli/command.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/text.h"
#include "cli/audit.h"
#include "cli/check.h"
#include "cli/completion.h"
#include "cli/quarantine_list.h"
#include "cli/quarantine_release.h"
#include "cli/quarantine_show.h"
#include "cli/secret.h"
#include "cli/send.h"
#include "cli/show_config.h"
#include "cli/sign.h"
#include "cli/status.h"
#include "cli/subscriptions.h"
#include "cli/subscriptions_ensure.h"
#include "cli/tail.h"
#include "cli/topics_create.h"
#include "cli/topics_list.h"
#include "cli/verify.h"

static const struct command commands[] = {
    {"check", "[--online]", "says what is wrong with the configuration",
     "  --online  ask Kafka about the topics too\n", check_run},
    {"config", "[--json]", "shows the effective configuration, and where each value comes from",
     "  --json  as JSON\n", show_config_run},
    {"topics create", "[--partitions N] [--replication-factor N] [--bootstrap ADDR]",
     "makes the topics that are missing, with the right settings",
     "  --partitions N          of each topic (default: 6)\n"
     "  --replication-factor N  default: 3 where there are three brokers, else 1\n"
     "  --bootstrap ADDR        brokers, instead of the configured ones\n",
     topics_create_run},
    {"topics list", "[--json] [--bootstrap ADDR]", "shows the topics, and what is wrong with them",
     "  --json            as JSON\n"
     "  --bootstrap ADDR  brokers, instead of the configured ones\n",
     topics_list_run},
    {"sign",
     "[--source NAME | --secret-file FILE --header-prefix PREFIX] [--timestamp T] [--delivery-id ID] "
     "[--webhook-id ID] (BODY | -)",
     "prints the headers of a signed delivery",
     "  --source NAME           whose secret and headers (default: the first source)\n"
     "  --secret-file FILE      the secret; then no configuration is needed\n"
     "  --header-prefix PREFIX  what the headers begin with, such as x-invoicing\n"
     "  --timestamp T           seconds since 1970 (default: now)\n"
     "  --delivery-id ID        default: a new one\n"
     "  --webhook-id ID         default: the source's first, or a new one\n",
     sign_run},
    {"verify",
     "[--source NAME | --secret-file FILE --header-prefix PREFIX] [--at TIME] [--json] HEADERS BODY",
     "says what a receiver makes of a saved delivery, and what is wrong with it",
     "  --source NAME           whose (default: the first source whose headers these are)\n"
     "  --secret-file FILE      the secret; then no configuration is needed\n"
     "  --header-prefix PREFIX  what the headers begin with, such as x-invoicing\n"
     "  --at TIME               when it came: an age, such as 2h, or 2026-11-21T03:04:05Z (default: now)\n"
     "  --json                  as JSON\n"
     "  HEADERS                 a file with lines `Name: value`, the output of curl -v, or JSON such as HAR\n"
     "  BODY                    a file with the body's bytes; one of both may be - for standard input\n",
     verify_run},
    {"send",
     "[--to URL] [--source NAME] (--kind KIND | BODY | -) [--delivery-id ID] [--webhook-id ID] [--age TIME] "
     "[--forge] "
     "[--repeat N]",
     "signs a delivery and sends it to a receiver",
     "  --to URL          where to (default: the first `listen`, and the source's path)\n"
     "  --source NAME     whose secret, headers and path (default: the first source)\n"
     "  --kind KIND       a body made up for this kind; or give a file, or - for standard input\n"
     "  --delivery-id ID  default: a new one\n"
     "  --webhook-id ID   default: the source's first, or a new one\n"
     "  --age TIME        sign with a timestamp so old, such as 1h\n"
     "  --forge           sign with another secret\n"
     "  --repeat N        send it N times in all, each signed anew\n",
     send_run},
    {"tail",
     "[--from beginning|end|TIME] [--until-end] [--headers | --json] [--quarantine] [--bootstrap ADDR] "
     "[KIND...]",
     "follows the published events, as a consumer sees them",
     "  --from WHERE      beginning, end (default), an age such as 2h, or 2026-11-21T03:04:05Z\n"
     "  --until-end       stop at what is the end now\n"
     "  --headers         each record's headers below it\n"
     "  --json            one object a line\n"
     "  --quarantine      the quarantine too\n"
     "  --bootstrap ADDR  brokers, instead of the configured ones\n"
     "  KIND              only these, such as invoice.accepted or 'invoice.*'\n",
     tail_run},
    {"status", "[--json] [--watch [TIME]]", "says what the daemon is doing, from its admin endpoint",
     "  --json          as JSON\n"
     "  --watch [TIME]  again and again, each time after so long (default: 5s)\n",
     status_run},
    {"audit", "[--since TIME] [--json] [--bootstrap ADDR]",
     "holds what was published against the deliveries: lost, duplicated, unexpected",
     "  --since TIME      demand only deliveries from then on: an age, such as 2h, or 2026-11-21T03:04:05Z\n"
     "  --json            as JSON\n"
     "  --bootstrap ADDR  brokers, instead of the configured ones\n",
     audit_run},
    {"quarantine list", "[--reason REASON] [--since TIME] [--json] [--bootstrap ADDR]",
     "shows what is in quarantine, why, and whether it was released",
     "  --reason REASON   only these, such as unknown-kind\n"
     "  --since TIME      only those from then on: an age, such as 2h, or 2026-11-21T03:04:05Z\n"
     "  --json            as JSON\n"
     "  --bootstrap ADDR  brokers, instead of the configured ones\n",
     quarantine_list_run},
    {"quarantine show", "[--json | --raw] [--bootstrap ADDR] ID",
     "shows one record of quarantine with its body",
     "  --json            as JSON\n"
     "  --raw             only the body, byte for byte\n"
     "  --bootstrap ADDR  brokers, instead of the configured ones\n",
     quarantine_show_run},
    {"quarantine release",
     "[--dry-run] [--force] [--json] [--bootstrap ADDR] (ID... | --reason REASON [--since TIME])",
     "sends records of quarantine to the router again",
     "  --reason REASON   all that are there for this reason and were not released yet\n"
     "  --since TIME      of these, only those from then on: an age, such as 2h, or 2026-11-21T03:04:05Z\n"
     "  --dry-run         only say what would happen\n"
     "  --force           also what is so old that nobody can tell whether it was released before\n"
     "  --json            as JSON\n"
     "  --bootstrap ADDR  brokers, instead of the configured ones\n",
     quarantine_release_run},
    {"subscriptions list", "[--json] [--timeout TIME]",
     "shows the webhooks that are registered with the service",
     "  --json          as JSON\n"
     "  --timeout TIME  for each call of the service (default: 30s)\n",
     subscriptions_list_run},
    {"subscriptions add", "--url URL --events LIST --secret-file FILE [--json] [--timeout TIME]",
     "registers a webhook with the service",
     "  --url URL           where the service is to deliver\n"
     "  --events LIST       kinds with commas between them, or '*' for all\n"
     "  --secret-file FILE  the secret that it is to sign with\n"
     "  --json              as JSON\n"
     "  --timeout TIME      for each call of the service (default: 30s)\n",
     subscriptions_add_run},
    {"subscriptions remove", "[--json] [--timeout TIME] ID", "removes a webhook from the service",
     "  --json          as JSON\n"
     "  --timeout TIME  for each call of the service (default: 30s)\n",
     subscriptions_remove_run},
    {"subscriptions ensure",
     "--url URL --events LIST --secret-file FILE [--rotate] [--dry-run] [--json] [--timeout TIME]",
     "sees to it that the service has one webhook for a URL, with these events",
     "  --url URL           where the service is to deliver\n"
     "  --events LIST       kinds with commas between them, or '*' for all\n"
     "  --secret-file FILE  the secret that it is to sign with\n"
     "  --rotate            replace it even when it is right: the secret has changed\n"
     "  --dry-run           only say what would be done\n"
     "  --json              as JSON\n"
     "  --timeout TIME      for each call of the service (default: 30s)\n",
     subscriptions_ensure_run},
    {"secret new", "FILE", "makes a file with a random secret, which only its owner may read", "",
     secret_run},
    {"completion bash", "", "prints what makes bash complete the command line; make install has installed it",
     "", completion_run},
};

const char command_main_options[] =
    "  -c, --config FILE  the configuration (default: " COMMAND_DEFAULT_FILE ")\n"
    "  -h, --help         show this and exit; after a command, show its options\n"
    "  -V, --version      show the version and exit\n";

const struct command *
command_at(size_t index)
{
        return index < ARRAY_LEN(commands) ? &commands[index] : NULL;
}

void
command_list(void)
{
        for (size_t i = 0; i < ARRAY_LEN(commands); i++)
                printf("  %-21s %s\n", commands[i].name, commands[i].help);
}

static void
print_usage(FILE *out, const struct command *command)
{
        fprintf(out, "usage: gatepost [-c FILE] %s%s%s\n", command->name, *command->usage == '\0' ? "" : " ",
                command->usage);
}

int
command_misused(const struct command_context *context, const char *format, ...)
{
        va_list args;

        fprintf(stderr, "gatepost %s: ", context->command->name);
        va_start(args, format);
        (void)vfprintf(stderr, format, args);
        va_end(args);
        fputc('\n', stderr);
        print_usage(stderr, context->command);
        return EX_USAGE;
}

int
command_help(const struct command_context *context)
{
        const struct command *command = context->command;

        print_usage(stdout, command);
        printf("\n%s\n%s%s", command->help, *command->options == '\0' ? "" : "\n", command->options);
        return 0;
}

/* How many of the words the name has, if the words begin with it; else 0. */
static int
matches(const char *name, int argc, char **argv)
{
        size_t first = strcspn(name, " ");

        if (argc < 1 || strlen(argv[0]) != first || strncmp(name, argv[0], first) != 0)
                return 0;
        if (name[first] == '\0')
                return 1;
        return argc > 1 && strcmp(argv[1], name + first + 1) == 0 ? 2 : 0;
}

static int
unknown(int argc, char **argv)
{
        const char *names[ARRAY_LEN(commands)], *closest;
        char given[64];
        int is_group = 0;

        for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
                size_t first = strcspn(commands[i].name, " ");

                names[i] = commands[i].name;
                if (commands[i].name[first] != '\0' && strlen(argv[0]) == first &&
                    strncmp(commands[i].name, argv[0], first) == 0) {
                        if (!is_group)
                                fprintf(stderr, "gatepost %s: which one?\n", argv[0]);
                        is_group = 1;
                        print_usage(stderr, &commands[i]);
                }
        }
        if (is_group)
                return EX_USAGE;
        (void)snprintf(given, sizeof(given), "%s", argv[0]);
        closest = text_closest(given, names, ARRAY_LEN(names));
        if (closest == NULL && argc > 1) {
                (void)snprintf(given, sizeof(given), "%s %s", argv[0], argv[1]);
                closest = text_closest(given, names, ARRAY_LEN(names));
        }
        fprintf(stderr, "gatepost: there is no command '%s'%s%s%s; see gatepost --help\n", argv[0],
                closest == NULL ? "" : "; did you mean ", closest == NULL ? "" : closest,
                closest == NULL ? "" : "?");
        return EX_USAGE;
}

int
command_run(const char *file, int argc, char **argv)
{
        for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
                const struct command_context context = {file, &commands[i]};
                int n_words = matches(commands[i].name, argc, argv);

                if (n_words == 0)
                        continue;
                optind = 0; /* glibc: begin anew, the main's options are done */
                return commands[i].run(&context, argc - n_words + 1, argv + n_words - 1);
        }
        return unknown(argc, argv);
}
