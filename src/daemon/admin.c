#include "daemon/admin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/address.h"
#include "base/log.h"
#include "base/mem.h"
#include "http/listener.h"
#include "http/request.h"
#include "http/server.h"
#include "metrics/metrics_report.h"

struct admin {
        struct http_server *server;
        const struct health *health;
        const struct metrics *metrics;
        int fd;
        int is_passed; /* by the service manager; it is not closed here */
        int takes_any_host;
};

static const struct http_limits limits = {
    .max_header_bytes = 8192,
    .max_headers = 100,
    .max_body = 1024,
    .max_connections = 64,
    .header_timeout_ms = 5000,
    .request_timeout_ms = 5000,
    .idle_timeout_ms = 60000,
    .handling_timeout_ms = 60000,
};

static const struct http_error misdirected = {
    .status = 421,
    .code = "MISDIRECTED_REQUEST",
    .message =
        "this is the admin endpoint; deliveries go to listen in [receiver]. For the status, use localhost "
        "or an IP address; other host names need allow_remote = on in [admin]"};
static const struct http_error not_found = {
    .status = 404,
    .code = "NOT_FOUND",
    .message = "not found; paths are /, /status, /metrics, /healthz, /readyz, /readyz/receiver and "
               "/readyz/router"};
static const struct http_error no_role = {
    .status = 404,
    .code = "NOT_FOUND",
    .message = "this process does not have that role; see roles in [gatepost]"};

/* The headers restrict what a browser lets the page do, and other pages do with the answers. */
static void
reply(struct http_request *request, int status, const char *type, const char *text, size_t len)
{
        const struct http_header headers[] = {
            {"Content-Type", type},
            {"Cache-Control", "no-store"},
            {"Content-Security-Policy",
             "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
             "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
            {"X-Content-Type-Options", "nosniff"},
            {"Referrer-Policy", "no-referrer"},
            {"Cross-Origin-Opener-Policy", "same-origin"},
            {"Cross-Origin-Resource-Policy", "same-origin"},
        };

        http_reply(request, status, headers, ARRAY_LEN(headers), text, len);
}

static void
answer_health(const struct admin *admin, struct http_request *request, const char *arg)
{
        char reason[HEALTH_REASON_SIZE], text[HEALTH_REASON_SIZE + 1];
        int is_alive = health_is_alive(admin->health, reason);

        (void)arg;
        (void)snprintf(text, sizeof(text), "%s\n", is_alive ? "alive" : reason);
        reply(request, is_alive ? 200 : 503, "text/plain; charset=utf-8", text, strlen(text));
}

/* Answer whether a role is ready; NULL: whether all are. */
static void
answer_readiness(const struct admin *admin, struct http_request *request, const char *role)
{
        char text[HEALTH_MAX_PARTS * (HEALTH_REASON_SIZE + 32)];
        int ready = health_check(admin->health, role, "\n", text, sizeof(text) - 1);

        if (ready < 0) {
                http_reply_error(request, &no_role);
                return;
        }
        (void)strcat(text, "\n");
        reply(request, ready ? 200 : 503, "text/plain; charset=utf-8", text, strlen(text));
}

static void
answer_metrics(const struct admin *admin, struct http_request *request, const char *arg)
{
        size_t len = 0;
        char *text = metrics_report_prometheus(admin->metrics, &len);

        (void)arg;
        reply(request, 200, "text/plain; version=0.0.4; charset=utf-8", text, len);
        free(text);
}

static void
answer_status(const struct admin *admin, struct http_request *request, const char *arg)
{
        size_t len = 0;
        char *text = metrics_report_status(admin->metrics, &len);

        (void)arg;
        reply(request, 200, "application/json", text, len);
        free(text);
}

/* The files of the status page, whose script fetches /status and shows the numbers. See embed.sh. */
extern const char page_html[];
extern const char page_css[];
extern const char page_js[];

static const struct {
        const char *path;
        void (*answer)(const struct admin *admin, struct http_request *request, const char *arg);
        const char *arg;
        const char *text, *type; /* of a file */
} pages[] = {
    {.path = "/", .text = page_html, .type = "text/html; charset=utf-8"},
    {.path = "/page.css", .text = page_css, .type = "text/css; charset=utf-8"},
    {.path = "/page.js", .text = page_js, .type = "text/javascript; charset=utf-8"},
    {.path = "/status", .answer = answer_status},
    {.path = "/healthz", .answer = answer_health},
    {.path = "/metrics", .answer = answer_metrics},
    {.path = "/readyz", .answer = answer_readiness},
    {.path = "/readyz/receiver", .answer = answer_readiness, .arg = "receiver"},
    {.path = "/readyz/router", .answer = answer_readiness, .arg = "router"},
};

/* Return whether a Host is an IP address or localhost (RFC 6761 section 6.3), which nobody can redirect. */
static int
is_local_name(const char *host)
{
        static const char localhost[] = "localhost";
        const size_t n = strlen(localhost);
        size_t len = *host == '[' ? strcspn(host, "]") : strcspn(host, ":");
        struct address address;

        if (*host == '[')
                return host[len] == ']' && address_parse(host + 1, len - 1, &address) == 0;
        return address_parse(host, len, &address) == 0 ||
               (len >= n && strncasecmp(host + len - n, localhost, n) == 0 &&
                (len == n || host[len - n - 1] == '.'));
}

static void
check_host(const struct http_header *header, void *arg)
{
        int *is_foreign = arg;

        *is_foreign |= strcasecmp(header->name, "Host") == 0 && !is_local_name(header->value);
}

/*
 * Return whether the request may come from a foreign page by DNS rebinding: the page's name is made to
 * resolve to 127.0.0.1, and the page then reads the answer as its own.
 */
static int
may_be_rebound(const struct admin *admin, const struct http_request *request)
{
        int is_foreign = 0;

        if (!admin->takes_any_host)
                http_request_headers(request, check_host, &is_foreign);
        return is_foreign;
}

static void
on_request(struct http_request *request, void *arg)
{
        static const struct http_header allow = {"Allow", "GET, HEAD"};
        const struct admin *admin = arg;
        const char *method = http_request_method(request);
        size_t len, i = 0;
        const char *path = http_request_path(request, &len);

        while (i < ARRAY_LEN(pages) &&
               (strlen(pages[i].path) != len || memcmp(pages[i].path, path, len) != 0))
                i++;
        if (may_be_rebound(admin, request))
                http_reply_error(request, &misdirected);
        else if (i == ARRAY_LEN(pages))
                http_reply_error(request, &not_found);
        else if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
                http_reply(request, 405, &allow, 1, "", 0);
        else if (pages[i].text != NULL)
                reply(request, 200, pages[i].type, pages[i].text, strlen(pages[i].text));
        else
                pages[i].answer(admin, request, pages[i].arg);
}

static const struct http_callbacks callbacks = {.on_request = on_request};

/* No host name resolves to a Unix-domain socket. */
static int
is_unix(int fd)
{
        struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
        socklen_t len = sizeof(address);

        return getsockname(fd, (struct sockaddr *)&address, &len) == 0 && address.ss_family == AF_UNIX;
}

struct admin *
admin_new(struct event_base *base, const struct config *config, int passed, const struct health *health,
          struct metrics *metrics, struct error *error)
{
        struct admin *admin = mem_alloc(sizeof(*admin));
        const char *opened_by = passed >= 0 ? "manager" : "daemon";
        char name[LISTENER_NAME_SIZE], value[LOG_QUOTED_SIZE];

        admin->health = health;
        admin->metrics = metrics;
        admin->is_passed = passed >= 0;
        admin->fd = admin->is_passed ? passed
                                     : listener_open((const struct sockaddr *)&config->admin->address,
                                                     config->admin->address_len, error);
        if (admin->fd < 0) {
                free(admin);
                return NULL;
        }
        admin->takes_any_host = config->admin_allows_remote || is_unix(admin->fd);
        admin->server = http_server_new(base, &limits, NULL, &callbacks, admin);
        if (admin->server == NULL || http_server_listen(admin->server, admin->fd) != 0) {
                (void)error_set(error, "cannot start the admin endpoint");
                admin_free(admin);
                return NULL;
        }
        log_info("listening for=admin opened_by=%s address=%s", opened_by,
                 log_value(name, strlen(listener_name(admin->fd, name, sizeof(name))), value));
        return admin;
}

void
admin_tick(struct admin *admin)
{
        if (admin != NULL)
                http_server_keep_to_limits(admin->server);
}

void
admin_free(struct admin *admin)
{
        if (admin == NULL)
                return;
        http_server_free(admin->server);
        if (!admin->is_passed)
                listener_close(admin->fd);
        free(admin);
}
