#include "ops/reload.h"

#include "base/clock.h"
#include "base/log.h"
#include "config/restart.h"

static void
log_restart_needed(const char *section, const char *name, void *arg)
{
        (void)arg;
        log_warning("changed in the configuration, but only a restart takes it over section=%s option=%s",
                    section, name == NULL ? "any" : name);
}

void
reload_log_certificate(const struct config *config)
{
        enum certificate_state state;
        struct error error;

        if (config->certificate == NULL)
                return;
        state = certificate_state(config->certificate, clock_now_ms() / 1000, &error);
        if (state != CERTIFICATE_VALID)
                log_line(state == CERTIFICATE_ENDING ? LOG_LEVEL_WARNING : LOG_LEVEL_ERROR, "%s: %s",
                         config->tls_certificate_file, error.text);
}

/* A certificate that no client would trust now does not take the place of another one. */
static int
check_certificate(const struct config *newest, const struct config *next, struct error *error)
{
        if (newest->certificate == NULL || next->certificate == NULL ||
            certificate_is_same(newest->certificate, next->certificate) ||
            certificate_state(next->certificate, clock_now_ms() / 1000, error) != CERTIFICATE_UNUSABLE)
                return 0;
        return error_prefix(error, "%s", next->tls_certificate_file);
}

/* What a delivery may come again within must be remembered; how long that is, only a restart changes. */
static int
check_tolerances(const struct config *first, const struct config *next, struct error *error)
{
        for (size_t i = 0; i < next->n_sources; i++) {
                if (first->dedup_window_ms < 2 * next->sources[i].tolerance_ms)
                        return error_set(error,
                                         "the tolerance of [source %s] is longer than half of the "
                                         "dedup_window that holds until a restart",
                                         next->sources[i].name);
        }
        return 0;
}

const struct config *
reload_read(struct current *current)
{
        const struct config *first = current_first(current), *newest;
        const struct config *next = config_load(first->file);
        struct error error;
        int result;

        if (next == NULL) {
                log_error("the configuration has errors and was not taken over: what was holds on file=%s",
                          first->file);
                return NULL;
        }
        newest = current_hold(current);
        result = check_certificate(newest, next, &error);
        config_free(newest);
        if (result == 0)
                result = check_tolerances(first, next, &error);
        if (result == 0) {
                restart_needed(first, next, log_restart_needed, NULL);
                return next;
        }
        log_error("the configuration was not taken over: what was holds on: %s", error.text);
        config_free(next);
        return NULL;
}
