#ifndef ROUTER_PARTITION_H
#define ROUTER_PARTITION_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "kafka/consumer.h"
#include "model/dedup.h"

/* What keeps a partition from being read. */
enum partition_trouble {
        TROUBLE_NONE,
        TROUBLE_UNREACHABLE, /* Kafka does not answer */
        TROUBLE_NO_LEADER,
        TROUBLE_NO_RECORDS, /* the log goes on, and no record comes */
        TROUBLE_READ,       /* the consumer cannot read on: a corrupt batch, for instance */
        TROUBLE_TOPIC,      /* a topic that its records go to does not accept them */
        TROUBLE_TRUNCATED,  /* the log was cut off, and nothing has been appended since */
        /* From here on somebody must decide. */
        TROUBLE_NO_OFFSET,  /* the log has lost its beginning, and the group its offset */
        TROUBLE_BEYOND_END, /* the committed offset lies beyond the end of the log */
        TROUBLE_OTHER_LOG,  /* the last record routed is not in the log */
        TROUBLE_N,
};

/* no-leader and so on, as in metrics and log; "" for TROUBLE_NONE. */
const char *partition_trouble_name(enum partition_trouble trouble);

enum partition_stage {
        PARTITION_UNPLACED, /* its position is to be asked for, once retry_ms has come */
        PARTITION_ASKED,
        PARTITION_PLACED, /* it is read */
};

/* A run of offsets without a record: control records of a foreign transactional producer, or deleted records. */
struct partition_gap {
        int64_t from;
        int64_t to; /* the next record's offset */
};

#define PARTITION_GAPS_MAX 256
#define PARTITION_TOPIC_SIZE 256

/*
 * What a router knows of one partition of `deliveries`. Records below decide_from have been routed, by this router or
 * another: they are only remembered. Records from there on are decided.
 *
 *   restore_from ... remembered ... | decide_from = committed offset ... decided, open ... | next
 */
struct partition {
        int32_t id;
        struct dedup *dedup;
        int64_t decide_from;
        int64_t next;    /* the offset to read next */
        int64_t reached; /* the greatest that next has been; what was read may be read again, to confirm it */
        int64_t last_ms; /* timestamp of the record before next */
        int64_t routed_ms; /* that of the record before decide_from when it was routed; -1: not known */
        int64_t
            bare_offset; /* committed by a tool, without the timestamp of the record before it; -1: none */
        int64_t bare_ms; /* that timestamp, read since */
        int64_t expired_from;     /* the table has forgotten what only records below this offset need */
        int64_t needed_ms;        /* records from this time on are to be judged; INT64_MAX: timestamps rise */
        int64_t caught_up_ms;     /* since the epoch: when no record was seen to wait last; 0: never */
        int64_t high;             /* the log's end, as far as is known; -1: not known */
        struct partition_gap end; /* the last that was seen at the log's end: control records, for instance */
        int64_t unread_from;      /* all below had been read when that was last compared with the log's end */
        int64_t unread_ms;  /* monotonic: since when the log has gone on from there without being read */
        int64_t short_of;   /* the decide_from before which the log was last seen to end; -1: it was not */
        int64_t counted_to; /* records below were counted, if they had been deleted before they were routed */
        struct consumer_origin origin; /* of its records since it was placed; none: any will do */
        int64_t changed_at;            /* offset of the record that had another one last; -1: none */
        int64_t changed_ms;            /* its timestamp */
        /* The table also knows records from decide_from up to this offset, of a transaction that was not committed, */
        int64_t known_to;
        struct consumer_origin known_origin; /* from this log */
        /* What this router tried to commit last, which may have been done although it was reported to have failed. */
        int64_t tried_to; /* -1: nothing */
        int64_t tried_ms; /* timestamp of the record before it */
        /* Another router has committed meanwhile: the table serves only if this record is still in the log. */
        int64_t witness; /* its offset; -1: none */
        int64_t witness_ms;

        enum partition_stage stage;
        enum partition_trouble trouble;
        struct error reason;
        int64_t troubled_ms; /* monotonic: since when it has had this trouble, if it has any */
        int64_t retry_ms;    /* monotonic: when to ask for the position */
        int64_t placed_ms;   /* monotonic: when that was found last */
        int n_retries;       /* since the last commit */
        int64_t
            diverged_at; /* the decide_from before which another record stood than the one routed; -1: none */
        int64_t cut_at;  /* where the log was cut off, for which the table is being filled; -1: it was not */
        char topic[PARTITION_TOPIC_SIZE]; /* TROUBLE_TOPIC: which; "": none */

        /*
         * Gaps that were seen, and are accepted when they are seen again, also over another connection: a broker may send no
         * two answers over one.
         */
        struct partition_gap gaps[PARTITION_GAPS_MAX];
        size_t n_gaps;
        int64_t scan_next; /* while looking for gaps ahead: the offset to see next; -1: not looking */
        int64_t scan_ms;   /* monotonic: when that began */

        int64_t unpublishable;    /* offset of a record that cannot be published; -1: none */
        int64_t unpublishable_ms; /* its timestamp: in another log it is another record */
        struct error unpublishable_why;
};

/* The partitions that a router has been assigned, in no order. */
struct partition_list {
        struct partition **items;
        size_t n;
};

/* The partition with this id, or NULL. It becomes the first, where the next call looks first: records come in runs. */
struct partition *partition_find(struct partition_list *list, int32_t id);

/* Add a partition without a table or a position. Returns NULL when memory fails. */
struct partition *partition_add(struct partition_list *list, int32_t id) MUST_CHECK;

/* Forget one and its table. The last takes its place. */
void partition_remove(struct partition_list *list, struct partition *partition);
void partition_clear(struct partition_list *list);

/**
 * partition_unplace(partition, trouble, reason, pause_ms, now_ms):
 * Stop deciding its records until its position has been asked for anew, after pause_ms, or longer when that has happened several
 * times since the last commit (up to 30 s). The reason may be NULL for TROUBLE_NONE. now_ms is monotonic.
 */
void partition_unplace(struct partition *partition, enum partition_trouble trouble, const char *reason,
                       int64_t pause_ms, int64_t now_ms);

/* Read from decide_from again: what was decided beyond it is not to be committed. */
void partition_rewind(struct partition *partition);

/* Its trouble is over. */
void partition_settle(struct partition *partition);

/* Its records may go to other topics now: no more wait for the one that did not accept them. */
void partition_forget_topic(struct partition *partition);

/*
 * A table that knows records of a transaction that was not committed is filled anew: their decisions no longer hold, since the
 * rules have changed or the log may have. now_ms is monotonic.
 */
void partition_forget_open(struct partition *partition, int64_t now_ms);

/* What others see of it. */
enum partition_state {
        PARTITION_ROUTING,
        PARTITION_RESTORING,
        PARTITION_WAITING,    /* asks again by itself */
        PARTITION_REFUSED,    /* somebody must decide; it asks again nevertheless */
        PARTITION_UNASSIGNED, /* no router of the group has it */
        PARTITION_N_STATES,
};

const char *partition_state_name(enum partition_state state);

/* A partition is refused only when its trouble has lasted for 10 s: a broker that was cut off may lie for a while. */
enum partition_state partition_state(const struct partition *partition, int64_t now_ms);

/* Whether a record at an offset, not below next, may be taken: either it is the next one, or the gap before it is known. */
int partition_accepts(const struct partition *partition, int64_t offset) MUST_CHECK;

/*
 * A gap is accepted only when it is seen twice, for a record that the consumer has passed over would be lost. So when one is
 * seen, the log is first read on for 10 ms without deciding anything, to find the gaps ahead; then it is read again from next.
 * now_ms is monotonic.
 */
void partition_scan(struct partition *partition, int64_t offset, int64_t now_ms);

/* Whether enough was looked at. Then the scan has ended: read again from next. */
int partition_ends_scan(struct partition *partition, int64_t now_ms) MUST_CHECK;

/*
 * Whether a record comes from where those before it came from since its partition was placed. Where there is none, because the log has
 * no record before the committed offset, its leader must not have started again since.
 */
int partition_expects(const struct partition *partition, int64_t offset,
                      const struct consumer_origin *origin) MUST_CHECK;

/*
 * Whether a record may be taken although it comes from elsewhere than the one before it: its leader has changed or started again, or
 * closed the connection. The log may have been cut off between the two, so that the position is asked for again,
 * and the record before this one is read again. When that one has been confirmed and then this one comes again, just as it was, both
 * stand in the same log, wherever they come from.
 */
int partition_allows_change(const struct partition *partition, int64_t offset,
                            int64_t timestamp_ms) MUST_CHECK;

/* Note that it does not yet, after partition_unplace(). */
void partition_note_change(struct partition *partition, int64_t offset, int64_t timestamp_ms);

/*
 * Note where a record came from that was taken. The first may have been fetched over an earlier connection than there is now, before its
 * leader started again with a log that was cut off: the earliest counts, so that the next record from elsewhere is noticed.
 */
void partition_note_origin(struct partition *partition, const struct consumer_origin *origin);

/* Whether a record is the one that cannot be published. */
int partition_is_unpublishable(const struct partition *partition, int64_t offset,
                               int64_t timestamp_ms) MUST_CHECK;

/* Whether a record below decide_from can be the one that was routed: the last of them has a known timestamp. */
int partition_recognises(const struct partition *partition, int64_t offset, int64_t timestamp_ms) MUST_CHECK;

/*
 * Whether the log is still the one that the table was filled from, as far as the record at this offset shows: the witness, or one
 * behind it, which means that the witness is missing.
 */
int partition_confirms(struct partition *partition, int64_t offset, int64_t timestamp_ms) MUST_CHECK;

/* The table is of another log: it is to be filled anew. now_ms is monotonic. */
void partition_forget_table(struct partition *partition, int64_t now_ms);

/* Note what is about to be committed: all records below next. */
void partition_try(struct partition *partition);

/*
 * The record at an offset, with its timestamp, has been decided or remembered. That before a committed offset tells what a
 * tool did not commit with it.
 */
void partition_advance(struct partition *partition, int64_t offset, int64_t timestamp_ms);

/**
 * partition_can_judge(partition, timestamp_ms):
 * Whether the table knows all that a record at that time needs. If not, it is noted that the table must be restored from
 * an earlier time; until time has moved on by two windows nothing that is younger is forgotten again.
 */
int partition_can_judge(struct partition *partition, int64_t timestamp_ms) MUST_CHECK;

/* All records below next have been committed: they will not be decided again. */
void partition_committed(struct partition *partition);

/* All records below end have been read: from next on there are none. */
void partition_note_end(struct partition *partition, int64_t end);

/* Note whether its leader is missing while it is read. Returns whether that is news. now_ms is monotonic. */
int partition_note_leader(struct partition *partition, int has_leader, int64_t now_ms);

/**
 * partition_note_log_end(partition, end, emptied_ms, now_ms):
 * Note where its log ends, the last stable offset, as the leader says; -1: it does not. Returns whether it is news that no record
 * comes although the log goes on, or may: nothing has been read for 30 s, and then the consumer had no record to give either.
 * Control records and aborted records are read when CONSUMER_END has come after them. A log that ends before decide_from, as
 * two answers in a row say, was cut off or made anew; since the consumer may be unable to tell, its position is asked for
 * again. now_ms is monotonic, and emptied_ms, when the consumer last had no record to give.
 */
int partition_note_log_end(struct partition *partition, int64_t end, int64_t emptied_ms, int64_t now_ms);

/* Number of offsets up to high that may have records which are not committed as routed. */
int64_t partition_lag(const struct partition *partition);

/* Number of records that are decided and not committed. */
int64_t partition_open(const struct partition *partition);

/**
 * partition_waiting_ms(partition, lag, now_ms):
 * How long the oldest of lag waiting records has waited at most, in milliseconds; 0 when none waits. It came after the
 * last that was routed, and after the partition was last seen without any, which is noted here. now_ms is since the epoch.
 */
int64_t partition_waiting_ms(struct partition *partition, int64_t lag, int64_t now_ms);

#endif
