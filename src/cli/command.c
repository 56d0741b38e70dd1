#include "cli/command.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/text.h"
#include "cli/commands.h"

static const struct command commands[] = {
    {"check", "[--online]", "check the configuration", "  --online  check the topics in Kafka too\n",
     check_run},
    {"config", "[--json]", "print the effective configuration and the origin of each value",
     "  --json  as JSON\n", show_config_run},
    {"topics create", "[--partitions N] [--replication-factor N] [--bootstrap ADDR]",
     "create missing topics with the right settings",
     "  --partitions N          partitions of each topic (default: 6)\n"
     "  --replication-factor N  default: 3 with three or more brokers, else 1\n"
     "  --bootstrap ADDR        connect to these brokers instead of the configured ones\n",
     topics_create_run},
    {"topics list", "[--json] [--bootstrap ADDR]", "list the topics and their misconfigurations",
     "  --json            as JSON\n"
     "  --bootstrap ADDR  connect to these brokers instead of the configured ones\n",
     topics_list_run},
    {"sign",
     "[--source NAME | --secret-file FILE --header-prefix PREFIX] [--timestamp T] [--delivery-id ID] "
     "[--webhook-id ID] (BODY | -)",
     "print the headers of a signed delivery",
     "  --source NAME           source of the secret and header_prefix (default: the first)\n"
     "  --secret-file FILE      file with the secret; needs no configuration\n"
     "  --header-prefix PREFIX  prefix of the headers, such as x-invoicing\n"
     "  --timestamp T           seconds since 1970 (default: now)\n"
     "  --delivery-id ID        default: a random one\n"
     "  --webhook-id ID         default: the source's first, or a random one\n",
     sign_run},
    {"verify",
     "[--source NAME | --secret-file FILE --header-prefix PREFIX] [--at TIME] [--json] HEADERS BODY",
     "verify a saved delivery as a receiver does, and diagnose a wrong signature",
     "  --source NAME           source (default: the first with this header_prefix)\n"
     "  --secret-file FILE      file with the secret; needs no configuration\n"
     "  --header-prefix PREFIX  prefix of the headers, such as x-invoicing\n"
     "  --at TIME               verify as of this time: an age, such as 2h, or 2026-11-21T03:04:05Z "
     "(default: now)\n"
     "  --json                  as JSON\n"
     "  HEADERS                 a file with lines `Name: value`, the output of curl -v, or JSON such as HAR\n"
     "  BODY                    a file with the body; HEADERS or BODY may be - for standard input\n",
     verify_run},
    {"send",
     "[--to URL] [--source NAME] (--kind KIND | BODY | -) [--delivery-id ID] [--webhook-id ID] [--age TIME] "
     "[--forge] "
     "[--repeat N]",
     "sign a delivery and send it to a receiver",
     "  --to URL          receiver (default: the first `listen` and the source's path)\n"
     "  --source NAME     source of the secret, header_prefix and path (default: the first)\n"
     "  --kind KIND       send a sample body of this kind; else a file, or - for standard input\n"
     "  --delivery-id ID  default: a random one\n"
     "  --webhook-id ID   default: the source's first, or a random one\n"
     "  --age TIME        sign with a timestamp of this age, such as 1h\n"
     "  --forge           sign with a wrong secret\n"
     "  --repeat N        send it N times, signed each time\n",
     send_run},
    {"tail",
     "[--from beginning|end|TIME] [--until-end] [--headers | --json] [--quarantine] [--bootstrap ADDR] "
     "[KIND...]",
     "follow the published events as a consumer sees them",
     "  --from WHERE      beginning, end (default), an age such as 2h, or 2026-11-21T03:04:05Z\n"
     "  --until-end       stop at the present end\n"
     "  --headers         print each record's headers below it\n"
     "  --json            as JSON, one object per line\n"
     "  --quarantine      follow quarantine, too\n"
     "  --bootstrap ADDR  connect to these brokers instead of the configured ones\n"
     "  KIND              only these kinds, such as invoice.accepted or 'invoice.*'\n",
     tail_run},
    {"status", "[--json] [--watch [TIME]]", "print the state of the daemon, from its admin endpoint",
     "  --json          as JSON\n"
     "  --watch [TIME]  repeat every TIME (default: 5s)\n",
     status_run},
    {"audit", "[--since TIME] [--json] [--bootstrap ADDR]",
     "compare the published events with the deliveries: lost, duplicated, unexpected",
     "  --since TIME      audit only deliveries since then: an age, such as 2h, or 2026-11-21T03:04:05Z\n"
     "  --json            as JSON\n"
     "  --bootstrap ADDR  connect to these brokers instead of the configured ones\n",
     audit_run},
    {"quarantine list", "[--reason REASON] [--since TIME] [--json] [--bootstrap ADDR]",
     "list the records in quarantine, their reasons and their releases",
     "  --reason REASON   only records with this reason, such as unknown-kind\n"
     "  --since TIME      only records since then: an age, such as 2h, or 2026-11-21T03:04:05Z\n"
     "  --json            as JSON\n"
     "  --bootstrap ADDR  connect to these brokers instead of the configured ones\n",
     quarantine_list_run},
    {"quarantine show", "[--json | --raw] [--bootstrap ADDR] ID", "show a record in quarantine with its body",
     "  --json            as JSON\n"
     "  --raw             only the raw body\n"
     "  --bootstrap ADDR  connect to these brokers instead of the configured ones\n",
     quarantine_show_run},
    {"quarantine release",
     "[--dry-run] [--force] [--json] [--bootstrap ADDR] (ID... | --reason REASON [--since TIME])",
     "send records in quarantine to the router again",
     "  --reason REASON   all unreleased records with this reason\n"
     "  --since TIME      with --reason, only records since then: an age, such as 2h, or "
     "2026-11-21T03:04:05Z\n"
     "  --dry-run         only print what would happen\n"
     "  --force           also records so old that an earlier release cannot be ruled out\n"
     "  --json            as JSON\n"
     "  --bootstrap ADDR  connect to these brokers instead of the configured ones\n",
     quarantine_release_run},
    {"subscriptions list", "[--json] [--timeout TIME]", "list the webhooks registered with the service",
     "  --json          as JSON\n"
     "  --timeout TIME  timeout of each call of the service (default: 30s)\n",
     subscriptions_list_run},
    {"subscriptions add", "--url URL --events LIST --secret-file FILE [--json] [--timeout TIME]",
     "register a webhook with the service",
     "  --url URL           URL to deliver to\n"
     "  --events LIST       kinds, separated by commas, or '*' for all\n"
     "  --secret-file FILE  file with the signing secret\n"
     "  --json              as JSON\n"
     "  --timeout TIME      timeout of each call of the service (default: 30s)\n",
     subscriptions_add_run},
    {"subscriptions remove", "[--json] [--timeout TIME] ID", "remove a webhook from the service",
     "  --json          as JSON\n"
     "  --timeout TIME  timeout of each call of the service (default: 30s)\n",
     subscriptions_remove_run},
    {"subscriptions ensure",
     "--url URL --events LIST --secret-file FILE [--rotate] [--dry-run] [--json] [--timeout TIME]",
     "create or update the webhook for a URL",
     "  --url URL           URL to deliver to\n"
     "  --events LIST       kinds, separated by commas, or '*' for all\n"
     "  --secret-file FILE  file with the signing secret\n"
     "  --rotate            replace it even if it is right, because the secret has changed\n"
     "  --dry-run           only print what would be done\n"
     "  --json              as JSON\n"
     "  --timeout TIME      timeout of each call of the service (default: 30s)\n",
     subscriptions_ensure_run},
    {"secret new", "FILE", "create a file with a random secret, readable by its owner only", "", secret_run},
    {"completion bash", "", "print the completion script for bash, which make install installs", "",
     completion_run},
};

const char command_main_options[] =
    "  -c, --config FILE  configuration file (default: " COMMAND_DEFAULT_FILE ")\n"
    "  -h, --help         print this help and exit; after a command, its options\n"
    "  -V, --version      print the version and exit\n";

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

/* Return the number of words in a command's name if argv begins with it, else 0. */
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
                                fprintf(stderr, "gatepost %s: incomplete command; one of:\n", argv[0]);
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
        fprintf(stderr, "gatepost: unknown command '%s'%s%s%s; see gatepost --help\n", argv[0],
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
                optind = 0; /* glibc: reset, since main() has parsed its options */
                return commands[i].run(&context, argc - n_words + 1, argv + n_words - 1);
        }
        return unknown(argc, argv);
}
