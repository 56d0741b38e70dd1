#include "daemon/reload.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "config/restart.h"

static void
note_restart_needed(const char *section, const char *name, void *arg)
{
        config_await_restart(arg, section, name);
        log_warning("changed option needs a restart section=%s option=%s", section,
                    name == NULL ? "any" : name);
}

static void
log_moved_deliveries(const struct config *first, const struct config *next)
{
        char quoted[LOG_QUOTED_SIZE];

        if (restart_moves_deliveries(first, next))
                log_warning("deliveries that are not routed before the restart may stay in the present topic "
                            "topic=%s brokers=%s",
                            first->deliveries_topic, log_quote(config_brokers(first), quoted));
}

/* Log the sources that only one of two configurations has. */
static void
log_sources(const struct config *config, const struct config *other, const char *message)
{
        for (size_t i = 0; i < config->n_sources; i++) {
                const char *name = config->sources[i].name;

                if (config_find_source(other, name, strlen(name)) == NULL)
                        log_notice("%s source=%s", message, name);
        }
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
                         "certificate problem file=%s reason=%s",
                         log_quote(config->tls_certificate_file, file), log_quote(error.text, quoted));
}

/* Refuse a new certificate that no client would accept now. */
static int
check_certificate(const struct config *newest, const struct config *next, struct error *error)
{
        const struct certificate *served = newest->certificate;

        if (next->certificate == NULL || (served != NULL && certificate_is_same(served, next->certificate)) ||
            certificate_state(next->certificate, clock_now_ms() / 1000, error) != CERTIFICATE_UNUSABLE)
                return 0;
        return error_prefix(error, "%s", next->tls_certificate_file);
}

/*
 * Duplicates can arrive within twice the tolerance, so dedup_window, which only a restart changes, must cover
 * that.
 */
static int
check_tolerances(const struct config *first, const struct config *next, struct error *error)
{
        for (size_t i = 0; i < next->n_sources; i++) {
                if (first->dedup_window_ms < 2 * next->sources[i].tolerance_ms)
                        return error_set(error,
                                         "the tolerance of [source %s] exceeds half of dedup_window, which "
                                         "needs a restart to change",
                                         next->sources[i].name);
        }
        return 0;
}

static int
check_memory(const struct config *first, const struct config *next, struct error *error)
{
        if (!(first->roles & CONFIG_RECEIVER) || next->max_in_flight >= first->max_body)
                return 0;
        return error_set(error, "max_in_flight is below max_body, which needs a restart to change");
}

void
reload_log_finding(const struct finding *finding)
{
        char file[LOG_QUOTED_SIZE], reason[LOG_QUOTED_SIZE], remedy[LOG_QUOTED_SIZE];
        int is_error = finding->level == FINDING_ERROR;

        log_line(is_error ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING,
                 "configuration %s file=%s line=%zu reason=%s%s%s", is_error ? "error" : "warning",
                 log_quote(finding->subject, file), finding->line, log_quote(finding->text, reason),
                 finding->remedy == NULL ? "" : " remedy=",
                 finding->remedy == NULL ? "" : log_quote(finding->remedy, remedy));
}

void
reload_log_failed(const struct config *first, const char *reason)
{
        char file[LOG_QUOTED_SIZE], quoted[LOG_QUOTED_SIZE];

        log_error("reload failed; keeping the previous configuration file=%s reason=%s",
                  log_quote(first->file, file), log_quote(reason, quoted));
}

/* Check whether next may replace the newest configuration. Return 0, or -1 after setting reload->error. */
static int
check_next(struct reload *reload, struct config *next)
{
        struct error *error = &reload->error;
        const struct config *first = current_first(reload->current), *newest = current_hold(reload->current);
        int result = check_certificate(newest, next, error);

        restart_keep_topics(next, newest);
        /* A smaller max_body needs a restart; until then the topics must accept bodies of the old size. */
        if (next->max_body < first->max_body)
                next->max_body = first->max_body;
        if (result == 0)
                result = check_tolerances(first, next, error);
        if (result == 0)
                result = check_memory(first, next, error);
        if (result == 0 && (first->roles & CONFIG_ROUTER))
                result = probe_check_new_topics(reload->probe, newest, next, &reload->cancelled, error);
        if (result == 0) {
                log_sources(newest, next, "source removed");
                log_sources(next, newest, "source added");
        }
        config_free(newest);
        return result;
}

/* Log what is wrong with the file. The first error is why the reload is refused. */
static void
log_findings(struct reload *reload, const struct findings *findings)
{
        const struct finding *error = findings_first(findings, FINDING_ERROR);

        for (size_t i = 0; i < findings->n; i++)
                reload_log_finding(&findings->items[i]);
        if (error == NULL)
                return;
        (void)error_set(&reload->error, "%s:%zu: %s", error->subject, error->line, error->text);
}

static const struct config *
read_again(struct reload *reload)
{
        const struct config *first = current_first(reload->current);
        struct findings findings = {0};
        struct config *next;

        next = config_load_reporting(first->file, &findings);
        log_findings(reload, &findings);
        findings_clear(&findings);
        if (next == NULL)
                return NULL;
        /* Before check_next() replaces some of these options by those in use. */
        restart_needed(first, next, note_restart_needed, next);
        log_moved_deliveries(first, next);
        if (check_next(reload, next) == 0)
                return next;
        config_free(next);
        return NULL;
}

static void *
run_reload(void *arg)
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
        *reload = (struct reload){
            .current = current, .probe = probe, .done = done, .arg = arg, .begun_s = clock_now_ms() / 1000};
        atomic_store(&reload->state, RELOAD_RUNNING);
        if (pthread_create(&reload->thread, NULL, run_reload, reload) == 0)
                return;
        (void)error_set(&reload->error, "cannot start a thread");
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
                process_join(reload->thread, "reload");
        next = reload->next;
        reload->next = NULL;
        atomic_store(&reload->state, RELOAD_NONE);
        return next;
}
