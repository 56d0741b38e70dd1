#include "daemon/reload.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
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
        char file[LOG_QUOTED_SIZE], quoted[LOG_QUOTED_SIZE];
        struct error error;

        if (config->certificate == NULL)
                return;
        state = certificate_state(config->certificate, clock_now_ms() / 1000, &error);
        if (state != CERTIFICATE_VALID)
                log_line(state == CERTIFICATE_ENDING ? LOG_LEVEL_WARNING : LOG_LEVEL_ERROR,
                         "the certificate needs attention file=%s reason=%s",
                         log_quote(config->tls_certificate_file, file), log_quote(error.text, quoted));
}

/*
 * A certificate that no client would trust now does not take the place of another one. Without one in the newest configuration
 * another is served still, whichever: to end TLS takes a restart.
 */
static int
check_certificate(const struct config *first, const struct config *newest, const struct config *next,
                  struct error *error)
{
        const struct certificate *served = newest->certificate;

        if (next->certificate == NULL || (served == NULL && first->certificate == NULL) ||
            (served != NULL && certificate_is_same(served, next->certificate)) ||
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

static int
check_room(const struct config *first, const struct config *next, struct error *error)
{
        if (!(first->roles & CONFIG_RECEIVER) || next->max_in_flight >= first->max_body)
                return 0;
        return error_set(error, "max_in_flight is smaller than the max_body that holds until a restart");
}

static void
log_problem(const char *file, size_t line, const char *text)
{
        char quoted_file[LOG_QUOTED_SIZE], quoted[LOG_QUOTED_SIZE];

        log_error("wrong in the configuration file=%s line=%zu reason=%s", log_quote(file, quoted_file), line,
                  log_quote(text, quoted));
}

void
reload_log_refused(const struct config *first, const char *reason)
{
        char file[LOG_QUOTED_SIZE], quoted[LOG_QUOTED_SIZE];

        log_error("the configuration was not taken over: what was holds on file=%s reason=%s",
                  log_quote(first->file, file), log_quote(reason, quoted));
}

/* Returns 0 when the configuration, with the newest's prefix, may take its place, -1 with the reason when not. */
static int
check(const struct reload *reload, struct config *next, struct error *error)
{
        const struct config *first = current_first(reload->current), *newest = current_hold(reload->current);
        int result = check_certificate(first, newest, next, error);

        restart_keep_topics(next, newest);
        /* Until a restart, what is received may be as large as before, and the topics must take it. */
        if (next->max_body < first->max_body)
                next->max_body = first->max_body;
        if (result == 0)
                result = check_tolerances(first, next, error);
        if (result == 0)
                result = check_room(first, next, error);
        if (result == 0 && (first->roles & CONFIG_ROUTER))
                result = probe_check_new_topics(reload->probe, newest, next, &reload->cancelled, error);
        config_free(newest);
        return result;
}

static const struct config *
read_again(const struct reload *reload)
{
        const struct config *first = current_first(reload->current);
        struct config *next = config_load_telling(first->file, log_problem);
        struct error error;

        if (next == NULL) {
                reload_log_refused(first, "the configuration has errors");
                return NULL;
        }
        restart_needed(first, next, log_restart_needed, NULL);
        if (check(reload, next, &error) == 0)
                return next;
        reload_log_refused(first, error.text);
        config_free(next);
        return NULL;
}

static void *
run(void *arg)
{
        struct reload *reload = arg;

        reload->next = read_again(reload);
        atomic_store(&reload->state, RELOAD_DONE);
        reload->done(reload->arg);
        return NULL;
}

void
reload_begin(struct reload *reload, struct current *current, struct probe *probe, void (*done)(void *arg),
             void *arg)
{
        *reload = (struct reload){.current = current, .probe = probe, .done = done, .arg = arg};
        atomic_store(&reload->state, RELOAD_RUNNING);
        if (pthread_create(&reload->thread, NULL, run, reload) == 0)
                return;
        reload_log_refused(current_first(current), "no thread can be started");
        reload->thread = pthread_self();
        atomic_store(&reload->state, RELOAD_DONE);
        done(arg);
}

enum reload_state
reload_state(const struct reload *reload)
{
        return atomic_load(&reload->state);
}

void
reload_cancel(struct reload *reload)
{
        atomic_store(&reload->cancelled, 1);
}

const struct config *
reload_end(struct reload *reload)
{
        const struct config *next;

        if (reload_state(reload) == RELOAD_NONE)
                return NULL;
        if (!pthread_equal(reload->thread, pthread_self()))
                thread_join(reload->thread, "reload");
        next = reload->next;
        reload->next = NULL;
        atomic_store(&reload->state, RELOAD_NONE);
        return next;
}
