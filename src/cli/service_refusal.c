#include "cli/service_refusal.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/text.h"
#include "model/service_answer.h"

#define MAX_TEXT 500 /* bytes of what the service says that are shown, each time */
#define MAX_VIOLATIONS 50

/* What the statuses mean, as the service documents them, and what to do about it. */
static const struct meaning {
        long first, last;
        int status;
        const char *means;
        const char *remedy; /* NULL: what the service says is enough */
} meanings[] = {
    {300, 399, EX_CONFIG, "answers with a redirect, which is not followed", "check base_url in [service]"},
    {400, 400, EX_DATAERR, "finds mistakes in the request", NULL},
    {401, 401, EX_NOPERM, "does not know the API key", "check api_key_file in [service]"},
    {403, 403, EX_NOPERM, "does not let this API key do that",
     "a read-only key cannot change webhooks, and a key for one entity cannot touch another's: use one that "
     "may"},
    {404, 404, EX_CONFIG, "has no such place", "check base_url in [service]: it ends with the version, /v1"},
    {409, 409, EX_DATAERR, "says that this conflicts with what is there",
     "see what is there: gatepost subscriptions list"},
    {422, 422, EX_DATAERR, "refuses it by a rule of the country or product", NULL},
    {429, 429, EX_TEMPFAIL, "has had too many requests", "try again later"},
    {400, 499, EX_DATAERR, "refuses the request", NULL},
    {500, 599, EX_TEMPFAIL, "has failed",
     "try again later; if it stays so, tell its support the request's id"},
    {0, 999, EX_DATAERR, "gives an answer that means nothing here", "check base_url in [service]"},
};

static void
print_text(const char *text)
{
        size_t len = strlen(text);

        text_print(stderr, text, len < MAX_TEXT ? len : MAX_TEXT);
}

static void
print_error(const struct service_error *error)
{
        if (error->code != NULL || error->message != NULL) {
                fprintf(stderr, "    ");
                if (error->code != NULL)
                        print_text(error->code);
                if (error->message != NULL) {
                        fprintf(stderr, "%s", error->code == NULL ? "" : ": ");
                        print_text(error->message);
                }
                fputc('\n', stderr);
        }
        for (size_t i = 0; i < error->n_violations && i < MAX_VIOLATIONS; i++) {
                const struct service_violation *violation = &error->violations[i];

                fprintf(stderr, "    ");
                print_text(violation->field == NULL ? "(no field)" : violation->field);
                fprintf(stderr, ": ");
                print_text(violation->message == NULL ? "(no message)" : violation->message);
                fputc('\n', stderr);
        }
        if (error->n_violations > MAX_VIOLATIONS)
                fprintf(stderr, "    and %zu more\n", error->n_violations - MAX_VIOLATIONS);
        if (error->request_id != NULL) {
                fprintf(stderr, "    request id: ");
                print_text(error->request_id);
                fputc('\n', stderr);
        }
}

static void
print_times(const struct service_answer *answer)
{
        if (answer->n_calls > 1)
                fprintf(stderr, "    tried %zu times\n", answer->n_calls);
}

int
service_refusal(const char *command, const struct service_answer *answer)
{
        const struct meaning *meaning = meanings;
        struct service_error error;

        if (answer->status == 0) {
                fprintf(stderr, "gatepost %s: no usable answer from the service: ", command);
                text_print(stderr, answer->failure, strlen(answer->failure)); /* it may quote a certificate */
                fputc('\n', stderr);
                print_times(answer);
                return EX_UNAVAILABLE;
        }
        while (answer->status < meaning->first || answer->status > meaning->last)
                meaning++;
        fprintf(stderr, "gatepost %s: the service %s (%ld)%s%s\n", command, meaning->means, answer->status,
                meaning->remedy == NULL ? "" : "; ", meaning->remedy == NULL ? "" : meaning->remedy);
        service_error_read(answer->body, answer->len, &error);
        print_error(&error);
        service_error_clear(&error);
        print_times(answer);
        return meaning->status;
}

int
service_succeeded(const struct service_answer *answer)
{
        return answer->status >= 200 && answer->status <= 299;
}
