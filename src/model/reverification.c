#include "model/reverification.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "model/release.h"

#define KEY_MAX 1024
#define HEAD_SIZE (KEY_MAX + 256)
#define TIMESTAMP_SIZE 11 /* with the NUL */

/* Return 1, or 0 after setting why. */
static int
check_age(const struct event_rules *rules, int64_t arrived_ms, int64_t signed_s, const char *what,
          struct error *why)
{
        int64_t age_ms = arrived_ms - signed_s * 1000;
        uint64_t apart_ms = age_ms < 0 ? -(uint64_t)age_ms : (uint64_t)age_ms;
        uint64_t max_ms = rules->tolerance_ms + REVERIFICATION_ALLOWANCE_MS;

        if (apart_ms <= max_ms)
                return 1;
        (void)error_set(why,
                        "%s was signed %" PRIu64 " s %s the record was appended; the limit is %" PRIu64 " s",
                        what, apart_ms / 1000, age_ms < 0 ? "after" : "before", max_ms / 1000);
        return 0;
}

/* Return the result of comparing signatures. */
static enum reverification
judge_signature(const struct event_rules *rules, int matches, const char *header, struct error *why)
{
        if (matches > 0)
                return REVERIFICATION_GENUINE;
        if (matches < 0)
                return REVERIFICATION_FAILED;
        (void)error_set(why, "%s does not match under a secret of [source %s]", header, rules->source);
        return REVERIFICATION_REFUSED;
}

/*
 * Write the text that a receiver signs for a spooled record, which begins differently from all others. Return
 * its length, or 0 if it does not fit.
 */
static size_t
write_spooled(const struct record *record, char head[HEAD_SIZE])
{
        size_t len;

        if (record->key.len > 64 || record->source.len > 64 || record->received.len >= CLOCK_RFC3339_SIZE ||
            record->timestamp.len != TIMESTAMP_SIZE - 1 || record->signature.len > SIGNATURE_HEADER_LEN)
                return 0;
        len = (size_t)snprintf(head, HEAD_SIZE, "spool.%.*s.%.*s.%.*s.%zu.", (int)record->received.len,
                               record->received.data, (int)record->source.len, record->source.data,
                               (int)record->timestamp.len, record->timestamp.data, record->key.len);
        memcpy(head + len, record->key.data, record->key.len);
        return len + record->key.len;
}

/*
 * Return whether a receiver has signed the time of reception, which is then in *received_ms, and only then;
 * -1 if memory or OpenSSL fails.
 */
static int
has_signed_reception(const struct event_rules *rules, const struct record *record, int64_t *received_ms)
{
        uint8_t signature[SIGNATURE_SIZE];
        char head[HEAD_SIZE];
        int64_t claimed_ms;
        size_t len;
        int genuine = 0;

        if (record->spooled.len == 0 || record->spool_signature.data == NULL ||
            signature_parse(record->spool_signature.data, record->spool_signature.len, signature) != 0 ||
            clock_parse_ms(record->received.data, record->received.len, &claimed_ms) != 0)
                return 0;
        len = write_spooled(record, head);
        for (size_t i = 0; i < rules->n_keys && len > 0; i++) {
                int result = signature_matches(rules->keys[i], head, len, record->signature.data,
                                               record->signature.len, signature);

                if (result < 0)
                        return -1;
                genuine |= result;
        }
        if (genuine)
                *received_ms = claimed_ms;
        return genuine;
}

static enum reverification
check_delivery(const struct event_rules *rules, const struct record *record, struct error *why)
{
        uint8_t signature[SIGNATURE_SIZE];
        char timestamp[TIMESTAMP_SIZE];
        int64_t signed_s = record_signed_s(record), arrived_ms = record->timestamp_ms;

        if (signed_s < 0) {
                (void)error_set(why, "gatepost-timestamp is missing or malformed");
                return REVERIFICATION_MALFORMED;
        }
        if (record->signature.data == NULL ||
            signature_parse(record->signature.data, record->signature.len, signature) != 0) {
                (void)error_set(why, "gatepost-signature is missing or malformed");
                return REVERIFICATION_MALFORMED;
        }
        if (has_signed_reception(rules, record, &arrived_ms) < 0)
                return REVERIFICATION_FAILED;
        if (!check_age(rules, arrived_ms, signed_s, "the delivery", why))
                return REVERIFICATION_REFUSED;
        memcpy(timestamp, record->timestamp.data, TIMESTAMP_SIZE - 1);
        timestamp[TIMESTAMP_SIZE - 1] = '\0';
        return judge_signature(rules,
                               signature_verify(rules->keys, rules->n_keys, timestamp, record->body.data,
                                                record->body.len, signature),
                               RECORD_SIGNATURE, why);
}

/*
 * Write the signed text of a release up to the body. It begins differently from the text that the service
 * signs. Return its length, or 0 if it does not fit.
 */
static size_t
write_head(const struct record *record, const char *now, char head[HEAD_SIZE])
{
        int64_t signed_s = record_signed_s(record);
        int len;

        if (record->key.len > KEY_MAX || record->source.len > 64 || record->released.len >= RELEASE_ID_SIZE)
                return 0;
        len = snprintf(head, HEAD_SIZE, "release.%s.%.*s.%.*s.%" PRId64 ".%zu.", now,
                       (int)record->released.len, record->released.data, (int)record->source.len,
                       record->source.data, signed_s, record->key.len);
        memcpy(head + len, record->key.data, record->key.len);
        head[(size_t)len + record->key.len] = '.';
        return (size_t)len + record->key.len + 1;
}

static int
matches(const struct event_rules *rules, const struct record *record, const char *now,
        const uint8_t signature[SIGNATURE_SIZE])
{
        char head[HEAD_SIZE];
        size_t head_len = write_head(record, now, head);
        int genuine = 0;

        for (size_t i = 0; i < rules->n_keys && head_len > 0; i++) {
                int result = signature_matches(rules->keys[i], head, head_len, record->body.data,
                                               record->body.len, signature);

                if (result < 0)
                        return -1;
                genuine |= result;
        }
        return genuine;
}

static enum reverification
check_release(const struct event_rules *rules, const struct record *record, struct error *why)
{
        const struct span text = record->release_signature;
        const struct record when = {.timestamp = {text.data, TIMESTAMP_SIZE - 1}};
        uint8_t signature[SIGNATURE_SIZE];
        char now[TIMESTAMP_SIZE];

        if (text.len != RELEASE_SIGNATURE_SIZE - 1 || record_signed_s(&when) < 0 ||
            text.data[TIMESTAMP_SIZE - 1] != ' ' ||
            signature_parse(text.data + TIMESTAMP_SIZE, SIGNATURE_HEADER_LEN, signature) != 0) {
                (void)error_set(why, "gatepost-release-signature is missing or malformed");
                return REVERIFICATION_MALFORMED;
        }
        if (!check_age(rules, record->timestamp_ms, record_signed_s(&when), "the release", why))
                return REVERIFICATION_REFUSED;
        memcpy(now, text.data, TIMESTAMP_SIZE - 1);
        now[TIMESTAMP_SIZE - 1] = '\0';
        return judge_signature(rules, matches(rules, record, now, signature), RECORD_RELEASE_SIGNATURE, why);
}

enum reverification
reverification_check(const struct event_rules *rules, const struct record *record, struct error *why)
{
        if (rules->n_keys == 0)
                return REVERIFICATION_GENUINE;
        return record->released.len > 0 ? check_release(rules, record, why)
                                        : check_delivery(rules, record, why);
}

int
reverification_sign_release(const struct signature_key *key, const struct record *record, int64_t now_s,
                            char text[RELEASE_SIGNATURE_SIZE])
{
        uint8_t signature[SIGNATURE_SIZE];
        char head[HEAD_SIZE];
        size_t head_len;

        (void)snprintf(text, RELEASE_SIGNATURE_SIZE, "%010" PRId64, now_s);
        head_len = write_head(record, text, head);
        if (head_len == 0 ||
            signature_sign(key, head, head_len, record->body.data, record->body.len, signature) != 0)
                return -1;
        text[TIMESTAMP_SIZE - 1] = ' ';
        signature_format(signature, text + TIMESTAMP_SIZE);
        return 0;
}

int
reverification_sign_spooled(const struct signature_key *key, const struct record *record,
                            char text[SPOOL_SIGNATURE_SIZE])
{
        uint8_t signature[SIGNATURE_SIZE];
        char head[HEAD_SIZE];
        size_t len = write_spooled(record, head);

        if (len == 0 ||
            signature_sign(key, head, len, record->signature.data, record->signature.len, signature) != 0)
                return -1;
        signature_format(signature, text);
        return 0;
}
