#include "daemon/admin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/address.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/page.h"
#include "http/listener.h"
#include "http/request.h"
#include "http/server.h"

struct admin {
        struct http_server *server;
        const struct health *health;
        const struct metrics *metrics;
        const char *instance;
        struct page page;
        int fd;
        int is_passed;    /* by the service manager; it is not closed here */
        int is_shut_down; /* by another process; logged once */
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

static void
reply_text(struct http_request *request, int status, const char *type, const char *text, size_t len)
{
        const struct http_header headers[] = {
            {"Content-Type", type},
            {"Cache-Control", "no-store"},
            {"X-Content-Type-Options", "nosniff"},
            {"Cross-Origin-Resource-Policy", "same-origin"},
        };

        http_reply(request, status, headers, ARRAY_LEN(headers), text, len);
}

static void
answer_health(const struct admin *admin, struct http_request *request)
{
        char reason[HEALTH_REASON_SIZE], text[HEALTH_REASON_SIZE + 1];
        int is_alive = health_is_alive(admin->health, reason);

        (void)snprintf(text, sizeof(text), "%s\n", is_alive ? "alive" : reason);
        reply_text(request, is_alive ? 200 : 503, "text/plain; charset=utf-8", text, strlen(text));
}

static void
answer_readiness(const struct admin *admin, struct http_request *request)
{
        char text[HEALTH_MAX_PARTS * (HEALTH_REASON_SIZE + 32)];
        int ready = health_check(admin->health, text, sizeof(text));

        reply_text(request, ready ? 200 : 503, "text/plain; charset=utf-8", text, strlen(text));
}

/* Answer whether one role is ready. */
static void
answer_role(const struct admin *admin, struct http_request *request, const char *role)
{
        char text[HEALTH_REASON_SIZE + 32], message[128];
        int ready = health_check_part(admin->health, role, text, sizeof(text));
        const struct http_error no_role = {.status = 404, .code = "NOT_FOUND", .message = message};

        if (ready >= 0) {
                reply_text(request, ready ? 200 : 503, "text/plain; charset=utf-8", text, strlen(text));
                return;
        }
        (void)snprintf(message, sizeof(message),
                       "this process does not have the role %s; see roles in [gatepost]", role);
        http_reply_error(request, &no_role);
}

static void
answer_receiver(const struct admin *admin, struct http_request *request)
{
        answer_role(admin, request, "receiver");
}

static void
answer_router(const struct admin *admin, struct http_request *request)
{
        answer_role(admin, request, "router");
}

static void
answer_metrics(const struct admin *admin, struct http_request *request)
{
        size_t len = 0;
        char *text = metrics_render(admin->metrics, &len);

        reply_text(request, 200, "text/plain; version=0.0.4; charset=utf-8", text, len);
        free(text);
}

static void
answer_status(const struct admin *admin, struct http_request *request)
{
        size_t len = 0;
        char *text = metrics_status(admin->metrics, &len);

        reply_text(request, 200, "application/json", text, len);
        free(text);
}

/* The headers restrict what a browser lets the page do. */
static void
answer_page(const struct admin *admin, struct http_request *request)
{
        const struct http_header headers[] = {
            {"Content-Type", "text/html; charset=utf-8"},
            {"Cache-Control", "no-store"},
            {"Content-Security-Policy", admin->page.policy},
            {"X-Content-Type-Options", "nosniff"},
            {"Referrer-Policy", "no-referrer"},
            {"Cross-Origin-Opener-Policy", "same-origin"},
            {"Cross-Origin-Resource-Policy", "same-origin"},
        };

        http_reply(request, 200, headers, ARRAY_LEN(headers), admin->page.text, admin->page.len);
}

static const struct {
        const char *path;
        void (*answer)(const struct admin *admin, struct http_request *request);
} pages[] = {
    {"/", answer_page},
    {"/status", answer_status},
    {"/healthz", answer_health},
    {"/readyz", answer_readiness},
    {"/metrics", answer_metrics},
    {"/readyz/receiver", answer_receiver},
    {"/readyz/router", answer_router},
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
        const struct admin *admin = arg;
        const char *method = http_request_method(request);
        size_t len;
        const char *path = http_request_path(request, &len);

        if (may_be_rebound(admin, request)) {
                http_reply_error(request, &misdirected);
                return;
        }
        for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
                if (strlen(pages[i].path) != len || memcmp(pages[i].path, path, len) != 0)
                        continue;
                if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0) {
                        pages[i].answer(admin, request);
                } else {
                        const struct http_header allow = {"Allow", "GET, HEAD"};

                        http_reply(request, 405, &allow, 1, "", 0);
                }
                return;
        }
        http_reply_error(request, &not_found);
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
        admin->instance = config->instance;
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
        if (page_build(&admin->page) != 0 || admin->server == NULL ||
            http_server_listen(admin->server, admin->fd) != 0) {
                (void)error_set(error, "cannot start the admin endpoint");
                admin_free(admin);
                return NULL;
        }
        log_info("listening for=admin opened_by=%s address=%s", opened_by,
                 log_value(name, strlen(listener_name(admin->fd, name, sizeof(name))), value));
        return admin;
}

static void
check_listener(struct admin *admin)
{
        char name[LISTENER_NAME_SIZE], value[LOG_QUOTED_SIZE];

        if (admin->is_shut_down || !listener_is_shut_down(admin->fd))
                return;
        admin->is_shut_down = 1;
        log_error("another process has shut down the listening socket for=admin address=%s",
                  log_value(name, strlen(listener_name(admin->fd, name, sizeof(name))), value));
}

void
admin_tick(struct admin *admin)
{
        if (admin == NULL)
                return;
        http_server_keep_to_limits(admin->server);
        check_listener(admin);
}

void
admin_free(struct admin *admin)
{
        if (admin == NULL)
                return;
        http_server_free(admin->server);
        if (!admin->is_passed)
                listener_close(admin->fd);
        page_clear(&admin->page);
        free(admin);
}
