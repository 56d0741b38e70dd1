#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "judging.h"
#include "model/reverification.h"
#include "suites.h"

#define SIGNED_S (JUDGING_NOW / 1000)
#define MOST_S (300 + 300) /* the tolerance and the allowance */

static struct signature_key *keys[2];
static char texts[8][SIGNATURE_HEADER_LEN + 1], timestamps[8][11], releases[8][RELEASE_SIGNATURE_SIZE];
static size_t n_texts;

static void
set_up(void)
{
        judging_setup();
        keys[0] = signature_key_new("the secret of the tests", 23);
        keys[1] = signature_key_new("the secret that is new", 22);
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

/* The next record, signed at this time. */
static struct record
signed_at(int64_t signed_s, const struct signature_key *key, struct span delivery_id, struct span body)
{
        struct record record = judging_record(delivery_id, body);
        uint8_t signature[SIGNATURE_SIZE];
        size_t i = n_texts++ % 8;

        (void)snprintf(timestamps[i], sizeof(timestamps[i]), "%010" PRId64, signed_s);
        ck_assert_int_eq(signature_compute(key, timestamps[i], body.data, body.len, signature), 0);
        signature_format(signature, texts[i]);
        record.timestamp = (struct span){timestamps[i], 10};
        record.signature = (struct span){texts[i], SIGNATURE_HEADER_LEN};
        return record;
}

static struct record
genuine(struct span delivery_id, struct span body)
{
        return signed_at(SIGNED_S, keys[0], delivery_id, body);
}

static struct record
forged(struct span delivery_id, struct span body)
{
        return signed_at(SIGNED_S, keys[1], delivery_id, body);
}

/* Make a release of a record, as gatepost quarantine release does. */
static struct record
release(struct record record, struct span place, int64_t now_s)
{
        char *text = releases[n_texts++ % 8];

        record.offset = judging_offset();
        record.released = place;
        ck_assert_int_eq(reverification_sign_release(keys[0], &record, now_s, text), 0);
        record.release_signature = (struct span){text, RELEASE_SIGNATURE_SIZE - 1};
        return record;
}

static void
assert_unverified(const struct record *record, const char *detail)
{
        ck_assert_str_eq(judging_reason(record), "unverified");
        ck_assert_msg(strstr(judging_verdict.detail, detail) != NULL, "%s", judging_verdict.detail);
}

START_TEST(test_genuine_record_is_published_and_forged_record_quarantined)
{
        struct record record = genuine(SPAN("d-1"), ACCEPTED);

        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
        record = forged(SPAN("d-2"), ACCEPTED);
        assert_unverified(&record, "gatepost-signature does not match");
        record = genuine(SPAN("d-2"), ACCEPTED);
        record.body = PENDING;
        assert_unverified(&record, "gatepost-signature does not match");
        judging_invoicing.n_keys = 2;
        record = forged(SPAN("d-3"), ACCEPTED);
        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
}
END_TEST

START_TEST(test_record_with_missing_or_malformed_headers_is_unverified)
{
        static const struct span wrong[] = {{NULL, 0},
                                            SPAN_OF(""),
                                            SPAN_OF("179523024"),
                                            SPAN_OF("17952302400"),
                                            SPAN_OF("-795230240"),
                                            SPAN_OF("sha256="),
                                            SPAN_OF("sha1=0a1b2c3d")};

        for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
                char id = (char)('a' + i);
                struct record record = genuine((struct span){&id, 1}, ACCEPTED);

                record.timestamp = wrong[i];
                assert_unverified(&record, "gatepost-timestamp is missing or malformed");
                record = genuine((struct span){&id, 1}, PENDING);
                record.signature = wrong[i];
                assert_unverified(&record, "gatepost-signature is missing or malformed");
        }
}
END_TEST

START_TEST(test_record_is_fresh_within_tolerance_and_allowance)
{
        struct record record = signed_at(SIGNED_S - MOST_S, keys[0], SPAN("d-1"), ACCEPTED);

        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
        record = signed_at(SIGNED_S + MOST_S, keys[0], SPAN("d-2"), ACCEPTED);
        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
        record = signed_at(SIGNED_S - MOST_S - 1, keys[0], SPAN("d-3"), ACCEPTED);
        assert_unverified(&record,
                          "the delivery was signed 601 s before the record was appended; the limit is 600 s");
        record = signed_at(SIGNED_S + MOST_S + 1, keys[0], SPAN("d-4"), ACCEPTED);
        assert_unverified(&record, "the delivery was signed 601 s after");
}
END_TEST

static const int64_t far_timestamps[] = {0, 1, INT64_MAX};

START_TEST(test_record_with_an_extreme_timestamp_is_unverified)
{
        struct record record = genuine(SPAN("d-1"), ACCEPTED);

        record.timestamp_ms = far_timestamps[_i];
        assert_unverified(&record, "the limit is ");
}
END_TEST

START_TEST(test_unverified_record_does_not_claim_its_delivery_id)
{
        struct record record;

        for (int i = 0; i < 2; i++) {
                record = forged(SPAN("d-1"), PENDING);
                ck_assert_int_eq(judging_decide(&record), i == 0 ? VERDICT_QUARANTINE : VERDICT_DROP);
                record = forged(SPAN("d-1"), ACCEPTED);
                ck_assert_int_eq(judging_decide(&record), i == 0 ? VERDICT_QUARANTINE : VERDICT_DROP);
        }
        record = genuine(SPAN("d-1"), ACCEPTED);
        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
        record = genuine(SPAN("d-1"), ACCEPTED);
        ck_assert_int_eq(judging_decide(&record), VERDICT_DROP);
        record = forged(SPAN("d-1"), SPAN("{}"));
        assert_unverified(&record, "gatepost-signature does not match");
}
END_TEST

START_TEST(test_remembered_unverified_record_does_not_claim_its_delivery_id)
{
        struct record record = forged(SPAN("d-1"), PENDING);

        ck_assert_int_eq(judge_remember(judging_judge, judging_dedup, &record), 0);
        record = forged(SPAN("d-1"), PENDING);
        ck_assert_int_eq(judging_decide(&record), VERDICT_DROP);
        record = genuine(SPAN("d-1"), ACCEPTED);
        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
}
END_TEST

/* It may have been published under a larger tolerance, which was reduced before the router restarted. */
START_TEST(test_repeat_of_a_remembered_record_now_too_old_is_dropped)
{
        struct record record = signed_at(SIGNED_S - MOST_S - 1, keys[0], SPAN("d-1"), ACCEPTED);

        ck_assert_int_eq(judge_remember(judging_judge, judging_dedup, &record), 0);
        record = genuine(SPAN("d-1"), ACCEPTED);
        ck_assert_int_eq(judging_decide(&record), VERDICT_DROP);
}
END_TEST

/*
 * The secret was removed after the first was published, and the router restarted; the service repeats with
 * the new one.
 */
START_TEST(test_repeat_under_a_new_secret_is_dropped_if_the_first_is_no_longer_verifiable)
{
        struct record first = forged(SPAN("d-1"), ACCEPTED), record;

        ck_assert_int_eq(judge_remember(judging_judge, judging_dedup, &first), 0);
        record = genuine(SPAN("d-1"), ACCEPTED);
        ck_assert_int_eq(judging_decide(&record), VERDICT_DROP);
        record = genuine(SPAN("d-1"), ACCEPTED);
        ck_assert_int_eq(judging_decide(&record), VERDICT_DROP);
}
END_TEST

/* Signatures were verified when the first was published and at the restart, but no longer are. */
START_TEST(test_repeat_is_dropped_after_verification_was_disabled)
{
        struct record record = forged(SPAN("d-1"), ACCEPTED);

        ck_assert_int_eq(judge_remember(judging_judge, judging_dedup, &record), 0);
        judging_invoicing.n_keys = 0;
        record = genuine(SPAN("d-1"), ACCEPTED);
        ck_assert_int_eq(judging_decide(&record), VERDICT_DROP);
}
END_TEST

START_TEST(test_replay_is_verified_before_it_is_reported)
{
        struct record record = forged(SPAN("d-1"), ACCEPTED);

        record.replay_of = SPAN("d-0");
        assert_unverified(&record, "gatepost-signature does not match");
        record = genuine(SPAN("d-1"), ACCEPTED);
        record.replay_of = SPAN("d-0");
        ck_assert_str_eq(judging_reason(&record), "replayed-signature");
}
END_TEST

START_TEST(test_release_is_verified_by_its_own_signature)
{
        struct record old = signed_at(SIGNED_S - 1000000, keys[1], SPAN("d-1"), ACCEPTED), record;

        record = release(old, SPAN("0-17"), SIGNED_S);
        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
        record.offset = judging_offset();
        ck_assert_int_eq(judging_decide(&record), VERDICT_DROP);
        record = release(old, SPAN("0-18"), SIGNED_S - MOST_S);
        ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
        record = release(old, SPAN("0-19"), SIGNED_S - MOST_S - 1);
        assert_unverified(&record, "the release was signed 601 s before");
}
END_TEST

START_TEST(test_captured_record_cannot_be_turned_into_a_release)
{
        char id = (char)('a' + _i);
        struct record record = release(genuine((struct span){&id, 1}, ACCEPTED), SPAN("0-17"), SIGNED_S);
        const char *detail = "gatepost-release-signature does not match";

        switch (_i) {
        case 0:
                ck_assert_int_eq(judging_decide(&record), VERDICT_PUBLISH);
                return;
        case 1:
                record.released = SPAN("0-18");
                break;
        case 2:
                record.key = SPAN("d-2");
                break;
        case 3:
                record.body = PENDING;
                break;
        case 4:
                record.timestamp = SPAN("1795230241");
                break;
        case 5:
                record.release_signature = NO_SPAN;
                detail = "missing or malformed";
                break;
        case 6:
                record.release_signature.len--;
                detail = "missing or malformed";
                break;
        case 7:
                releases[(n_texts - 1) % 8][10] = '.';
                detail = "missing or malformed";
                break;
        default:
                record.release_signature = record.signature;
                detail = "missing or malformed";
        }
        assert_unverified(&record, detail);
}
END_TEST

Suite *
suite_judge_verify(void)
{
        Suite *suite = suite_create("judge_verify");
        TCase *tcase = tcase_create("judge_verify");

        tcase_add_checked_fixture(tcase, set_up, tear_down);
        tcase_add_test(tcase, test_genuine_record_is_published_and_forged_record_quarantined);
        tcase_add_test(tcase, test_record_with_missing_or_malformed_headers_is_unverified);
        tcase_add_test(tcase, test_record_is_fresh_within_tolerance_and_allowance);
        tcase_add_loop_test(tcase, test_record_with_an_extreme_timestamp_is_unverified, 0,
                            ARRAY_LEN(far_timestamps));
        tcase_add_test(tcase, test_unverified_record_does_not_claim_its_delivery_id);
        tcase_add_test(tcase, test_remembered_unverified_record_does_not_claim_its_delivery_id);
        tcase_add_test(tcase, test_repeat_of_a_remembered_record_now_too_old_is_dropped);
        tcase_add_test(tcase, test_repeat_under_a_new_secret_is_dropped_if_the_first_is_no_longer_verifiable);
        tcase_add_test(tcase, test_repeat_is_dropped_after_verification_was_disabled);
        tcase_add_test(tcase, test_replay_is_verified_before_it_is_reported);
        tcase_add_test(tcase, test_release_is_verified_by_its_own_signature);
        tcase_add_loop_test(tcase, test_captured_record_cannot_be_turned_into_a_release, 0, 9);
        suite_add_tcase(suite, tcase);
        return suite;
}
