#ifndef ROUTER_PARTITION_H
#define ROUTER_PARTITION_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "dedup/dedup.h"
#include "kafka/consumer.h"

/* What keeps a partition from being read. */
enum partition_trouble {
        TROUBLE_NONE,
        TROUBLE_UNREACHABLE, /* Kafka does not answer */
        TROUBLE_NO_LEADER,
        TROUBLE_NO_RECORDS, /* the log has more records, but none arrives */
        TROUBLE_READ,       /* the consumer cannot continue: a corrupt batch, for instance */
        TROUBLE_TOPIC,      /* a topic that its records are published to does not accept them */
        TROUBLE_TRUNCATED,  /* the log was cut off, and nothing has been appended since */
        /* From here on an administrator must decide. */
        TROUBLE_NO_OFFSET,  /* the log has lost its beginning, and the group its offset */
        TROUBLE_BEYOND_END, /* the committed offset is beyond the end of the log */
        TROUBLE_OTHER_LOG,  /* the last routed record is not in the log */
        TROUBLE_N,
};

/* Return no-leader and so on, as in metrics and log; "" for TROUBLE_NONE. */
const char *partition_trouble_name(enum partition_trouble trouble);

enum partition_stage {
        PARTITION_UNPOSITIONED, /* its position must be asked for, once retry_ms has passed */
        PARTITION_ASKED,
        PARTITION_POSITIONED, /* it is being read */
};

/*
 * A range of offsets without a record: control records of a foreign transactional producer, or deleted
 * records.
 */
struct partition_gap {
        int64_t from;
        int64_t to; /* offset of the next record */
};

#define PARTITION_GAPS_MAX 256
#define PARTITION_TOPIC_SIZE 256

/*
 * The router's knowledge of one partition of `deliveries`. Records below decide_from have been routed, by
 * this router or another one: they are only added to the dedup table. Records from decide_from on are
 * decided.
 *
 *   restore_from ... remembered ... | decide_from = committed offset ... decided, open ... | next
 */
struct partition {
        int32_t id;
        int is_followed; /* another router has it: its records are only remembered, up to decide_from */
        struct dedup *dedup;
        int64_t decide_from;
        int64_t next;      /* the offset to read next */
        int64_t reached;   /* the maximum of next; records below it may be read again to confirm the log */
        int64_t last_ms;   /* timestamp of the record before next */
        int64_t routed_ms; /* timestamp of the record before decide_from when it was routed; -1: unknown */
        /*
         * Offset committed by a tool, without the timestamp of the record before it (-1: none); that
         * timestamp, once read.
         */
        int64_t bare_offset;
        int64_t bare_ms;
        int64_t
            expired_from;  /* the dedup table has dropped entries that only records below this offset need */
        int64_t needed_ms; /* records from this time on must be judged; INT64_MAX: timestamps only increase */
        int64_t caught_up_ms;     /* since the epoch: when the lag was last 0; 0: never */
        int64_t high;             /* end of the log, as far as known; -1: unknown */
        struct partition_gap end; /* the last gap seen at the log's end: control records, for instance */
        int64_t
            unread_from; /* all records below had been read when this was last compared with the log's end */
        int64_t
            unread_ms; /* monotonic: since when records beyond unread_from have existed without being read */
        int64_t short_of;   /* the decide_from before which the log was last seen to end; -1: it was not */
        int64_t counted_to; /* unrouted records deleted below this offset have been counted */
        struct consumer_origin
            origin;         /* of its records since its position was found; unknown: any is accepted */
        int64_t changed_at; /* offset of the last record that came from another origin; -1: none */
        int64_t changed_ms; /* its timestamp */
        /*
         * The dedup table also contains records from decide_from up to known_to, of a transaction that was
         * not committed, read from the log known_origin.
         */
        int64_t known_to;
        struct consumer_origin known_origin;
        /*
         * The last offset that this router tried to commit, which may have succeeded although a failure was
         * reported.
         */
        int64_t tried_to; /* -1: none */
        int64_t tried_ms; /* timestamp of the record before it */
        /*
         * Another router has committed meanwhile: the dedup table is valid only if this record is still in
         * the log.
         */
        int64_t anchor; /* its offset; -1: none */
        int64_t anchor_ms;
        int is_continued; /* restoring was interrupted: the log may have been cut off meanwhile */

        enum partition_stage stage;
        enum partition_trouble trouble;
        struct error reason;
        int64_t troubled_ms;   /* monotonic: since when it has had this trouble, if any */
        int64_t retry_ms;      /* monotonic: when to ask for the position */
        int64_t positioned_ms; /* monotonic: when the position was last found */
        int awaits_turn;       /* not read yet: the table of another partition is being restored */
        int is_slow;           /* its table is restored so slowly that others are restored meanwhile */
        int n_retries;         /* since the last commit */
        /*
         * The decide_from before which the log has another record than the routed one, or for which it was
         * refused as beyond the end; -1: none. The timestamp of the routed one; -1: unknown.
         */
        int64_t diverged_at;
        int64_t diverged_ms;
        /* Where the log was truncated, for which the dedup table is being restored; -1: it was not. */
        int64_t cut_at;
        int64_t told_cut_at;              /* the same, when it was logged and counted */
        char topic[PARTITION_TOPIC_SIZE]; /* for TROUBLE_TOPIC; "": none */

        /*
         * Gaps that were seen. They are accepted when they are seen a second time, also over another
         * connection: a broker may close each connection after one answer.
         */
        struct partition_gap gaps[PARTITION_GAPS_MAX];
        size_t n_gaps;
        int64_t scan_next; /* during a scan for gaps ahead: the offset expected next; -1: no scan */
        int64_t scan_ms;   /* monotonic: when the scan began */

        int64_t unpublishable;    /* offset of a record that Kafka refuses to publish; -1: none */
        int64_t unpublishable_ms; /* its timestamp: in another log this offset is another record */
        struct error unpublishable_why;
};

/**
 * partition_void_position(partition, trouble, reason, pause_ms, now_ms):
 * Stop deciding its records until its position has been asked for again, after pause_ms, which doubles with
 * each retry since the last commit (up to 30 s). reason may be NULL for TROUBLE_NONE. now_ms is monotonic.
 */
void partition_void_position(struct partition *partition, enum partition_trouble trouble, const char *reason,
                             int64_t pause_ms, int64_t now_ms);

/* Read from decide_from again: decisions beyond it will not be committed. */
void partition_rewind(struct partition *partition);

/* Clear its trouble. */
void partition_settle(struct partition *partition);

/*
 * Stop waiting for an output topic that did not accept its records: they may now be published to other
 * topics.
 */
void partition_forget_topic(struct partition *partition);

/*
 * Discard the dedup table if it contains records of a transaction that was not committed: their decisions are
 * void, since the rules have changed or the log may have. now_ms is monotonic.
 */
void partition_forget_open(struct partition *partition, int64_t now_ms);

/* The state that is published in metrics, status and log. */
enum partition_state {
        PARTITION_ROUTING,
        PARTITION_RESTORING,
        PARTITION_WAITING,    /* retries by itself */
        PARTITION_REFUSED,    /* an administrator must decide; retries nevertheless */
        PARTITION_UNASSIGNED, /* assigned to no router of the group */
        PARTITION_STANDBY,    /* assigned to another router, and followed */
        PARTITION_N_STATES,
};

const char *partition_state_name(enum partition_state state);

/*
 * A partition is refused only after 10 s of its trouble: a broker that was cut off may report a wrong log for
 * a while.
 */
enum partition_state partition_state(const struct partition *partition, int64_t now_ms);

/*
 * Whether a record at an offset, not below next, may be processed: it is the next one, or the gap before it
 * is known.
 */
int partition_accepts(const struct partition *partition, int64_t offset) MUST_CHECK;

/*
 * Note a record during a scan for gaps. A gap is accepted only when it is seen twice, since a record that the
 * consumer has skipped would be lost. So at a gap, first read on for 10 ms without deciding, to find the gaps
 * ahead; then read again from next. now_ms is monotonic.
 */
void partition_scan(struct partition *partition, int64_t offset, int64_t now_ms);

/* End the scan if it has seen enough. Returns whether it has ended: then read again from next. */
int partition_ends_scan(struct partition *partition, int64_t now_ms) MUST_CHECK;

/*
 * Whether a record comes from the same origin as the records before it since its partition got its position.
 * If there were none, because the log has no record before the committed offset, its leader must not have
 * restarted since.
 */
int partition_expects(const struct partition *partition, int64_t offset,
                      const struct consumer_origin *origin) MUST_CHECK;

/*
 * Whether a record may be processed although it comes from another origin than the one before it: its leader
 * has changed, restarted, or closed the connection. The log may have been truncated between the two records,
 * so the position is asked for again, and the record before this one is read again. Once that one has been
 * confirmed and this one comes again unchanged, both are in the same log, whatever their origins.
 */
int partition_allows_change(const struct partition *partition, int64_t offset,
                            int64_t timestamp_ms) MUST_CHECK;

/* Note a record from another origin that is not allowed yet, after partition_void_position(). */
void partition_note_change(struct partition *partition, int64_t offset, int64_t timestamp_ms);

/*
 * Note the origin of a record that was processed. The first record may have been fetched over an earlier
 * connection than the present one, before its leader restarted with a truncated log: the earliest possible
 * connection counts, so that the next record from another origin is noticed.
 */
void partition_note_origin(struct partition *partition, const struct consumer_origin *origin);

/* Its records are not read for a while: the next one counts as one from another origin. */
void partition_doubt_origin(struct partition *partition);

/* Whether this is the record that cannot be published. */
int partition_is_unpublishable(const struct partition *partition, int64_t offset,
                               int64_t timestamp_ms) MUST_CHECK;

/*
 * Whether a record below decide_from can be the routed one: the timestamp of the last routed record is known.
 */
int partition_recognises(const struct partition *partition, int64_t offset, int64_t timestamp_ms) MUST_CHECK;

/*
 * Whether the log is still the one that the dedup table was restored from, judging by the record at this
 * offset: the anchor, or a later record, which means that the anchor is missing.
 */
int partition_confirms(struct partition *partition, int64_t offset, int64_t timestamp_ms) MUST_CHECK;

/* Discard the dedup table, which belongs to another log; it must be restored. now_ms is monotonic. */
void partition_forget_table(struct partition *partition, int64_t now_ms);

/* Note that all records below next are about to be committed. */
void partition_try(struct partition *partition);

/*
 * The record at an offset, with its timestamp, has been decided or remembered. The record before a committed
 * offset supplies the timestamp that a tool did not commit.
 */
void partition_advance(struct partition *partition, int64_t offset, int64_t timestamp_ms);

/**
 * partition_can_judge(partition, timestamp_ms):
 * Whether the dedup table covers a record of that time. If not, note that the table must be restored from an
 * earlier time; until time has advanced by two windows, no later entry expires.
 */
int partition_can_judge(struct partition *partition, int64_t timestamp_ms) MUST_CHECK;

/* All records below next have been committed, and will not be decided again. */
void partition_committed(struct partition *partition);

/* If a followed partition has been read up to its committed offset: drop what only earlier records need. */
void partition_followed(struct partition *partition);

/* All records below end have been read: there are none from next up to end. */
void partition_note_end(struct partition *partition, int64_t end);

/* Whether there is no record from next up to its committed offset, as far as the end of the log was read. */
int partition_is_at_end(const struct partition *partition);

/*
 * Note whether its leader is missing while it is being read. Returns whether that is new. now_ms is
 * monotonic.
 */
int partition_note_leader(struct partition *partition, int has_leader, int64_t now_ms);

/**
 * partition_note_log_end(partition, end, emptied_ms, now_ms):
 * Note the end of its log, the last stable offset, as the leader reports it; -1: the leader does not answer.
 * Returns whether it is new that no record arrives although the log has more, or may have: nothing was read
 * for 30 s, while the consumer's queue was empty. Control records and aborted records count as read when
 * CONSUMER_END has come after them. A log that two answers in a row report to end before decide_from was
 * truncated or recreated; since the consumer may not notice, the position is asked for again. now_ms is
 * monotonic, as is emptied_ms, when the consumer's queue was last empty.
 */
int partition_note_log_end(struct partition *partition, int64_t end, int64_t emptied_ms, int64_t now_ms);

/* Number of offsets up to high whose records, if any, are not committed as routed. */
int64_t partition_lag(const struct partition *partition);

/* Number of offsets to be read before its records are decided. */
int64_t partition_to_restore(const struct partition *partition);

/* Number of records that are decided and not committed. */
int64_t partition_open(const struct partition *partition);

/**
 * partition_waiting_ms(partition, lag, now_ms):
 * Return the longest time that the oldest of lag waiting records can have waited, in milliseconds; 0 when
 * none waits. It was appended after the last routed record, and after the lag was last 0, which is noted
 * here. now_ms is since the epoch.
 */
int64_t partition_waiting_ms(struct partition *partition, int64_t lag, int64_t now_ms);

#endif
