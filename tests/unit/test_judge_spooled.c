#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "judging.h"
#include "model/reverification.h"
#include "suites.h"

#define HALF_MS (JUDGING_WINDOW / 2)
#define MOST_MS ((300 + 300) * 1000) /* the tolerance and the allowance */
#define DAY_MS 86400000

/* A record that a receiver with a spool wrote, and the texts that it points to. */
struct spooled {
        struct record record;
        char received[CLOCK_RFC3339_SIZE];
        char timestamp[11];
        char signature[SIGNATURE_HEADER_LEN + 1];
        char spool_signature[SPOOL_SIGNATURE_SIZE];
};

static struct signature_key *keys[2];

static void
set_up(void)
{
        judging_setup();
        keys[0] = signature_key_new("the secret of the tests", 23);
        keys[1] = signature_key_new("the secret of another", 21);
}

/* Let the judge verify records, by the first secret. */
static void
set_up_verification(void)
{
        set_up();
        dedup_free(judging_dedup); /* a window in which no record is too old */
        judging_dedup = dedup_new(30 * (uint64_t)DAY_MS, DEDUP_COMPLETE);
        judging_invoicing.keys = keys;
        judging_invoicing.n_keys = 1;
        judging_invoicing.tolerance_ms = 300000;
}

static void
tear_down(void)
{
        signature_key_free(keys[0]);
        signature_key_free(keys[1]);
        judging_teardown();
}

static struct span
span_of(const char *text)
{
        return (struct span){text, strlen(text)};
}

/* Sign the time of reception, as a receiver does. */
static void
sign(struct spooled *spooled, const struct signature_key *key)
{
        ck_assert_int_eq(reverification_sign_spooled(key, &spooled->record, spooled->spool_signature), 0);
        spooled->record.spool_signature = span_of(spooled->spool_signature);
}

/* Make a genuine record that was received this long ago, when the service signed it, and is appended now. */
static void
make_spooled(struct spooled *spooled, struct span delivery_id, int64_t ago_ms)
{
        int64_t received_ms = JUDGING_NOW - ago_ms;
        uint8_t signature[SIGNATURE_SIZE];

        spooled->record = judging_record(delivery_id, ACCEPTED);
        (void)snprintf(spooled->timestamp, sizeof(spooled->timestamp), "%010u",
                       (unsigned)(received_ms / 1000));
        ck_assert_int_eq(signature_compute(keys[0], spooled->timestamp, ACCEPTED.data, ACCEPTED.len,
                                           signature),
                         0);
        signature_format(signature, spooled->signature);
        spooled->record.timestamp = span_of(spooled->timestamp);
        spooled->record.signature = span_of(spooled->signature);
        spooled->record.received = span_of(clock_format_ms(received_ms, spooled->received));
        spooled->record.spooled = SPAN("2026-11-21T03:04:00.000Z");
        sign(spooled, keys[0]);
}

static void
assert_too_long(const struct record *record, const char *detail)
{
        ck_assert_str_eq(judging_reason(record), "spooled-too-long");
        ck_assert_msg(strstr(judging_verdict.detail, detail) != NULL, "%s", judging_verdict.detail);
}

static void
assert_unverified(const struct record *record, const char *detail)
{
        ck_assert_str_eq(judging_reason(record), "unverified");
        ck_assert_msg(strstr(judging_verdict.detail, detail) != NULL, "%s", judging_verdict.detail);
}

START_TEST(test_record_is_spooled_too_long_after_half_the_window)
{
        struct spooled spooled;

        make_spooled(&spooled, SPAN("d-1"), HALF_MS);
        ck_assert_int_eq(judging_decide(&spooled.record), VERDICT_PUBLISH);
        make_spooled(&spooled, SPAN("d-2"), HALF_MS + 1);
        assert_too_long(&spooled.record, "it was spooled for 80 s, more than half of dedup_window");
        make_spooled(&spooled, SPAN("d-3"), 40 * (int64_t)DAY_MS);
        assert_too_long(&spooled.record, "it was spooled for 3456000 s");
        make_spooled(&spooled, SPAN("d-4"), -DAY_MS); /* the receiver's clock is ahead */
        ck_assert_int_eq(judging_decide(&spooled.record), VERDICT_PUBLISH);
}
END_TEST

START_TEST(test_record_that_was_not_spooled_may_have_been_received_at_any_time)
{
        struct spooled spooled;

        make_spooled(&spooled, SPAN("d-1"), DAY_MS);
        spooled.record.spooled = NO_SPAN;
        ck_assert_int_eq(judging_decide(&spooled.record), VERDICT_PUBLISH);
}
END_TEST

START_TEST(test_spooled_record_without_a_valid_time_of_reception_is_quarantined)
{
        static const struct span wrong[] = {{NULL, 0},
                                            SPAN_OF(""),
                                            SPAN_OF("yesterday"),
                                            SPAN_OF("2026-11-21")};
        struct spooled spooled;

        for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
                char id = (char)('a' + i);

                make_spooled(&spooled, (struct span){&id, 1}, 0);
                spooled.record.received = wrong[i];
                assert_too_long(&spooled.record, "gatepost-received is missing or malformed");
        }
}
END_TEST

START_TEST(test_release_of_a_record_that_was_spooled_too_long_is_published)
{
        struct spooled spooled;

        make_spooled(&spooled, SPAN("d-1"), HALF_MS + 1);
        ck_assert_int_eq(judging_decide(&spooled.record), VERDICT_QUARANTINE);
        spooled.record.offset = judging_offset();
        spooled.record.released = SPAN("0-17");
        ck_assert_int_eq(judging_decide(&spooled.record), VERDICT_PUBLISH);
}
END_TEST

START_TEST(test_repeat_is_dropped_however_long_it_was_spooled)
{
        struct record first = judging_record(SPAN("d-1"), ACCEPTED);
        struct spooled spooled;

        ck_assert_int_eq(judging_decide(&first), VERDICT_PUBLISH);
        make_spooled(&spooled, SPAN("d-1"), HALF_MS + 1);
        ck_assert_int_eq(judging_decide(&spooled.record), VERDICT_DROP);
        make_spooled(&spooled, SPAN("d-2"), HALF_MS + 1);
        ck_assert_int_eq(judging_decide(&spooled.record), VERDICT_QUARANTINE);
        spooled.record.offset = judging_offset(); /* drained twice: one copy in quarantine */
        ck_assert_int_eq(judging_decide(&spooled.record), VERDICT_DROP);
}
END_TEST

START_TEST(test_spooled_replay_is_reported_as_a_replay)
{
        struct spooled spooled;

        make_spooled(&spooled, SPAN("d-1"), HALF_MS + 1);
        spooled.record.replay_of = SPAN("d-0");
        ck_assert_str_eq(judging_reason(&spooled.record), "replayed-signature");
}
END_TEST

START_TEST(test_signed_reception_makes_a_stale_record_genuine)
{
        struct spooled spooled;

        make_spooled(&spooled, SPAN("d-1"), DAY_MS);
        ck_assert_int_eq(judging_decide(&spooled.record), VERDICT_PUBLISH);
        judging_invoicing.n_keys = 2; /* the receiver signs with the first of its secrets, here the second */
        make_spooled(&spooled, SPAN("d-2"), DAY_MS);
        sign(&spooled, keys[1]);
        ck_assert_int_eq(judging_decide(&spooled.record), VERDICT_PUBLISH);
}
END_TEST

/* Without a spool a record is the same, but for the signature of its reception. */
START_TEST(test_record_that_was_not_spooled_must_be_fresh_whatever_was_signed)
{
        struct spooled spooled;

        make_spooled(&spooled, SPAN("d-1"), MOST_MS + 1000);
        spooled.record.spooled = NO_SPAN;
        assert_unverified(&spooled.record, "the delivery was signed 601 s before");
        make_spooled(&spooled, SPAN("d-2"), MOST_MS + 1000);
        spooled.record.spooled = spooled.record.spool_signature = NO_SPAN;
        assert_unverified(&spooled.record, "the delivery was signed 601 s before");
        make_spooled(&spooled, SPAN("d-3"), MOST_MS);
        spooled.record.spooled = spooled.record.spool_signature = NO_SPAN;
        ck_assert_int_eq(judging_decide(&spooled.record), VERDICT_PUBLISH);
}
END_TEST

/* Change one thing of a record that is genuine only by the signature of its reception. */
static void
tamper(struct spooled *spooled, int how)
{
        struct record other = spooled->record;

        switch (how) {
        case 0:
                spooled->record.spool_signature = NO_SPAN;
                return;
        case 1:
                spooled->record.spool_signature.len--;
                return;
        case 2: /* of the body, not of the reception */
                spooled->record.spool_signature = spooled->record.signature;
                return;
        case 3:
                spooled->spool_signature[10] = spooled->spool_signature[10] == '0' ? '1' : '0';
                return;
        case 4: /* under a secret that the router does not have */
                sign(spooled, keys[1]);
                return;
        case 5:
                spooled->record.received =
                    span_of(clock_format_ms(JUDGING_NOW - DAY_MS + 1, spooled->received));
                return;
        case 6:
                spooled->record.key = SPAN("d-2");
                return;
        case 7: /* of another source with the same secret */
                other.source = SPAN("billing");
                ck_assert_int_eq(reverification_sign_spooled(keys[0], &other, spooled->spool_signature), 0);
                return;
        default: /* of another delivery with the same identity */
                other.signature =
                    SPAN("sha256=0000000000000000000000000000000000000000000000000000000000000000");
                ck_assert_int_eq(reverification_sign_spooled(keys[0], &other, spooled->spool_signature), 0);
        }
}

START_TEST(test_record_with_a_wrong_signature_of_its_reception_must_be_fresh)
{
        struct spooled spooled;

        make_spooled(&spooled, SPAN("d-1"), DAY_MS);
        tamper(&spooled, _i);
        assert_unverified(&spooled.record, "the delivery was signed 86400 s before the record was appended");
}
END_TEST

/* The receiver accepts no stale delivery, so a signed reception long after the signed timestamp is not its work. */
START_TEST(test_delivery_must_have_been_fresh_when_it_was_received)
{
        struct spooled spooled;

        make_spooled(&spooled, SPAN("d-1"), DAY_MS);
        spooled.record.received = span_of(clock_format_ms(JUDGING_NOW, spooled.received));
        sign(&spooled, keys[0]);
        assert_unverified(&spooled.record, "the delivery was signed 86400 s before");
}
END_TEST

START_TEST(test_signed_reception_does_not_replace_the_signature_of_the_service)
{
        struct spooled spooled;

        make_spooled(&spooled, SPAN("d-1"), DAY_MS);
        spooled.record.body = PENDING;
        assert_unverified(&spooled.record, "gatepost-signature does not match");
}
END_TEST

START_TEST(test_reception_cannot_be_signed_for_texts_that_are_too_long)
{
        static char text[65];
        struct spooled spooled;

        memset(text, 'x', sizeof(text));
        make_spooled(&spooled, SPAN("d-1"), 0);
        spooled.record.key = (struct span){text, sizeof(text)};
        ck_assert_int_eq(reverification_sign_spooled(keys[0], &spooled.record, spooled.spool_signature), -1);
        spooled.record.key.len--;
        ck_assert_int_eq(reverification_sign_spooled(keys[0], &spooled.record, spooled.spool_signature), 0);
        spooled.record.timestamp = SPAN("179523024");
        ck_assert_int_eq(reverification_sign_spooled(keys[0], &spooled.record, spooled.spool_signature), -1);
}
END_TEST

Suite *
suite_judge_spooled(void)
{
        Suite *suite = suite_create("judge_spooled");
        TCase *tcase = tcase_create("too_long"), *verified = tcase_create("verified");

        tcase_add_checked_fixture(tcase, set_up, tear_down);
        tcase_add_test(tcase, test_record_is_spooled_too_long_after_half_the_window);
        tcase_add_test(tcase, test_record_that_was_not_spooled_may_have_been_received_at_any_time);
        tcase_add_test(tcase, test_spooled_record_without_a_valid_time_of_reception_is_quarantined);
        tcase_add_test(tcase, test_release_of_a_record_that_was_spooled_too_long_is_published);
        tcase_add_test(tcase, test_repeat_is_dropped_however_long_it_was_spooled);
        tcase_add_test(tcase, test_spooled_replay_is_reported_as_a_replay);
        suite_add_tcase(suite, tcase);
        tcase_add_checked_fixture(verified, set_up_verification, tear_down);
        tcase_add_test(verified, test_signed_reception_makes_a_stale_record_genuine);
        tcase_add_test(verified, test_record_that_was_not_spooled_must_be_fresh_whatever_was_signed);
        tcase_add_loop_test(verified, test_record_with_a_wrong_signature_of_its_reception_must_be_fresh, 0,
                            9);
        tcase_add_test(verified, test_delivery_must_have_been_fresh_when_it_was_received);
        tcase_add_test(verified, test_signed_reception_does_not_replace_the_signature_of_the_service);
        tcase_add_test(verified, test_reception_cannot_be_signed_for_texts_that_are_too_long);
        suite_add_tcase(suite, verified);
        return suite;
}
