#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/compiler.h"
#include "http/memory_budget.h"
#include "suites.h"

static struct memory_budget *budget; /* of 100 bytes */
static int wake_fd;                  /* of a server that is not a member, but waits */
static const struct address client = {{1}}, other_client = {{2}};

static int
open_wake_fd(void)
{
        int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

        ck_assert_int_ge(fd, 0);
        return fd;
}

static void
set_up(void)
{
        budget = memory_budget_new(100);
        ck_assert_ptr_nonnull(budget);
        wake_fd = open_wake_fd();
}

static void
tear_down(void)
{
        memory_budget_free(budget);
        (void)close(wake_fd);
}

/* Whether it was written to since the last call. */
static int
was_woken(int fd)
{
        eventfd_t n;

        return eventfd_read(fd, &n) == 0;
}

static void
reserve(uint64_t bytes)
{
        ck_assert_int_eq(memory_budget_reserve(budget, bytes), 0);
}

static void
await_as(struct memory_waiter *waiter, uint64_t bytes, uint8_t address)
{
        const struct address each = {{address}};

        ck_assert_int_eq(memory_budget_wait(budget, waiter, bytes, &each, wake_fd), 0);
}

static void
await(struct memory_waiter *waiter, uint64_t bytes)
{
        await_as(waiter, bytes, client.bytes[0]);
}

static int
is_granted(struct memory_waiter *waiter)
{
        return memory_budget_result(budget, waiter) > 0;
}

START_TEST(test_memory_is_reserved_up_to_the_budget)
{
        ck_assert_uint_eq(memory_budget_size(budget), 100);
        reserve(60);
        ck_assert_int_eq(memory_budget_reserve(budget, 41), -1);
        ck_assert_uint_eq(memory_budget_used(budget), 60);
        reserve(40);
        ck_assert_int_eq(memory_budget_reserve(budget, 1), -1);
        memory_budget_release(budget, 60);
        ck_assert_uint_eq(memory_budget_used(budget), 40);
        reserve(60);
        ck_assert_uint_eq(memory_budget_used(budget), 100);
}
END_TEST

START_TEST(test_reservation_over_the_budget_needs_an_empty_budget)
{
        reserve(1);
        ck_assert_int_eq(memory_budget_reserve(budget, 101), -1);
        memory_budget_release(budget, 1);
        reserve(101);
        ck_assert_int_eq(memory_budget_reserve(budget, 1), -1);
        memory_budget_release(budget, 101);
        ck_assert_uint_eq(memory_budget_used(budget), 0);
}
END_TEST

START_TEST(test_waiter_larger_than_the_budget_is_granted_when_it_is_empty)
{
        struct memory_waiter large;

        reserve(10);
        reserve(20);
        await(&large, 1000);
        memory_budget_release(budget, 10);
        ck_assert(!is_granted(&large));
        memory_budget_release(budget, 20);
        ck_assert(is_granted(&large));
        ck_assert_uint_eq(memory_budget_used(budget), 1000);
        memory_budget_release(budget, 1000);
}
END_TEST

START_TEST(test_clients_take_turns)
{
        struct memory_waiter many[3], other;

        reserve(100);
        for (size_t i = 0; i < 3; i++)
                await(&many[i], 50);
        memory_budget_release(budget, 50);
        ck_assert(is_granted(&many[0]));
        ck_assert_int_eq(memory_budget_wait(budget, &other, 50, &other_client, wake_fd), 0);
        memory_budget_release(budget, 50);
        ck_assert(is_granted(&other) && !is_granted(&many[1]));
        memory_budget_release(budget, 50);
        ck_assert(is_granted(&many[1]) && !is_granted(&many[2]));
        memory_budget_stop_waiting(budget, &many[2]);
        memory_budget_release(budget, 100);
}
END_TEST

/* Clients take turns by bytes: one that waits for small bodies gets many for each large body of others. */
START_TEST(test_small_bodies_do_not_wait_for_large_bodies_of_other_clients)
{
        struct memory_waiter large[10], small[40];
        struct memory_budget *whole = budget;

        budget = memory_budget_new(1 << 20);
        ck_assert_ptr_nonnull(budget);
        reserve(1 << 20);
        for (size_t i = 0; i < ARRAY_LEN(large); i++)
                await_as(&large[i], 1 << 19, (uint8_t)(i + 10));
        memory_budget_release(budget, 1 << 19);
        ck_assert(is_granted(&large[0]));
        for (size_t i = 0; i < ARRAY_LEN(small); i++)
                await(&small[i], 10);
        memory_budget_release(budget, 1 << 19);
        for (size_t i = 0; i < ARRAY_LEN(small); i++)
                ck_assert(is_granted(&small[i]));
        ck_assert(!is_granted(&large[1]));
        for (size_t i = 0; i < ARRAY_LEN(large); i++)
                memory_budget_stop_waiting(budget, &large[i]);
        for (size_t i = 0; i < ARRAY_LEN(small); i++)
                memory_budget_stop_waiting(budget, &small[i]);
        memory_budget_free(budget);
        budget = whole;
}
END_TEST

/* Release memory for one of the small waiters. Returns 0 if it is reserved for another waiter. */
static int
serve_one(struct memory_waiter *small, size_t n)
{
        memory_budget_release(budget, 20000);
        for (size_t i = 0; i < n; i++) {
                if (is_granted(&small[i])) {
                        await_as(&small[i], 20000, (uint8_t)(i + 10));
                        return 1;
                }
        }
        return 0;
}

/* It stops waiting, as after two seconds, and waits again, while others are served. */
START_TEST(test_client_that_times_out_keeps_its_place)
{
        struct memory_waiter large, small[4];
        int n_rounds = 0;

        memory_budget_resize(budget, 100000);
        reserve(100000);
        for (size_t i = 0; i < ARRAY_LEN(small); i++)
                await_as(&small[i], 20000, (uint8_t)(i + 10));
        await_as(&large, 80000, 1);
        while (serve_one(small, ARRAY_LEN(small))) {
                ck_assert_int_lt(n_rounds++, 40);
                memory_budget_stop_waiting(budget, &large);
                await_as(&large, 80000, 1);
        }
        memory_budget_release(budget, 60000);
        ck_assert(is_granted(&large));
        memory_budget_stop_waiting(budget, &large);
        for (size_t i = 0; i < ARRAY_LEN(small); i++)
                memory_budget_stop_waiting(budget, &small[i]);
}
END_TEST

START_TEST(test_waiters_of_a_client_are_served_in_order)
{
        struct memory_waiter first, second, third;

        reserve(100);
        await(&first, 50);
        await(&second, 10);
        await(&third, 50);
        memory_budget_release(budget, 30);
        ck_assert(!is_granted(&first) && !is_granted(&second)); /* 30 would suffice for the second */
        memory_budget_release(budget, 30);
        ck_assert(is_granted(&first) && is_granted(&second) && !is_granted(&third));
        ck_assert_uint_eq(memory_budget_used(budget), 100);
        memory_budget_release(budget, 50);
        ck_assert(is_granted(&third));
}
END_TEST

START_TEST(test_reservation_does_not_overtake_waiters)
{
        struct memory_waiter waiter;

        reserve(60);
        await(&waiter, 50);
        ck_assert_int_eq(memory_budget_reserve(budget, 1), -1);
        memory_budget_stop_waiting(budget, &waiter);
        reserve(1);
}
END_TEST

START_TEST(test_grant_wakes_the_server_of_the_waiter)
{
        struct memory_waiter waiter;

        reserve(100);
        await(&waiter, 10);
        ck_assert(!was_woken(wake_fd));
        memory_budget_release(budget, 9);
        ck_assert(!was_woken(wake_fd));
        memory_budget_release(budget, 1);
        ck_assert(was_woken(wake_fd));
        ck_assert(!was_woken(wake_fd));
        ck_assert(is_granted(&waiter));
}
END_TEST

START_TEST(test_waiter_is_granted_at_once_if_memory_is_available)
{
        struct memory_waiter waiter;

        reserve(50);
        await(&waiter, 50);
        ck_assert(is_granted(&waiter));
        ck_assert(was_woken(wake_fd));
        ck_assert_uint_eq(memory_budget_missing(budget), 0);
}
END_TEST

START_TEST(test_members_are_woken_when_the_first_waiter_arrives)
{
        struct memory_waiter first, second, third;
        int members[2] = {open_wake_fd(), open_wake_fd()};

        for (size_t i = 0; i < ARRAY_LEN(members); i++)
                ck_assert_int_eq(memory_budget_join(budget, members[i]), 0);
        reserve(100);
        ck_assert(!was_woken(members[0]) && !was_woken(members[1]));
        await(&first, 10);
        ck_assert(was_woken(members[0]) && was_woken(members[1]));
        await(&second, 10); /* they have been woken already */
        ck_assert(!was_woken(members[0]) && !was_woken(members[1]));
        memory_budget_stop_waiting(budget, &first);
        memory_budget_stop_waiting(budget, &second);
        memory_budget_leave(budget, members[0]);
        await(&third, 10);
        ck_assert(!was_woken(members[0]) && was_woken(members[1]));
        memory_budget_stop_waiting(budget, &third);
        memory_budget_leave(budget, members[1]);
        for (size_t i = 0; i < ARRAY_LEN(members); i++)
                (void)close(members[i]);
}
END_TEST

START_TEST(test_server_is_woken_for_its_own_waiters_only)
{
        struct memory_waiter one, other;
        int members[2] = {open_wake_fd(), open_wake_fd()};

        for (size_t i = 0; i < ARRAY_LEN(members); i++)
                ck_assert_int_eq(memory_budget_join(budget, members[i]), 0);
        reserve(100);
        ck_assert_int_eq(memory_budget_wait(budget, &one, 10, &client, members[0]), 0);
        ck_assert_int_eq(memory_budget_wait(budget, &other, 10, &client, members[1]), 0);
        ck_assert(was_woken(members[0]) && was_woken(members[1])); /* as a waiter arrived */
        memory_budget_release(budget, 10);
        ck_assert(was_woken(members[0]) && !was_woken(members[1]));
        memory_budget_release(budget, 10);
        ck_assert(!was_woken(members[0]) && was_woken(members[1]));
        for (size_t i = 0; i < ARRAY_LEN(members); i++) {
                memory_budget_leave(budget, members[i]);
                (void)close(members[i]);
        }
}
END_TEST

START_TEST(test_number_of_waiters_is_limited)
{
        static struct memory_waiter waiters[MEMORY_WAITERS_MAX];
        struct memory_waiter last;

        reserve(100);
        for (size_t i = 0; i < MEMORY_WAITERS_MAX; i++)
                await(&waiters[i], 1);
        ck_assert_int_eq(memory_budget_wait(budget, &last, 1, &client, wake_fd), -1);
        memory_budget_stop_waiting(budget, &waiters[500]);
        await(&last, 1);
        ck_assert_int_eq(memory_budget_wait(budget, &waiters[500], 1, &client, wake_fd), -1);
        memory_budget_release(budget, 1);
        ck_assert(is_granted(&waiters[0]) && !is_granted(&last));
        for (size_t i = 1; i < MEMORY_WAITERS_MAX; i++)
                memory_budget_stop_waiting(budget, i == 500 ? &last : &waiters[i]);
        ck_assert_uint_eq(memory_budget_used(budget), 100);
        ck_assert_uint_eq(memory_budget_missing(budget), 0);
}
END_TEST

START_TEST(test_waiter_refused_by_a_full_queue_releases_nothing)
{
        static struct memory_waiter others[MEMORY_WAITERS_MAX];
        struct memory_waiter waiter;

        await(&waiter, 60);
        ck_assert(is_granted(&waiter));
        memory_budget_release(budget, 60);
        reserve(100);
        /* Another waiter does not take its place. */
        for (size_t i = 0; i < MEMORY_WAITERS_MAX; i++)
                await_as(&others[i], 100, i == 0 ? 3 : (uint8_t)(1 + i % 2));
        ck_assert_int_eq(memory_budget_wait(budget, &waiter, 60, &client, wake_fd), -1);
        memory_budget_stop_waiting(budget, &waiter);
        ck_assert_uint_eq(memory_budget_used(budget), 100);
}
END_TEST

START_TEST(test_next_waiter_is_granted_when_the_first_stops_waiting)
{
        struct memory_waiter large, small;

        reserve(50);
        await(&large, 60);
        await(&small, 40);
        ck_assert(!is_granted(&small));
        memory_budget_stop_waiting(budget, &large);
        ck_assert(!is_granted(&large) && is_granted(&small));
        ck_assert_uint_eq(memory_budget_used(budget), 90);
}
END_TEST

START_TEST(test_unnoticed_grant_is_returned_when_waiting_stops)
{
        struct memory_waiter first, second;

        reserve(100);
        await(&first, 60);
        await(&second, 60);
        memory_budget_release(budget, 60); /* granted to the first, which does not notice */
        ck_assert_uint_eq(memory_budget_used(budget), 100);
        memory_budget_stop_waiting(budget, &first);
        ck_assert(is_granted(&second));
        ck_assert_uint_eq(memory_budget_used(budget), 100);
        memory_budget_stop_waiting(budget, &first); /* nothing is left to release */
        ck_assert_uint_eq(memory_budget_used(budget), 100);
}
END_TEST

START_TEST(test_larger_budget_serves_waiters)
{
        struct memory_waiter waiter;

        reserve(100);
        await(&waiter, 50);
        ck_assert_uint_eq(memory_budget_missing(budget), 50);
        memory_budget_resize(budget, 149);
        ck_assert(!is_granted(&waiter));
        ck_assert_uint_eq(memory_budget_missing(budget), 1);
        memory_budget_resize(budget, 150);
        ck_assert(is_granted(&waiter));
        ck_assert(was_woken(wake_fd));
        ck_assert_uint_eq(memory_budget_size(budget), 150);
}
END_TEST

START_TEST(test_smaller_budget_keeps_existing_reservations)
{
        reserve(80);
        memory_budget_resize(budget, 50);
        ck_assert_uint_eq(memory_budget_used(budget), 80);
        ck_assert_uint_eq(memory_budget_size(budget), 50);
        ck_assert_int_eq(memory_budget_reserve(budget, 1), -1);
        memory_budget_release(budget, 40);
        ck_assert_int_eq(memory_budget_reserve(budget, 11), -1);
        reserve(10);
}
END_TEST

START_TEST(test_missing_memory_is_that_of_the_first_waiter)
{
        struct memory_waiter first, second;

        ck_assert_uint_eq(memory_budget_missing(budget), 0);
        reserve(90);
        ck_assert_uint_eq(memory_budget_missing(budget), 0);
        await(&first, 30);
        await(&second, 90);
        ck_assert_uint_eq(memory_budget_missing(budget), 20);
        memory_budget_stop_waiting(budget, &first);
        ck_assert_uint_eq(memory_budget_missing(budget), 80);
        memory_budget_stop_waiting(budget, &second);
        ck_assert_uint_eq(memory_budget_missing(budget), 0);
}
END_TEST

Suite *
suite_memory_budget(void)
{
        Suite *suite = suite_create("memory_budget");
        TCase *cases = tcase_create("cases");

        tcase_add_checked_fixture(cases, set_up, tear_down);
        tcase_add_test(cases, test_memory_is_reserved_up_to_the_budget);
        tcase_add_test(cases, test_reservation_over_the_budget_needs_an_empty_budget);
        tcase_add_test(cases, test_waiter_larger_than_the_budget_is_granted_when_it_is_empty);
        tcase_add_test(cases, test_clients_take_turns);
        tcase_add_test(cases, test_small_bodies_do_not_wait_for_large_bodies_of_other_clients);
        tcase_add_test(cases, test_client_that_times_out_keeps_its_place);
        tcase_add_test(cases, test_waiters_of_a_client_are_served_in_order);
        tcase_add_test(cases, test_reservation_does_not_overtake_waiters);
        tcase_add_test(cases, test_grant_wakes_the_server_of_the_waiter);
        tcase_add_test(cases, test_waiter_is_granted_at_once_if_memory_is_available);
        tcase_add_test(cases, test_members_are_woken_when_the_first_waiter_arrives);
        tcase_add_test(cases, test_server_is_woken_for_its_own_waiters_only);
        tcase_add_test(cases, test_number_of_waiters_is_limited);
        tcase_add_test(cases, test_waiter_refused_by_a_full_queue_releases_nothing);
        tcase_add_test(cases, test_next_waiter_is_granted_when_the_first_stops_waiting);
        tcase_add_test(cases, test_unnoticed_grant_is_returned_when_waiting_stops);
        tcase_add_test(cases, test_larger_budget_serves_waiters);
        tcase_add_test(cases, test_smaller_budget_keeps_existing_reservations);
        tcase_add_test(cases, test_missing_memory_is_that_of_the_first_waiter);
        suite_add_tcase(suite, cases);
        return suite;
}
