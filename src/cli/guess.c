#include "cli/guess.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/guess_body.h"
#include "cli/guess_form.h"

#define MAX_BYTES (UINT64_C(1) << 30) /* that are hashed, or changed */
#define BYTES_A_TRY 256               /* what one takes besides its body */

struct search {
        const struct guess_case *subject;
        struct guess_times times;
        uint8_t signature[SIGNATURE_SIZE];
        uint64_t bytes_left;
        struct guess *guess;
};

/* A body that may have been signed, and what was done to it then: the last of that first, NULL: nothing. */
struct candidate {
        const char *body;
        size_t len;
        const char *what[2];
};

static void
add_cause(struct guess *guess, const char *what)
{
        if (what != NULL && *what != '\0')
                guess->causes[guess->n_causes++] = mem_strdup(what);
}

/* Whether there is time for a work on so many bytes. */
static int
can_afford(struct search *search, uint64_t cost)
{
        if (search->bytes_left < cost) {
                search->guess->gave_up = 1;
                return 0;
        }
        search->bytes_left -= cost;
        return 1;
}

/* Whether that is what was signed. */
static int
try(struct search *search, const struct candidate *candidate, size_t secret, size_t time)
{
        const struct guess_secret *used = &search->subject->secrets->items[secret];
        uint64_t cost = candidate->len + BYTES_A_TRY;
        char head[GUESS_TIME_SIZE], text[GUESS_TIME_SIZE];
        size_t len;

        if (!can_afford(search, cost))
                return 0;
        search->guess->n_tried++;
        len = guess_times_head(&search->times, time, head);
        if (signature_matches(used->key, head, len, candidate->body, candidate->len, search->signature) <= 0)
                return 0;
        search->guess->is_found = 1;
        add_cause(search->guess, candidate->what[0]);
        add_cause(search->guess, candidate->what[1]);
        add_cause(search->guess, guess_times_what(&search->times, time, text));
        add_cause(search->guess, used->what);
        return 1;
}

/* A body with everything else as it should be, and with one other thing that is not. */
static int
try_body(struct search *search, const struct candidate *candidate, int may_differ)
{
        const struct guess_secrets *secrets = search->subject->secrets;
        size_t n_times = may_differ ? guess_times_count(&search->times) : 1;

        for (size_t s = 0; s < secrets->n; s++) {
                if ((secrets->items[s].what == NULL || may_differ) && try(search, candidate, s, 0))
                        return 1;
        }
        for (size_t t = 1; t < n_times; t++) {
                for (size_t s = 0; s < secrets->n && secrets->items[s].what == NULL; s++) {
                        if (try(search, candidate, s, t))
                                return 1;
                }
        }
        return 0;
}

/* A body that was changed once, or if may_differ once more, or once with one other thing that is not as it should be. */
static int
try_changed(struct search *search, const struct candidate *from, int may_differ)
{
        for (size_t i = 0; i < guess_body_count(); i++) {
                struct candidate candidate = {.what = {guess_body_what(i), from->what[0]}};
                int is_hit = 0;
                char *body = can_afford(search, from->len)
                                 ? guess_body_undo(i, from->body, from->len, &candidate.len)
                                 : NULL;

                if (body == NULL)
                        continue;
                candidate.body = body;
                if (from->what[0] == NULL)
                        is_hit = try_body(search, &candidate, may_differ);
                else
                        is_hit = try_body(search, &candidate, 0);
                if (!is_hit && may_differ && from->what[0] == NULL)
                        is_hit = try_changed(search, &candidate, 0);
                free(body);
                if (is_hit)
                        return 1;
        }
        return 0;
}

/* Another secret and another timestamp. */
static int
try_both(struct search *search, const struct candidate *candidate)
{
        const struct guess_secrets *secrets = search->subject->secrets;

        for (size_t s = 0; s < secrets->n; s++) {
                for (size_t t = 1; t < guess_times_count(&search->times) && secrets->items[s].what != NULL;
                     t++) {
                        if (try(search, candidate, s, t))
                                return 1;
                }
        }
        return 0;
}

void
guess_find(const struct guess_case *subject, struct guess *guess)
{
        struct search search = {.subject = subject, .bytes_left = MAX_BYTES, .guess = guess};
        const struct candidate as_it_is = {subject->body, subject->len, {NULL, NULL}};
        struct guess_form form;

        memset(guess, 0, sizeof(*guess));
        if (guess_form_read(subject->signature, search.signature, &form) != 0)
                return;
        guess_times_init(&search.times, subject->timestamp, subject->reach);
        /* First what is wrong in one way, then what is in two. */
        if (try_body(&search, &as_it_is, 0) || try_changed(&search, &as_it_is, 0) ||
            try_body(&search, &as_it_is, 1) || try_changed(&search, &as_it_is, 1) ||
            try_both(&search, &as_it_is)) {
                add_cause(guess, form.prefix);
                add_cause(guess, form.digits);
        }
}

void
guess_clear(struct guess *guess)
{
        for (size_t i = 0; i < guess->n_causes; i++)
                free(guess->causes[i]);
        memset(guess, 0, sizeof(*guess));
}
