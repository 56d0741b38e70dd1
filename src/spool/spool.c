#include "spool/spool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/rand.h>

#include "base/clock.h"
#include "base/directory.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "spool/spool_directory.h"

struct spool {
        const char *path;
        const char *file; /* the configuration; NULL until spool_start_draining() */
        struct spool_directory *directory;
        struct spool_stats stats;
        uint64_t old; /* the last segment of an earlier process; 0: none */
        struct spool_writer *writer;
        struct spool_drain *drain; /* NULL until spool_start_draining() */
};

/* Note which directory this is, so that others can tell whether a path leads to it. */
static void
identify(struct spool *spool)
{
        struct stat opened;

        spool->stats.directory = spool->path;
        if (fstat(spool_directory_fd(spool->directory), &opened) != 0)
                return;
        spool->stats.device = opened.st_dev;
        spool->stats.inode = opened.st_ino;
}

/* A segment with a number above SPOOL_NUMBER_MAX would be written, and found by no reader. */
#define LAST_NUMBER (SPOOL_NUMBER_MAX - (UINT64_C(1) << 40))

/* Count what an earlier process has left. */
static int
take_stock(struct spool *spool, const char *path, struct error *error)
{
        struct spool_listing listing;
        uint64_t bytes = 0;
        char quoted[LOG_QUOTED_SIZE], name[SPOOL_NAME_SIZE];

        if (spool_directory_list(spool->directory, 1, &listing, error) != 0)
                return -1;
        if (listing.last > LAST_NUMBER) {
                (void)
                    error_set(error,
                              "%s has the segment %s, whose number leaves no room for later ones; move it to "
                              "another directory, and drain that with gatepost spool drain",
                              path, spool_directory_name(listing.last, name));
                spool_listing_free(&listing);
                return -1;
        }
        for (size_t i = 0; i < listing.n_segments; i++)
                bytes += listing.segments[i].size;
        spool->old = listing.last;
        atomic_store(&spool->stats.bytes, bytes);
        atomic_store(&spool->stats.segments, listing.n_segments);
        atomic_store(&spool->stats.uncounted, listing.n_segments);
        atomic_store(&spool->stats.damaged, listing.n_damaged);
        log_info("spool opened segments=%zu bytes=%" PRIu64 " damaged=%zu directory=%s", listing.n_segments,
                 bytes, listing.n_damaged, log_quote(path, quoted));
        spool_listing_free(&listing);
        return 0;
}

#define RANDOM_BITS 20

/*
 * Find the number of the first segment of this process: the time in milliseconds and random bits, or the next
 * number if one in the directory is larger. A number must not be used twice, by another receiver neither: the
 * segments may be moved into one directory, where a second one of the same name would replace the first.
 */
static int
choose_first(const struct spool *spool, uint64_t *first, struct error *error)
{
        uint64_t random, number;

        if (RAND_bytes((unsigned char *)&random, sizeof(random)) != 1)
                return error_set_openssl(error, "there are no random bytes for the numbers of segments");
        number = (uint64_t)clock_now_ms() << RANDOM_BITS | random >> (64 - RANDOM_BITS);
        *first = number > spool->old ? number : spool->old + 1;
        return 0;
}

struct spool *
spool_open(const char *path, uint64_t max_bytes, struct error *error)
{
        struct spool *spool = mem_alloc(sizeof(*spool));
        uint64_t first = 0;

        spool->path = path;
        spool_stats_init(&spool->stats, max_bytes);
        if (directory_make(path, error) == 0)
                spool->directory = spool_directory_open(path, 1, error);
        if (spool->directory != NULL)
                identify(spool);
        if (spool->directory != NULL && take_stock(spool, path, error) == 0 &&
            choose_first(spool, &first, error) == 0)
                spool->writer = spool_writer_new(spool->directory, &spool->stats, first, error);
        if (spool->writer != NULL)
                return spool;
        spool_close(spool);
        return NULL;
}

int
spool_start_draining(struct spool *spool, const struct config *config, const char *bootstrap,
                     const struct spool_drain_owner *owner, struct error *error)
{
        spool->file = config->file;
        spool->drain = spool_drain_new(spool->directory, spool->writer, &spool->stats, spool->old, config,
                                       bootstrap, owner, error);
        return spool->drain == NULL ? -1 : 0;
}

/* The directory, and how to drain it by hand, for the log. */
struct place {
        char directory[LOG_QUOTED_SIZE], remedy[LOG_QUOTED_SIZE];
};

static struct place
describe(const struct spool *spool)
{
        char *path = spool_directory_find(spool->directory);
        char *command = config_command(spool->file == NULL ? CONFIG_DEFAULT_FILE : spool->file);
        char *word = path == NULL ? NULL : text_for_shell(path);
        char *remedy = path == NULL
                           ? mem_printf("put the directory back that was at %s, and drain it", spool->path)
                           : mem_printf("%s spool drain %s", command, word);
        struct place place;

        (void)log_quote(spool->path, place.directory);
        (void)log_quote(remedy, place.remedy);
        free(remedy);
        free(word);
        free(command);
        free(path);
        return place;
}

void
spool_warn_if_moved(const struct spool *spool, const char *path)
{
        struct place place = describe(spool);

        if (path == NULL ||
            (strcmp(path, spool->path) != 0 && !spool_directory_is_at(spool->directory, path)))
                log_warning("a restart drains this spool no more: the configuration has another one, or none "
                            "segments=%" PRIuFAST64 " directory=%s after_the_restart=%s",
                            atomic_load(&spool->stats.segments), place.directory, place.remedy);
}

static void
log_left(const struct spool *spool)
{
        struct place place = describe(spool);
        uint64_t n_segments = atomic_load(&spool->stats.segments);

        if (n_segments > 0 && !spool_directory_is_in_place(spool->directory))
                log_warning(
                    "segments are left in a directory that is out of place; the next start does not drain it "
                    "segments=%" PRIu64 " was=%s otherwise=%s",
                    n_segments, place.directory, place.remedy);
        else if (n_segments > 0)
                log_warning("segments are left in the spool; the next start drains them, if it uses it "
                            "segments=%" PRIu64 " directory=%s otherwise=%s",
                            n_segments, place.directory, place.remedy);
}

void
spool_close(struct spool *spool)
{
        if (spool == NULL)
                return;
        spool_drain_free(spool->drain);
        spool_writer_free(spool->writer);
        if (spool->writer != NULL)
                log_left(spool);
        spool_directory_close(spool->directory);
        free(spool);
}

int
spool_is_idle(const struct spool *spool)
{
        return spool->drain != NULL && spool_drain_state(spool->drain) != SPOOL_DRAIN_WORKING;
}

int
spool_is_trying(const struct spool *spool)
{
        return spool->drain != NULL && spool_drain_is_trying(spool->drain);
}

struct spool_writer *
spool_writer(const struct spool *spool)
{
        return spool->writer;
}

struct spool_stats *
spool_stats(struct spool *spool)
{
        return &spool->stats;
}

int
spool_is_alive(const struct spool *spool, int64_t limit_ms, char reason[HEALTH_REASON_SIZE])
{
        const char *stuck = spool_writer_busy_ms(spool->writer) > limit_ms
                                ? "the spool's disk does not answer"
                            : spool->drain != NULL && !spool_drain_is_alive(spool->drain, limit_ms)
                                ? "the thread that drains the spool is stuck"
                                : NULL;

        if (stuck != NULL)
                (void)snprintf(reason, HEALTH_REASON_SIZE, "%s", stuck);
        return stuck == NULL;
}
