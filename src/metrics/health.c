#include "metrics/health.h"

#include <stdio.h>
#include <string.h>

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

int
health_check(const struct health *health, const char *name, const char *separator, char *text, size_t size)
{
        int ready = -1;
        size_t len = 0;

        text[0] = '\0';
        for (size_t i = 0; i < health->n_parts; i++) {
                const struct health_part *part = &health->parts[i];
                char reason[HEALTH_REASON_SIZE] = "ready";

                if (name != NULL && strcmp(part->name, name) != 0)
                        continue;
                ready = (part->is_ready(part->arg, reason) != 0) & (ready != 0);
                (void)snprintf(text + len, size - len, "%s%s: %s", len == 0 ? "" : separator, part->name,
                               reason);
                len += strlen(text + len);
        }
        return ready;
}

void
health_log_changes(struct health *health)
{
        char text[HEALTH_MAX_PARTS * (HEALTH_REASON_SIZE + 32)], quoted[LOG_QUOTED_SIZE];
        int ready = health_check(health, NULL, "; ", text, sizeof(text));

        if (ready == health->was_ready)
                return;
        health->was_ready = ready;
        if (ready)
                log_notice("ready");
        else
                log_warning("not ready reason=%s", log_quote(text, quoted));
}
