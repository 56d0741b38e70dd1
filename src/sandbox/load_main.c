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
#include "sandbox/load.h"
#include "sandbox/signed_post.h"

#define COUNT_MAX 10000000

/* The arguments, as far as the plan does not hold them. */
struct wish {
        struct load_plan plan;
        char webhook_id[BYTES_UUID_SIZE];
        const char *secret_file;
        char *kinds; /* a list with commas, cut into the plan's */
        int json;
};

static void
usage(FILE *out)
{
        fputs("usage: gatepost-sandbox fire --to URL --secret-file FILE [OPTION]...\n"
              "Sends signed deliveries at a receiver, and reports its answers and how long they took.\n\n"
              "  --to URL           the receiver's, with the source's path\n"
              "  --secret-file FILE the secret to sign with\n"
              "  --count N          how many (default: 100)\n"
              "  --rate N           a second (default: as fast as they are answered)\n"
              "  --kinds LIST       kinds of events with commas between, sent in turn (default: "
              "invoice.accepted)\n"
              "  --repeat PERCENT   so many of the genuine ones repeat the one before (default: 0)\n"
              "  --forged PERCENT   so many of them are signed with another secret (default: 0)\n"
              "  --connections N    at most so many at a time (default: 16)\n"
              "  --service WORD     the word in x-WORD-signature and so on (default: invoicing)\n"
              "  --webhook-id ID    default: one is made up\n"
              "  --ca-file FILE     certificates to trust, instead of the system's\n"
              "  --json             report as JSON\n"
              "  -h, --help         show this and exit\n",
              out);
}

static int
misused(const char *option, const char *reason)
{
        fprintf(stderr, "gatepost-sandbox fire: %s%s: %s\n", *option == '\0' ? "" : "--", option, reason);
        return EX_USAGE;
}

/* Cut the list of kinds, in place. */
static int
set_kinds(struct wish *wish, const char *text, struct error *error)
{
        struct load_plan *plan = &wish->plan;
        char *rest = NULL;

        free(wish->kinds);
        wish->kinds = mem_strdup(text);
        plan->n_kinds = 0;
        for (char *kind = strtok_r(wish->kinds, ",", &rest); kind != NULL;
             kind = strtok_r(NULL, ",", &rest)) {
                if (plan->n_kinds == LOAD_KINDS_MAX)
                        return error_set(error, "at most %d kinds", LOAD_KINDS_MAX);
                if (!event_is_kind(kind))
                        return error_set(error, "'%.64s' is no kind of event", kind);
                plan->kinds[plan->n_kinds++] = kind;
        }
        return plan->n_kinds > 0 ? 0 : error_set(error, "needs a kind, such as invoice.accepted");
}

/* As the library reads it that will send there. */
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
set_option(struct wish *wish, int option, const char *value, struct error *error)
{
        struct load_plan *plan = &wish->plan;

        switch (option) {
        case 't':
                plan->url = value;
                return is_url(value) ? 0
                                     : error_set(error, "must be a URL that begins with http:// or https://");
        case 's':
                wish->secret_file = value;
                return 0;
        case 'n':
                return number_parse(value, 1, COUNT_MAX, &plan->count, error);
        case 'r':
                return number_parse(value, 1, 1000000, &plan->rate, error);
        case 'k':
                return set_kinds(wish, value, error);
        case 'R':
                return number_parse(value, 0, 100, &plan->repeat_percent, error);
        case 'f':
                return number_parse(value, 0, 100, &plan->forged_percent, error);
        case 'c':
                return number_parse(value, 1, 1000, &plan->connections, error);
        case 'S':
                plan->service = value;
                return signed_post_is_service(value)
                           ? 0
                           : error_set(error, "must have 1 to 32 lowercase letters, digits and hyphens");
        case 'w':
                plan->webhook_id = value;
                return signed_post_is_id(value)
                           ? 0
                           : error_set(error, "must have 1 to 64 letters, digits and hyphens");
        case 'C':
                plan->ca_file = value;
                return 0;
        default:
                wish->json = 1;
                return 0;
        }
}

/* Read the arguments. Returns -1 to go on, or an exit status. */
static int
parse(int argc, char **argv, struct wish *wish)
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
                if (set_option(wish, option, optarg, &error) != 0)
                        return misused(known[index].name, error.text);
        }
        if (optind != argc)
                return misused("", "takes options only; see gatepost-sandbox fire --help");
        if (wish->plan.url == NULL)
                return misused("to", "say where to; see gatepost-sandbox fire --help");
        return wish->secret_file != NULL ? -1 : misused("secret-file", "say what to sign with");
}

static int
run(struct wish *wish)
{
        static const char other[] = "a secret that nobody agreed upon";
        struct signature_key *key, *wrong_key;
        struct load_report report = {0};
        struct error error;
        size_t len;
        char *secret = secrets_read_signing(wish->secret_file, &len, &error);
        int status = EX_OSERR;

        if (secret == NULL) {
                fprintf(stderr, "gatepost-sandbox fire: %s\n", error.text);
                return EX_NOINPUT;
        }
        if (wish->plan.ca_file != NULL && transport_check_ca_file(wish->plan.ca_file, &error) != 0) {
                fprintf(stderr, "gatepost-sandbox fire: --ca-file: %s\n", error.text);
                secrets_free(secret, len);
                return EX_NOINPUT;
        }
        wish->plan.key = key = signature_key_new(secret, len);
        wish->plan.wrong_key = wrong_key = signature_key_new(other, sizeof(other) - 1);
        secrets_free(secret, len);
        if (key == NULL || wrong_key == NULL || load_run(&wish->plan, &report) != 0) {
                fputs("gatepost-sandbox fire: out of memory\n", stderr);
        } else {
                load_report_print(&report, wish->json);
                status = load_report_exit_status(&report);
        }
        load_report_clear(&report);
        signature_key_free(key);
        signature_key_free(wrong_key);
        return status;
}

int
load_main(int argc, char **argv)
{
        struct wish wish = {.plan = {.service = "invoicing",
                                     .kinds = {"invoice.accepted"},
                                     .n_kinds = 1,
                                     .count = 100,
                                     .connections = 16}};
        int status;

        wish.plan.webhook_id = bytes_random_uuid(wish.webhook_id);
        status = parse(argc, argv, &wish);
        if (status < 0)
                status = run(&wish);
        free(wish.kinds);
        return status;
}
