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

START_TEST(test_owner_that_reads_on_after_a_refusal_is_not_taken_for_it)
{
        struct event_base *base = event_base_new();
        struct owner owner = {.n_ended = 0}, before = owner;
        struct bufferevent *bev;
        struct refusal *refusal;
        struct evbuffer *input;
        int pair[2];

        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
        bev = bufferevent_socket_new(base, pair[0], BEV_OPT_CLOSE_ON_FREE);
        bufferevent_setcb(bev, NULL, NULL, on_event, &owner);
        input = bufferevent_get_input(bev);
        ck_assert_int_eq(evbuffer_unfreeze(input, 0), 0);
        ck_assert_int_eq(evbuffer_add(input, "what came with it", 17), 0);
        refusal = refusal_new(bev, 400, "a bare CR or LF", "0123456789abcdef");
        ck_assert_ptr_nonnull(refusal);

        read_on(bev, &owner);
        ck_assert_mem_eq(&owner, &before, sizeof(owner));
        ck_assert_uint_eq(evbuffer_get_length(input), 0);

        refusal_free(refusal);
        bufferevent_free(bev);
        (void)close(pair[1]);
        event_base_free(base);
}
END_TEST

START_TEST(test_client_that_sends_on_after_a_refusal_is_cut_off_in_the_end)
{
        static char much[1 << 20];
        struct event_base *base = event_base_new();
        struct owner owner = {.n_ended = 0};
        struct bufferevent *bev;
        struct refusal *refusal;
        struct evbuffer *input;
        int pair[2];

        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
        bev = bufferevent_socket_new(base, pair[0], BEV_OPT_CLOSE_ON_FREE);
        bufferevent_setcb(bev, NULL, NULL, on_event, &owner);
        input = bufferevent_get_input(bev);
        ck_assert_int_eq(evbuffer_unfreeze(input, 0), 0);
        refusal = refusal_new(bev, 400, "a bare CR or LF", "0123456789abcdef");
        ck_assert_ptr_nonnull(refusal);
        for (int i = 0; i < 8; i++) {
                ck_assert_int_eq(evbuffer_add(input, much, sizeof(much)), 0);
                read_on(bev, &owner);
        }
        ck_assert_int_eq(owner.n_ended, 0);
        ck_assert_int_eq(evbuffer_add(input, much, 1), 0);
        read_on(bev, &owner);
        ck_assert_int_eq(owner.n_ended, 1);

        refusal_free(refusal);
        bufferevent_free(bev);
        (void)close(pair[1]);
        event_base_free(base);
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
