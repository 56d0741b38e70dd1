#ifndef SPOOL_SPOOL_H
#define SPOOL_SPOOL_H

#include "base/compiler.h"
#include "base/error.h"
#include "config/config.h"
#include "metrics/health.h"
#include "metrics/spool_stats.h"
#include "spool/spool_drain.h"
#include "spool/spool_writer.h"

/*
 * The spool of a process: a directory that it has locked, the thread that writes to it, and the thread that
 * drains it into Kafka.
 */
struct spool;

/*
 * Open and lock the directory, create it if its parent exists, and start writing: deliveries can be put from
 * now on. path outlives the spool. Return NULL with the reason.
 */
struct spool *spool_open(const char *path, uint64_t max_bytes, struct error *error) MUST_CHECK;

/* Start draining. Return 0, or -1 with the reason. The arguments outlive the spool; owner is copied. */
int spool_start_draining(struct spool *spool, const struct config *config, const char *bootstrap,
                         const struct spool_drain_owner *owner, struct error *error) MUST_CHECK;

/* Log that the next process uses another spool, or none, unless this path, which may be NULL, leads to it. */
void spool_warn_if_moved(const struct spool *spool, const char *path);

/* Write what still waits, stop, log what is left, and unlock the directory. NULL is harmless. */
void spool_close(struct spool *spool);

/* Whether nothing is left, or only segments that cannot be drained now, so that the drain tries nothing. */
int spool_is_idle(const struct spool *spool);

/* Whether the drain finds out by itself when Kafka works again. */
int spool_is_trying(const struct spool *spool);

struct spool_writer *spool_writer(const struct spool *spool);
struct spool_stats *spool_stats(struct spool *spool);

/*
 * Return whether both threads make progress within limit_ms, or the drain waits for the disk; else write
 * which one does not.
 */
int spool_is_alive(const struct spool *spool, int64_t limit_ms, char reason[HEALTH_REASON_SIZE]);

#endif
