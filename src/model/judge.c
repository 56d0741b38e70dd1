#include "model/judge.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "model/digest.h"
#include "model/release.h"
#include "model/reverification.h"

struct judge {
        const struct event_rules *const *rules;
        size_t n_rules;
        const struct topic_table *topics;
        struct digest *digest;
        struct decoder *decoder;
        struct decoded decoded;
};

static const char *const reason_names[QUARANTINE_N_REASONS] = {
    [QUARANTINE_MALFORMED_JSON] = "malformed-json",
    [QUARANTINE_MISSING_KIND] = "missing-kind",
    [QUARANTINE_UNKNOWN_KIND] = "unknown-kind",
    [QUARANTINE_INVALID_FIELD] = "invalid-field",
    [QUARANTINE_CONFLICTING_BODY] = "conflicting-body",
    [QUARANTINE_REPLAYED_SIGNATURE] = "replayed-signature",
    [QUARANTINE_UNKNOWN_SOURCE] = "unknown-source",
    [QUARANTINE_UNVERIFIED] = "unverified",
    [QUARANTINE_SPOOLED_TOO_LONG] = "spooled-too-long",
    [QUARANTINE_UNPUBLISHABLE] = "unpublishable",
};

const char *
judge_reason_name(enum quarantine_reason reason)
{
        return reason_names[reason];
}

struct judge *
judge_new(const struct event_rules *const *rules, size_t n, const struct topic_table *topics,
          const uint8_t *key)
{
        struct judge *judge = calloc(1, sizeof(*judge));

        if (judge == NULL)
                return NULL;
        judge_set_rules(judge, rules, n, topics);
        judge->digest = digest_new(key);
        judge->decoder = decoder_new();
        if (judge->digest == NULL || judge->decoder == NULL) {
                judge_free(judge);
                return NULL;
        }
        return judge;
}

void
judge_free(struct judge *judge)
{
        if (judge == NULL)
                return;
        digest_free(judge->digest);
        decoder_free(judge->decoder);
        free(judge);
}

void
judge_set_rules(struct judge *judge, const struct event_rules *const *rules, size_t n,
                const struct topic_table *topics)
{
        judge->rules = rules;
        judge->n_rules = n;
        judge->topics = topics;
}

/* Return whether a receiver marked the record as a replay and no administrator has released it. */
static int
is_replay(const struct record *record)
{
        return record->replay_of.len > 0 && record->released.len == 0;
}

/*
 * Marks for identities. A record that must not occupy the delivery-id that it claims has a marked identity,
 * which includes the body, so that its duplicates are still recognised.
 */
#define MARK_REPLAY "replay"
#define MARK_UNVERIFIED "unverified"
/*
 * A record that was routed before and fails verification when it is restored. It may have been published, if
 * its secret has since been removed or the tolerance has since been reduced.
 */
#define MARK_DOUBTFUL "doubtful"

/* Compute an identity. mark is NULL for a record that occupies its delivery-id. */
static int
compute(struct judge *judge, const struct record *record, const char *mark, uint64_t body,
        uint8_t identity[DEDUP_IDENTITY_SIZE])
{
        return mark == NULL ? digest_identity(judge->digest, record, identity)
                            : digest_marked(judge->digest, record, mark, body, identity);
}

static int
check(struct judge *judge, struct dedup *dedup, const struct record *record, const char *mark, uint64_t body,
      enum dedup_answer *answer)
{
        uint8_t identity[DEDUP_IDENTITY_SIZE];

        if (compute(judge, record, mark, body, identity) != 0)
                return -1;
        return dedup_check(dedup, identity, body, record->offset, record->timestamp_ms, answer);
}

/* Treat a new record as a duplicate if an earlier one with its body has this other identity. */
static int
find_other(struct judge *judge, struct dedup *dedup, const struct record *record, const char *mark,
           uint64_t body, enum dedup_answer *answer)
{
        uint8_t identity[DEDUP_IDENTITY_SIZE];
        enum dedup_answer other;

        if (compute(judge, record, mark, body, identity) != 0 ||
            dedup_find(dedup, identity, body, record->offset, record->timestamp_ms, &other) != 0)
                return -1;
        if (other == DEDUP_REPEAT)
                *answer = DEDUP_REPEAT;
        return 0;
}

/* A record without a key is not from a receiver; it has no identity and is always new. */
static int
check_repeat(struct judge *judge, struct dedup *dedup, const struct record *record,
             const struct verdict *verdict, enum dedup_answer *answer)
{
        int is_unverified = verdict->action == VERDICT_QUARANTINE;
        uint64_t body;

        *answer = DEDUP_NEW;
        if (record->key.len == 0)
                return 0;
        if (digest_body(judge->digest, record, &body) != 0)
                return -1;
        if (is_unverified)
                return check(judge, dedup, record, MARK_UNVERIFIED, body, answer);
        if (check(judge, dedup, record, is_replay(record) ? MARK_REPLAY : NULL, body, answer) != 0)
                return -1;
        /* The delivery with this id has been decided already; there is no use in quarantining its replay. */
        if (*answer == DEDUP_NEW && is_replay(record) &&
            find_other(judge, dedup, record, NULL, body, answer) != 0)
                return -1;
        /* It may have been published before the configuration changed. */
        if (*answer == DEDUP_NEW && dedup_has_doubtful(dedup))
                return find_other(judge, dedup, record, MARK_DOUBTFUL, body, answer);
        return 0;
}

static int
remember(struct judge *judge, struct dedup *dedup, const struct record *record, const char *mark,
         uint64_t body)
{
        uint8_t identity[DEDUP_IDENTITY_SIZE];

        if (compute(judge, record, mark, body, identity) != 0)
                return -1;
        return dedup_remember(dedup, identity, body, record->offset, record->timestamp_ms);
}

static void quarantine(struct verdict *verdict, enum quarantine_reason reason, const char *format, ...)
    PRINTF_LIKE(3, 4);

static void
quarantine(struct verdict *verdict, enum quarantine_reason reason, const char *format, ...)
{
        va_list args;
        size_t len;

        verdict->action = VERDICT_QUARANTINE;
        verdict->reason = reason;
        va_start(args, format);
        (void)vsnprintf(verdict->detail, sizeof(verdict->detail), format, args);
        va_end(args);
        /* The text may have been truncated within a character. */
        len = strlen(verdict->detail);
        while (len > 0 && !text_is_utf8(verdict->detail, len))
                verdict->detail[--len] = '\0';
}

/* Return how many bytes of a text to show in a detail. */
static int
shown_len(struct span text)
{
        return text.len < 200 ? (int)text.len : 200;
}

static const struct event_rules *
find_rules(const struct judge *judge, struct span source)
{
        for (size_t i = 0; i < judge->n_rules; i++) {
                const char *name = judge->rules[i]->source;

                if (strlen(name) == source.len && memcmp(name, source.data, source.len) == 0)
                        return judge->rules[i];
        }
        return NULL;
}

/* Return the key of the event's record: the value that the rules name, or else the delivery-id. */
static struct span
choose_key(const struct event_rules *rules, const struct record *record, const struct decoded *decoded)
{
        struct span key = record->key;

        if (rules->key_from == EVENT_KEY_KIND)
                key = decoded->kind;
        else if (rules->key_from == EVENT_KEY_WEBHOOK_ID)
                key = record->webhook_id;
        else if (rules->key_from == EVENT_KEY_POINTER)
                key = decoded->key;
        return key.len > 0 && key.len <= JUDGE_TEXT_MAX ? key : record->key;
}

static void
decide_by_body(struct judge *judge, const struct record *record, enum decode_result result,
               struct verdict *verdict)
{
        const struct decoded *decoded = &judge->decoded;

        if (result == DECODE_MALFORMED_JSON) {
                quarantine(verdict, QUARANTINE_MALFORMED_JSON, "%s", decoded->detail);
                return;
        }
        if (result == DECODE_MISSING_KIND) {
                quarantine(verdict, QUARANTINE_MISSING_KIND, "%s", decoded->detail);
                return;
        }
        if (result == DECODE_INVALID_KIND) {
                quarantine(verdict, QUARANTINE_INVALID_FIELD, "%s", decoded->detail);
                return;
        }
        if (decoded->kind.len == strlen(JUDGE_TEST_KIND) &&
            memcmp(decoded->kind.data, JUDGE_TEST_KIND, decoded->kind.len) == 0) {
                verdict->action = VERDICT_TEST;
                return;
        }
        verdict->topic = topic_table_find(judge->topics, decoded->kind.data, decoded->kind.len);
        if (verdict->topic == NULL) {
                quarantine(verdict, QUARANTINE_UNKNOWN_KIND, "no topic for the kind %.*s",
                           shown_len(decoded->kind), decoded->kind.data);
                return;
        }
        if (decoded->field_fault[0] != '\0') {
                quarantine(verdict, QUARANTINE_INVALID_FIELD, "%s", decoded->field_fault);
                return;
        }
        verdict->action = VERDICT_PUBLISH;
        verdict->kind = decoded->kind;
        verdict->key = choose_key(verdict->rules, record, decoded);
        if (decoded->subject.len > 0 && decoded->subject.len <= JUDGE_TEXT_MAX)
                verdict->subject = decoded->subject;
}

/* Decode the body by the rules of the verdict, and decide. Returns 0, or -1 if memory fails. */
static int
decode_and_decide(struct judge *judge, const struct record *record, struct verdict *verdict)
{
        enum decode_result result;

        if (decoder_run(judge->decoder, verdict->rules, record->body, &judge->decoded, &result) != 0)
                return -1;
        decide_by_body(judge, record, result, verdict);
        return 0;
}

int
judge_decide_body(struct judge *judge, const struct record *record, struct verdict *verdict)
{
        memset(verdict, 0, sizeof(*verdict));
        verdict->rules = find_rules(judge, record->source);
        return decode_and_decide(judge, record, verdict);
}

/* Verify the record if its source has keys, and quarantine it if it is not genuine. */
static enum reverification
verify(const struct record *record, struct verdict *verdict)
{
        struct error why;
        enum reverification result = verdict->rules == NULL
                                         ? REVERIFICATION_GENUINE
                                         : reverification_check(verdict->rules, record, &why);

        if (result == REVERIFICATION_MALFORMED || result == REVERIFICATION_REFUSED)
                quarantine(verdict, QUARANTINE_UNVERIFIED, "%s", why.text);
        return result;
}

int
judge_remember(struct judge *judge, struct dedup *dedup, const struct record *record)
{
        struct verdict verdict = {.rules = find_rules(judge, record->source)};
        enum reverification result;
        uint64_t body;

        if (record->key.len == 0)
                return 0;
        result = verify(record, &verdict);
        if (result == REVERIFICATION_FAILED || digest_body(judge->digest, record, &body) != 0)
                return -1;
        if (result == REVERIFICATION_GENUINE)
                return remember(judge, dedup, record, is_replay(record) ? MARK_REPLAY : NULL, body);
        /* First like judge_decide(): the files of a table know their last record by its first identity. */
        if (remember(judge, dedup, record, MARK_UNVERIFIED, body) != 0)
                return -1;
        if (result != REVERIFICATION_REFUSED)
                return 0;
        dedup_note_doubtful(dedup);
        return remember(judge, dedup, record, MARK_DOUBTFUL, body);
}

/* Return 1 if a receiver or a release may have written the record. Else quarantine it, and return 0. */
static int
admit_origin(const struct record *record, struct verdict *verdict)
{
        struct release_id released;

        if (record->key.len == 0) {
                quarantine(verdict, QUARANTINE_UNKNOWN_SOURCE, "the record has no key");
                return 0;
        }
        if (record->key.len > JUDGE_TEXT_MAX) {
                quarantine(verdict, QUARANTINE_UNKNOWN_SOURCE,
                           "the record's key has %zu bytes, at most %d are possible", record->key.len,
                           JUDGE_TEXT_MAX);
                return 0;
        }
        if (verdict->rules == NULL) {
                quarantine(verdict, QUARANTINE_UNKNOWN_SOURCE, "no source %.*s is configured",
                           shown_len(record->source), record->source.data == NULL ? "" : record->source.data);
                return 0;
        }
        if (record->released.len > 0 && release_id_parse(record->released, &released) != 0) {
                quarantine(verdict, QUARANTINE_UNKNOWN_SOURCE,
                           "gatepost-released is not the ID of a record: %.*s", shown_len(record->released),
                           record->released.data);
                return 0;
        }
        return 1;
}

/*
 * Quarantine a record that was in a receiver's spool for more than half of the dedup window: an earlier copy,
 * or another attempt of the same delivery, may have been routed and forgotten. The other half is for the time
 * between the service's attempts. A record without a valid time of reception may be of any age. Return 1 if
 * the record was quarantined.
 */
static int
quarantine_if_spooled_long(const struct dedup *dedup, const struct record *record, struct verdict *verdict)
{
        uint64_t limit_ms = dedup_window_ms(dedup) / 2;
        int64_t received_ms = 0;

        if (record->spooled.len == 0 || record->released.len > 0)
                return 0;
        if (clock_parse_ms(record->received.data, record->received.len, &received_ms) != 0) {
                quarantine(verdict, QUARANTINE_SPOOLED_TOO_LONG,
                           "it was spooled, and gatepost-received is missing or malformed");
                return 1;
        }
        if (record->timestamp_ms - received_ms <= (int64_t)limit_ms)
                return 0;
        quarantine(verdict, QUARANTINE_SPOOLED_TOO_LONG,
                   "it was spooled for %" PRId64
                   " s, more than half of dedup_window; it may have been published",
                   (record->timestamp_ms - received_ms) / 1000);
        return 1;
}

/* Decide about the first record of an identity. */
static int
decide_new(struct judge *judge, const struct dedup *dedup, const struct record *record,
           struct verdict *verdict)
{
        if (!admit_origin(record, verdict))
                return 0;
        if (is_replay(record)) {
                quarantine(verdict, QUARANTINE_REPLAYED_SIGNATURE,
                           "its signature was first used with the delivery-id %.*s",
                           shown_len(record->replay_of), record->replay_of.data);
                return 0;
        }
        return quarantine_if_spooled_long(dedup, record, verdict) ? 0
                                                                  : decode_and_decide(judge, record, verdict);
}

int
judge_decide(struct judge *judge, struct dedup *dedup, const struct record *record, struct verdict *verdict)
{
        enum dedup_answer answer;

        memset(verdict, 0, sizeof(*verdict));
        verdict->rules = find_rules(judge, record->source);
        if (verify(record, verdict) == REVERIFICATION_FAILED ||
            check_repeat(judge, dedup, record, verdict, &answer) != 0)
                return -1;
        if (answer == DEDUP_REPEAT) {
                verdict->action = VERDICT_DROP;
                return 0;
        }
        if (answer == DEDUP_CONFLICT) {
                quarantine(verdict, QUARANTINE_CONFLICTING_BODY,
                           "an earlier delivery with this id had another body");
                return 0;
        }
        if (verdict->action == VERDICT_QUARANTINE)
                return 0;
        return decide_new(judge, dedup, record, verdict);
}
