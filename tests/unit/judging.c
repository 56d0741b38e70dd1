#include "judging.h"

#include <check.h>
#include <string.h>

#include "base/compiler.h"
#include "base/text.h"

struct event_rules judging_invoicing, judging_billing;
struct topic_table *judging_topics;
struct judge *judging_judge;
struct dedup *judging_dedup;
struct verdict judging_verdict;

static const struct event_rules *const all_rules[] = {&judging_invoicing, &judging_billing};
static int64_t next_offset;

void
judging_point(struct pointer *pointer, const char *text)
{
        struct error error;

        pointer_clear(pointer);
        ck_assert_int_eq(pointer_parse(text, pointer, &error), 0);
}

void
judging_setup(void)
{
        judging_invoicing = (struct event_rules){.source = "invoicing"};
        judging_billing = (struct event_rules){.source = "billing"};
        judging_point(&judging_invoicing.kind, "/event");
        judging_point(&judging_billing.kind, "/type");
        judging_topics = topic_table_new();
        topic_table_add_defaults(judging_topics, "p");
        judging_judge = judge_new(all_rules, ARRAY_LEN(all_rules), judging_topics, NULL);
        judging_dedup = dedup_new(JUDGING_WINDOW, DEDUP_COMPLETE);
        ck_assert_ptr_nonnull(judging_judge);
        ck_assert_ptr_nonnull(judging_dedup);
        next_offset = 100;
}

void
judging_teardown(void)
{
        pointer_clear(&judging_invoicing.kind);
        pointer_clear(&judging_invoicing.key);
        pointer_clear(&judging_invoicing.subject);
        pointer_clear(&judging_billing.kind);
        topic_table_free(judging_topics);
        judge_free(judging_judge);
        dedup_free(judging_dedup);
}

struct record
judging_record(struct span delivery_id, struct span body)
{
        return (struct record){.offset = next_offset++,
                               .timestamp_ms = JUDGING_NOW,
                               .key = delivery_id,
                               .body = body,
                               .source = SPAN("invoicing"),
                               .webhook_id = SPAN("w-1")};
}

enum verdict_action
judging_decide(const struct record *record)
{
        memset(&judging_verdict, 0xff, sizeof(judging_verdict));
        ck_assert_int_eq(judge_decide(judging_judge, judging_dedup, record, &judging_verdict), 0);
        return judging_verdict.action;
}

const char *
judging_reason(const struct record *record)
{
        ck_assert_int_eq(judging_decide(record), VERDICT_QUARANTINE);
        ck_assert_str_ne(judging_verdict.detail, "");
        ck_assert(text_is_utf8(judging_verdict.detail, strlen(judging_verdict.detail)));
        return judge_reason_name(judging_verdict.reason);
}

struct record
judging_replay(struct span delivery_id, struct span body)
{
        struct record record = judging_record(delivery_id, body);

        record.replay_of = SPAN("d-0");
        return record;
}

int64_t
judging_offset(void)
{
        return next_offset++;
}
