#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>

#include <curl/curl.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/number.h"
#include "config/secrets.h"
#include "sandbox/event_filter.h"
#include "sandbox/fire.h"
#include "sandbox/transport.h"

#define COUNT_MAX 10000000

struct fire_arguments {
        struct fire_plan plan;
        char webhook_id[BYTES_UUID_SIZE];
        const char *secret_file;
        char *kinds; /* the list, which plan.kinds points into */
        int json;
};

static void
usage(FILE *out)
{
        fputs("usage: gatepost-sandbox fire --to URL --secret-file FILE [OPTION]...\n"
              "Send signed deliveries to a receiver, and report its answers and latencies.\n\n"
              "  --to URL            URL of the receiver, with the source's path\n"
              "  --secret-file FILE  file with the signing secret\n"
              "  --count N           number of deliveries (default: 100)\n"
              "  --rate N            deliveries per second (default: unlimited)\n"
              "  --kinds LIST        comma-separated event kinds, sent in turn (default: invoice.accepted)\n"
              "  --repeat PERCENT    share of genuine deliveries that repeat the previous one (default: 0)\n"
              "  --forged PERCENT    share of deliveries signed with a wrong secret (default: 0)\n"
              "  --connections N     maximum number of connections (default: 16)\n"
              "  --service WORD      the word in x-WORD-signature and so on (default: invoicing)\n"
              "  --webhook-id ID     webhook-id to send (default: a new UUID)\n"
              "  --ca-file FILE      trust these certificates instead of the system's\n"
              "  --json              report as JSON\n"
              "  -h, --help          show this help and exit\n",
              out);
}

static int
misused(const char *option, const char *reason)
{
        fprintf(stderr, "gatepost-sandbox fire: --%s: %s\n", option, reason);
        return EX_USAGE;
}

/* Split the comma-separated list of kinds. */
static int
set_kinds(struct fire_arguments *args, const char *text, struct error *error)
{
        struct fire_plan *plan = &args->plan;
        char *rest = NULL;

        free(args->kinds);
        args->kinds = mem_strdup(text);
        plan->n_kinds = 0;
        for (char *kind = strtok_r(args->kinds, ",", &rest); kind != NULL;
             kind = strtok_r(NULL, ",", &rest)) {
                if (plan->n_kinds == FIRE_KINDS_MAX)
                        return error_set(error, "at most %d kinds", FIRE_KINDS_MAX);
                if (!event_filter_is_kind(kind))
                        return error_set(error, "'%.64s' is not a kind of event", kind);
                plan->kinds[plan->n_kinds++] = kind;
        }
        return plan->n_kinds > 0 ? 0 : error_set(error, "must name a kind, such as invoice.accepted");
}

/* Return whether libcurl, which sends the deliveries, accepts the URL. */
static int
is_url(const char *text)
{
        CURLU *url = curl_url();
        int is = url != NULL && curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK &&
                 (strncasecmp(text, "http://", 7) == 0 || strncasecmp(text, "https://", 8) == 0);

        curl_url_cleanup(url);
        return is;
}

static int
set_option(struct fire_arguments *args, int option, const char *value, struct error *error)
{
        struct fire_plan *plan = &args->plan;

        switch (option) {
        case 't':
                plan->url = value;
                return is_url(value) ? 0
                                     : error_set(error, "must be a URL that begins with http:// or https://");
        case 's':
                args->secret_file = value;
                return 0;
        case 'n':
                return number_parse(value, 1, COUNT_MAX, &plan->count, error);
        case 'r':
                return number_parse(value, 1, 1000000, &plan->rate, error);
        case 'k':
                return set_kinds(args, value, error);
        case 'R':
                return number_parse(value, 0, 100, &plan->repeat_percent, error);
        case 'f':
                return number_parse(value, 0, 100, &plan->forged_percent, error);
        case 'c':
                return number_parse(value, 1, 1000, &plan->connections, error);
        case 'S':
                plan->service = value;
                return transport_is_service(value)
                           ? 0
                           : error_set(error, "must have 1 to 32 lowercase letters, digits and hyphens");
        case 'w':
                plan->webhook_id = value;
                return transport_is_id(value)
                           ? 0
                           : error_set(error, "must have 1 to 64 letters, digits and hyphens");
        case 'C':
                plan->ca_file = value;
                return 0;
        default:
                args->json = 1;
                return 0;
        }
}

/* Parse the args. Returns -1 to continue, or an exit status. */
static int
parse(int argc, char **argv, struct fire_arguments *args)
{
        static const struct option known[] = {
            {"to", required_argument, NULL, 't'},      {"secret-file", required_argument, NULL, 's'},
            {"count", required_argument, NULL, 'n'},   {"rate", required_argument, NULL, 'r'},
            {"kinds", required_argument, NULL, 'k'},   {"repeat", required_argument, NULL, 'R'},
            {"forged", required_argument, NULL, 'f'},  {"connections", required_argument, NULL, 'c'},
            {"service", required_argument, NULL, 'S'}, {"webhook-id", required_argument, NULL, 'w'},
            {"ca-file", required_argument, NULL, 'C'}, {"json", no_argument, NULL, 'j'},
            {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0}};
        struct error error;
        int option, index = 0;

        while ((option = getopt_long(argc, argv, "h", known, &index)) != -1) {
                if (option == 'h') {
                        usage(stdout);
                        return 0;
                }
                if (option == '?') {
                        fputs("see gatepost-sandbox fire --help\n", stderr);
                        return EX_USAGE;
                }
                if (set_option(args, option, optarg, &error) != 0)
                        return misused(known[index].name, error.text);
        }
        if (optind != argc) {
                fprintf(stderr,
                        "gatepost-sandbox fire: unexpected argument '%s'; see gatepost-sandbox fire --help\n",
                        argv[optind]);
                return EX_USAGE;
        }
        if (args->plan.url == NULL)
                return misused("to", "is required; see gatepost-sandbox fire --help");
        return args->secret_file != NULL
                   ? -1
                   : misused("secret-file", "is required; see gatepost-sandbox fire --help");
}

/* Check the files, and make the keys. Returns 0, or an exit status after printing the reason. */
static int
open_keys(struct fire_arguments *args, struct signature_key **key, struct signature_key **wrong_key)
{
        static const char wrong_secret[] = "a secret that nobody agreed upon";
        struct error error;
        size_t len;
        char *secret = secrets_read_signing(args->secret_file, &len, NULL, &error);

        if (secret == NULL) {
                fprintf(stderr, "gatepost-sandbox fire: %s\n", error.text);
                return EX_NOINPUT;
        }
        if (args->plan.ca_file != NULL && transport_check_ca_file(args->plan.ca_file, &error) != 0) {
                fprintf(stderr, "gatepost-sandbox fire: --ca-file: %s\n", error.text);
                secrets_free(secret, len);
                return EX_NOINPUT;
        }
        *key = signature_key_new(secret, len);
        *wrong_key = signature_key_new(wrong_secret, sizeof(wrong_secret) - 1);
        secrets_free(secret, len);
        if (*key != NULL && *wrong_key != NULL)
                return 0;
        fputs("gatepost-sandbox fire: out of memory\n", stderr);
        return EX_OSERR;
}

static int
run(struct fire_arguments *args)
{
        struct signature_key *key = NULL, *wrong_key = NULL;
        struct fire_report report = {0};
        int status = open_keys(args, &key, &wrong_key);

        args->plan.key = key;
        args->plan.wrong_key = wrong_key;
        if (status == 0 && fire_run(&args->plan, &report) != 0) {
                fputs("gatepost-sandbox fire: out of memory\n", stderr);
                status = EX_OSERR;
        } else if (status == 0) {
                fire_report_print(&report, args->json);
                status = fire_report_exit_status(&report);
        }
        signature_key_free(key);
        signature_key_free(wrong_key);
        return status;
}

int
fire_main(int argc, char **argv)
{
        struct fire_arguments args = {.plan = {.service = "invoicing",
                                               .kinds = {"invoice.accepted"},
                                               .n_kinds = 1,
                                               .count = 100,
                                               .connections = 16}};
        int status;

        args.plan.webhook_id = bytes_random_uuid(args.webhook_id);
        status = parse(argc, argv, &args);
        if (status < 0)
                status = run(&args);
        free(args.kinds);
        return status;
}
