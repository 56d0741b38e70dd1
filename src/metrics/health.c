#include "metrics/health.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/log.h"

void
health_add(struct health *health, const char *name,
           int (*is_ready)(void *arg, char reason[HEALTH_REASON_SIZE]), void *arg)
{
        health->parts[health->n_parts++] = (struct health_part){name, is_ready, arg};
}

int
health_is_alive(const struct health *health, char reason[HEALTH_REASON_SIZE])
{
        return health->is_alive == NULL || health->is_alive(health->alive_arg, reason);
}

static int
check_part(const struct health_part *part, char *text, size_t size)
{
        char reason[HEALTH_REASON_SIZE] = "ready";
        int is_ready = part->is_ready(part->arg, reason) != 0;

        (void)snprintf(text, size, "%s: %s\n", part->name, reason);
        return is_ready;
}

int
health_check(const struct health *health, char *text, size_t size)
{
        int ready = 1;
        size_t len = 0;

        text[0] = '\0';
        for (size_t i = 0; i < health->n_parts && len < size; i++) {
                ready &= check_part(&health->parts[i], text + len, size - len);
                len += strlen(text + len);
        }
        return ready;
}

int
health_check_part(const struct health *health, const char *name, char *text, size_t size)
{
        for (size_t i = 0; i < health->n_parts; i++) {
                if (strcmp(health->parts[i].name, name) == 0)
                        return check_part(&health->parts[i], text, size);
        }
        return -1;
}

/* Append to the line of this length as much as it has room for. */
static void PRINTF_LIKE(4, 5) append(char *line, size_t size, size_t *len, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        (void)vsnprintf(line + *len, size - *len, format, args);
        va_end(args);
        *len += strlen(line + *len);
}

int
health_check_line(const struct health *health, char *line, size_t size)
{
        char reasons[HEALTH_MAX_PARTS][HEALTH_REASON_SIZE];
        int ready = 1, is_said[HEALTH_MAX_PARTS] = {0};
        size_t len = 0;

        for (size_t i = 0; i < health->n_parts; i++) {
                (void)snprintf(reasons[i], sizeof(reasons[i]), "ready");
                ready &= health->parts[i].is_ready(health->parts[i].arg, reasons[i]) != 0;
        }
        line[0] = '\0';
        for (size_t i = 0; i < health->n_parts; i++) {
                if (is_said[i])
                        continue;
                append(line, size, &len, "%s%s", len == 0 ? "" : "; ", health->parts[i].name);
                for (size_t k = i + 1; k < health->n_parts; k++) {
                        if (strcmp(reasons[k], reasons[i]) != 0)
                                continue;
                        is_said[k] = 1;
                        append(line, size, &len, ", %s", health->parts[k].name);
                }
                append(line, size, &len, ": %s", reasons[i]);
        }
        return ready;
}

void
health_log_changes(struct health *health)
{
        char text[HEALTH_MAX_PARTS * (HEALTH_REASON_SIZE + 32)], quoted[LOG_QUOTED_SIZE];
        int ready = health_check_line(health, text, sizeof(text));

        if (ready == health->was_ready)
                return;
        health->was_ready = ready;
        if (ready)
                log_notice("ready");
        else
                log_warning("not ready reason=%s", log_quote(text, quoted));
}
