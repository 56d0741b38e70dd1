#include "cli/send.h"

#include <getopt.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/uuid.h"
#include "cli/post.h"
#include "config/config.h"
#include "model/sample.h"

#define BODY_MAX (128u << 20)
#define N_HEADERS 4

/* What the arguments ask for. */
struct wish {
        const char *to;
        const char *source;
        const char *kind;
        const char *body_file;
        const char *delivery_id;
        const char *webhook_id;
        uint64_t age_ms;
        uint64_t repeat;
        int forge;
};

/* What is sent, and where to. */
struct mission {
        const struct config_source *source;
        char *url;
        const char *socket_path;
        char *body;
        size_t len;
        char delivery_id[128];
        char webhook_id[128];
};

static char *
read_body(const char *file, size_t *len)
{
        FILE *in = strcmp(file, "-") == 0 ? stdin : fopen(file, "re");
        char *body = NULL;
        size_t size = 0, n;

        *len = 0;
        if (in == NULL) {
                perror(file);
                return NULL;
        }
        do {
                size = size == 0 ? 65536 : size * 2;
                body = mem_resize(body, size, 1);
                n = fread(body + *len, 1, size - *len, in);
                *len += n;
        } while (*len == size && size < BODY_MAX);
        if (ferror(in)) {
                perror(file);
                free(body);
                body = NULL;
        }
        if (in != stdin)
                (void)fclose(in);
        return body;
}

/* The URL of the first listener, from here: 0.0.0.0 is reached by 127.0.0.1. */
static char *
own_url(const struct config_listen *listen, const char *path, const char **socket_path)
{
        const struct sockaddr_in *in = (const struct sockaddr_in *)&listen->address;
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&listen->address;
        int family = listen->address.ss_family;

        if (family == AF_UNIX) {
                *socket_path = ((const struct sockaddr_un *)&listen->address)->sun_path;
                return mem_printf("http://localhost%s", path);
        }
        if (family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr))
                return mem_printf("http://[::1]:%d%s", ntohs(in6->sin6_port), path);
        if (family == AF_INET && in->sin_addr.s_addr == INADDR_ANY)
                return mem_printf("http://127.0.0.1:%d%s", ntohs(in->sin_port), path);
        return mem_printf("http://%s%s", listen->text, path);
}

static int
has_port_0(const struct config_listen *listen)
{
        const struct sockaddr_in *in = (const struct sockaddr_in *)&listen->address;

        return listen->address.ss_family != AF_UNIX && in->sin_port == 0;
}

/* --to may leave out the path: then it is the source's. */
static int
choose_url(const struct config *config, const struct wish *wish, struct mission *mission)
{
        const char *path = mission->source->path, *host;

        mission->socket_path = NULL;
        if (wish->to != NULL) {
                host = strstr(wish->to, "://");
                if (host == NULL)
                        mission->url =
                            mem_printf("http://%s%s", wish->to, strchr(wish->to, '/') == NULL ? path : "");
                else
                        mission->url =
                            mem_printf("%s%s", wish->to, strchr(host + 3, '/') == NULL ? path : "");
                return 0;
        }
        if (config->n_listen == 0 || has_port_0(&config->listen[0])) {
                fprintf(stderr, "gatepost send: the configuration does not say where to: give --to URL\n");
                return -1;
        }
        mission->url = own_url(&config->listen[0], path, &mission->socket_path);
        return 0;
}

static int
prepare(const struct config *config, const struct wish *wish, struct mission *mission)
{
        char id[UUID_SIZE];

        mission->source = wish->source == NULL
                              ? &config->sources[0]
                              : config_find_source(config, wish->source, strlen(wish->source));
        if (mission->source == NULL) {
                fprintf(stderr, "gatepost send: no source %s is configured\n", wish->source);
                return EX_USAGE;
        }
        if (choose_url(config, wish, mission) != 0)
                return EX_USAGE;
        (void)snprintf(mission->delivery_id, sizeof(mission->delivery_id), "%s",
                       wish->delivery_id != NULL ? wish->delivery_id : uuid_make(id));
        (void)snprintf(mission->webhook_id, sizeof(mission->webhook_id), "%s",
                       wish->webhook_id != NULL             ? wish->webhook_id
                       : mission->source->n_webhook_ids > 0 ? mission->source->webhook_ids[0]
                                                            : uuid_make(id));
        if (wish->kind != NULL) {
                mission->body = sample_body(wish->kind);
                mission->len = strlen(mission->body);
        } else {
                mission->body = read_body(wish->body_file, &mission->len);
        }
        return mission->body == NULL ? EX_NOINPUT : 0;
}

/* The signature, by the source's first secret, or by another one. */
static int
sign(const struct mission *mission, const char *timestamp, int forge, char text[SIGNATURE_HEADER_LEN + 1])
{
        struct signature_key *wrong = forge ? signature_key_new("not the secret that was agreed", 30) : NULL;
        const struct signature_key *key = forge ? wrong : mission->source->keys[0];
        uint8_t signature[SIGNATURE_SIZE];
        int result =
            key == NULL ? -1 : signature_compute(key, timestamp, mission->body, mission->len, signature);

        if (result == 0)
                signature_format(signature, text);
        signature_key_free(wrong);
        return result;
}

/* What an answer means for the exit status: the worst of several counts. */
static int
status_for(int http_status)
{
        if (http_status >= 200 && http_status < 300)
                return 0;
        return http_status >= 400 && http_status < 500 ? EX_DATAERR : EX_TEMPFAIL;
}

/* Sign and post once. Returns an exit status. */
static int
send_once(const struct mission *mission, const struct wish *wish)
{
        const char *prefix = mission->source->header_prefix;
        char timestamp[24], signature[SIGNATURE_HEADER_LEN + 1];
        char *headers[N_HEADERS];
        struct post_answer answer;
        struct error error;
        int status;

        (void)snprintf(timestamp, sizeof(timestamp), "%010" PRId64,
                       (clock_now_ms() - (int64_t)wish->age_ms) / 1000);
        if (sign(mission, timestamp, wish->forge, signature) != 0) {
                fprintf(stderr, "gatepost send: the signature could not be computed\n");
                return EX_SOFTWARE;
        }
        headers[0] = mem_printf("%s-signature: %s", prefix, signature);
        headers[1] = mem_printf("%s-timestamp: %s", prefix, timestamp);
        headers[2] = mem_printf("%s-webhook-id: %s", prefix, mission->webhook_id);
        headers[3] = mem_printf("%s-delivery-id: %s", prefix, mission->delivery_id);
        if (post_send(mission->url, mission->socket_path, (const char *const *)headers, N_HEADERS,
                      mission->body, mission->len, &answer, &error) != 0) {
                fprintf(stderr, "gatepost send: %s\n", error.text);
                status = EX_TEMPFAIL;
        } else {
                printf("%d %s\n", answer.status, answer.body);
                free(answer.body);
                status = status_for(answer.status);
        }
        for (size_t i = 0; i < N_HEADERS; i++)
                free(headers[i]);
        return status;
}

static int
send_all(const struct config *config, const struct wish *wish)
{
        struct mission mission = {0};
        int status = prepare(config, wish, &mission);

        for (uint64_t i = 0; i < wish->repeat && (status == 0 || i > 0); i++) {
                int once = send_once(&mission, wish);

                status = once > status ? once : status;
        }
        free(mission.url);
        free(mission.body);
        return status;
}

/* Read the arguments. Returns -1 to go on, or an exit status. */
static int
parse(const struct command_context *context, int argc, char **argv, struct wish *wish)
{
        static const struct option options[] = {{"to", required_argument, NULL, 't'},
                                                {"source", required_argument, NULL, 's'},
                                                {"kind", required_argument, NULL, 'k'},
                                                {"delivery-id", required_argument, NULL, 'd'},
                                                {"webhook-id", required_argument, NULL, 'w'},
                                                {"age", required_argument, NULL, 'a'},
                                                {"forge", no_argument, NULL, 'f'},
                                                {"repeat", required_argument, NULL, 'r'},
                                                {"help", no_argument, NULL, 'h'},
                                                {NULL, 0, NULL, 0}};
        const char **texts[] = {['t'] = &wish->to,
                                ['s'] = &wish->source,
                                ['k'] = &wish->kind,
                                ['d'] = &wish->delivery_id,
                                ['w'] = &wish->webhook_id};
        struct error error;
        int option;

        while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
                if (option == 'h')
                        return command_help(context);
                if (option == '?')
                        return command_misused(context, "wrong option");
                if (option == 'a' &&
                    number_parse_duration(optarg, 0, UINT64_C(31536000000), &wish->age_ms, &error) != 0)
                        return command_misused(context, "--age: %s", error.text);
                if (option == 'r' && number_parse(optarg, 1, 1000000, &wish->repeat, &error) != 0)
                        return command_misused(context, "--repeat: %s", error.text);
                if (option == 'f')
                        wish->forge = 1;
                if ((size_t)option < ARRAY_LEN(texts) && texts[option] != NULL)
                        *texts[option] = optarg;
        }
        if (argc - optind > 1 || (argc - optind == 1) == (wish->kind != NULL))
                return command_misused(context, "needs either --kind KIND or a file with the body");
        wish->body_file = wish->kind == NULL ? argv[optind] : NULL;
        return -1;
}

int
send_run(const struct command_context *context, int argc, char **argv)
{
        struct wish wish = {.repeat = 1};
        int status = parse(context, argc, argv, &wish);
        struct config *config;

        if (status >= 0)
                return status;
        config = config_load(context->file);
        if (config == NULL)
                return EX_CONFIG;
        status = send_all(config, &wish);
        config_free(config);
        return status;
}
