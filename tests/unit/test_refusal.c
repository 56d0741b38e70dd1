#include <check.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include "http/refusal.h"
#include "suites.h"

/* evhttp, as far as a refusal takes its place. */
struct owner {
        char bytes[256];
        int n_ended;
};

static void
on_event(struct bufferevent *bev, short what, void *arg)
{
        struct owner *owner = arg;

        (void)bev, (void)what;
        owner->n_ended++;
}

/* What evhttp does when it had put off reading on before the connection was refused. */
static void
read_on(struct bufferevent *bev, struct owner *owner)
{
        bufferevent_data_cb read_cb = NULL;

        bufferevent_getcb(bev, &read_cb, NULL, NULL, NULL);
        if (read_cb != NULL)
                read_cb(bev, owner);
}

/* A connection that was the owner's, with its refusal. */
struct refused {
        struct event_base *base;
        struct bufferevent *bev;
        struct evbuffer *input; /* of bev; bytes may be added */
        struct refusal *refusal;
        int client;
};

static struct refused
refuse(struct owner *owner)
{
        struct refused refused = {.base = event_base_new()};
        int pair[2];

        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
        refused.client = pair[1];
        refused.bev = bufferevent_socket_new(refused.base, pair[0], BEV_OPT_CLOSE_ON_FREE);
        bufferevent_setcb(refused.bev, NULL, NULL, on_event, owner);
        refused.input = bufferevent_get_input(refused.bev);
        ck_assert_int_eq(evbuffer_unfreeze(refused.input, 0), 0);
        refused.refusal = refusal_new(refused.bev, 400, "a bare CR or LF", "0123456789abcdef", 1);
        ck_assert_ptr_nonnull(refused.refusal);
        return refused;
}

static void
clear(struct refused *refused)
{
        refusal_free(refused->refusal);
        bufferevent_free(refused->bev);
        (void)close(refused->client);
        event_base_free(refused->base);
}

START_TEST(test_owner_that_reads_on_after_a_refusal_is_not_taken_for_it)
{
        struct owner owner = {.n_ended = 0}, before = owner;
        struct refused refused = refuse(&owner);

        ck_assert_int_eq(evbuffer_add(refused.input, "what came with it", 17), 0);
        read_on(refused.bev, &owner);
        ck_assert_mem_eq(&owner, &before, sizeof(owner));
        ck_assert_uint_eq(evbuffer_get_length(refused.input), 0);

        clear(&refused);
}
END_TEST

START_TEST(test_client_that_sends_on_after_a_refusal_is_cut_off_in_the_end)
{
        static char much[1 << 20];
        struct owner owner = {.n_ended = 0};
        struct refused refused = refuse(&owner);

        for (int i = 0; i < 8; i++) {
                ck_assert_int_eq(evbuffer_add(refused.input, much, sizeof(much)), 0);
                read_on(refused.bev, &owner);
        }
        ck_assert_int_eq(owner.n_ended, 0);
        ck_assert_int_eq(evbuffer_add(refused.input, much, 1), 0);
        read_on(refused.bev, &owner);
        ck_assert_int_eq(owner.n_ended, 1);

        clear(&refused);
}
END_TEST

Suite *
suite_refusal(void)
{
        Suite *suite = suite_create("refusal");
        TCase *cases = tcase_create("cases");

        tcase_add_test(cases, test_owner_that_reads_on_after_a_refusal_is_not_taken_for_it);
        tcase_add_test(cases, test_client_that_sends_on_after_a_refusal_is_cut_off_in_the_end);
        suite_add_tcase(suite, cases);
        return suite;
}
