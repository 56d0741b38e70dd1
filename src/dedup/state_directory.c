#include "dedup/state_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "base/directory.h"
#include "base/log.h"
#include "base/mem.h"
#include "dedup/run_writer.h"

#define KEY "key"
#define NEW_KEY "key.new"

struct state_directory {
        char *path;
        int fd;
        int lock;
        uint8_t key[STATE_KEY_SIZE];
        uint8_t owner[16];
};

/* Make a key. Returns 0, or -1 with errno set. */
static int
make_key(struct state_directory *directory)
{
        int fd, result = -1;

        if (RAND_priv_bytes(directory->key, STATE_KEY_SIZE) != 1) {
                errno = ENOSYS;
                return -1;
        }
        (void)unlinkat(directory->fd, NEW_KEY, 0);
        fd = directory_create(directory->fd, NEW_KEY, O_WRONLY | O_EXCL);
        if (fd < 0)
                return -1;
        errno = ENOSPC;
        if (write(fd, directory->key, STATE_KEY_SIZE) == STATE_KEY_SIZE && fsync(fd) == 0 &&
            renameat(directory->fd, NEW_KEY, directory->fd, KEY) == 0 && fsync(directory->fd) == 0)
                result = 0;
        (void)close(fd);
        return result;
}

/* Read the key, or make one. Returns 0, or -1 with the reason. */
static int
get_key(struct state_directory *directory, struct error *error)
{
        int fd = openat(directory->fd, KEY, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        uint8_t more;
        int is_whole;

        if (fd < 0 && errno != ENOENT)
                return directory_fail(error, "open the file " KEY " in", directory->path, errno);
        is_whole =
            fd >= 0 && read(fd, directory->key, STATE_KEY_SIZE) == STATE_KEY_SIZE && read(fd, &more, 1) == 0;
        if (fd >= 0)
                (void)close(fd);
        if (is_whole)
                return 0;
        if (fd >= 0)
                log_warning("the key in the state directory has another size than 32 bytes and is replaced; "
                            "the dedup table is read from the log");
        if (make_key(directory) != 0)
                return directory_fail(error, "write the file " KEY " in", directory->path, errno);
        return 0;
}

static int
open_directory(struct state_directory *directory, const char *topic, struct error *error)
{
        uint8_t digest[EVP_MAX_MD_SIZE];
        unsigned len = 0;

        if (directory_make(directory->path, error) != 0)
                return -1;
        directory->fd = open(directory->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (directory->fd < 0)
                return directory_fail(error, "open the directory", directory->path, errno);
        directory->lock = directory_lock(directory->fd);
        if (directory->lock < 0)
                return errno == EWOULDBLOCK
                           ? error_set(error, "%s is in use by another process: give each router its own",
                                       directory->path)
                           : directory_fail(error, "lock the file lock in", directory->path, errno);
        if (get_key(directory, error) != 0)
                return -1;
        if (HMAC(EVP_sha256(), directory->key, STATE_KEY_SIZE, (const unsigned char *)topic, strlen(topic),
                 digest, &len) == NULL)
                return error_set_openssl(error, "HMAC-SHA256 failed");
        memcpy(directory->owner, digest, sizeof(directory->owner));
        (void)unlinkat(directory->fd, RUN_TEMPORARY, 0);
        return 0;
}

struct state_directory *
state_directory_open(const char *path, const char *topic, struct error *error)
{
        struct state_directory *directory = mem_alloc(sizeof(*directory));

        directory->fd = directory->lock = -1;
        directory->path = mem_strdup(path);
        if (open_directory(directory, topic, error) == 0)
                return directory;
        state_directory_close(directory);
        return NULL;
}

void
state_directory_close(struct state_directory *directory)
{
        if (directory == NULL)
                return;
        if (directory->lock >= 0)
                (void)close(directory->lock);
        if (directory->fd >= 0)
                (void)close(directory->fd);
        free(directory->path);
        free(directory);
}

int
state_directory_fd(const struct state_directory *directory)
{
        return directory->fd;
}

const uint8_t *
state_directory_key(const struct state_directory *directory)
{
        return directory->key;
}

const uint8_t *
state_directory_owner(const struct state_directory *directory)
{
        return directory->owner;
}

/* A file that is named like a run. */
struct candidate {
        int64_t from;
        int64_t to;
        char name[RUN_NAME_SIZE];
};

struct candidates {
        struct candidate *items;
        size_t n;
        int is_complete; /* all could be listed */
};

/* Sort by the first offset, the longer ones first. */
static int
compare(const void *a, const void *b)
{
        const struct candidate *x = a, *y = b;

        if (x->from != y->from)
                return x->from < y->from ? -1 : 1;
        return (x->to < y->to) - (x->to > y->to);
}

/* Add a file, if it is named like a run of the partition. */
static void
add_candidate(struct candidates *candidates, const char *name, int32_t partition)
{
        struct candidate found = {0};
        struct run_range range = {.partition = partition};
        struct candidate *items;

        if (sscanf(name, "%*d-%" SCNd64 "-%" SCNd64, &found.from, &found.to) != 2)
                return;
        range.from = found.from;
        range.to = found.to;
        if (strcmp(run_make_name(&range, found.name), name) != 0)
                return;
        items = reallocarray(candidates->items, candidates->n + 1, sizeof(*items));
        if (items == NULL) {
                candidates->is_complete = 0;
                return;
        }
        candidates->items = items;
        items[candidates->n++] = found;
}

/* List the runs of a partition. */
static struct candidates
list(const struct state_directory *directory, int32_t partition)
{
        int fd = openat(directory->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *entries = fd < 0 ? NULL : fdopendir(fd);
        struct candidates candidates = {NULL, 0, 0};
        const struct dirent *entry;

        if (entries == NULL) {
                if (fd >= 0)
                        (void)close(fd);
                return candidates;
        }
        candidates.is_complete = 1;
        while (errno = 0, (entry = readdir(entries)) != NULL)
                add_candidate(&candidates, entry->d_name, partition);
        if (errno != 0)
                candidates.is_complete = 0;
        (void)closedir(entries);
        if (candidates.n > 1)
                qsort(candidates.items, candidates.n, sizeof(*candidates.items), compare);
        return candidates;
}

static void
remove_file(const struct state_directory *directory, const char *name, enum log_level level, const char *why)
{
        char quoted[LOG_QUOTED_SIZE];

        log_line(level, "a file of the state is not used and is deleted file=%s reason=%s", name,
                 log_quote(why, quoted));
        if (unlinkat(directory->fd, name, 0) != 0 && errno != ENOENT)
                log_warning("cannot delete a file of the state file=%s reason=%s", name,
                            log_quote(strerror(errno), quoted));
}

/* Return why a run cannot follow the one before it, NULL for none, or NULL if it can. */
static const char *
misfit(const struct run_range *range, const struct run_range *before, const struct candidate *candidate,
       const struct state_wanted *wanted)
{
        if (range->partition != wanted->partition || range->from != candidate->from ||
            range->to != candidate->to)
                return "it was renamed";
        if (range->complete_from_ms > wanted->complete_ms)
                return "it lacks earlier deliveries";
        if (range->last.offset < wanted->low)
                return "the log begins after it";
        if (before != NULL && memcmp(&range->before, &before->last, sizeof(before->last)) != 0)
                return "it is from another log than the file before it";
        return NULL;
}

/* Return why a file is of no use, judging by its name, as is normal after a crash or a pause; or NULL. */
static const char *
useless(const struct candidate *candidate, const struct run_range *before, const struct state_wanted *wanted)
{
        if (candidate->to <= wanted->from)
                return "it has expired";
        if (candidate->to > wanted->to)
                return "it reaches beyond the committed offset";
        if (before == NULL ? candidate->from > wanted->from : candidate->from != before->to)
                return "it does not adjoin the others";
        return NULL;
}

/* Return a run for a candidate if it continues the runs, or NULL with the reason. */
static struct run *
open_next(const struct state_directory *directory, const struct candidate *candidate,
          const struct run_range *before, const struct state_wanted *wanted, struct error *error)
{
        const char *fault;
        struct run *run;

        run = run_open(directory->fd, candidate->name, directory->owner, error);
        if (run == NULL)
                return NULL;
        fault = misfit(&run_header(run)->range, before, candidate, wanted);
        if (fault == NULL)
                return run;
        (void)error_set(error, "%s", fault);
        run_free(run);
        return NULL;
}

struct run **
state_directory_load(struct state_directory *directory, const struct state_wanted *wanted, size_t *n)
{
        struct candidates candidates = list(directory, wanted->partition);
        struct run **runs = candidates.n == 0 ? NULL : calloc(candidates.n, sizeof(struct run *));
        const struct run_range *before = NULL;

        *n = 0;
        for (size_t i = 0; runs != NULL && i < candidates.n; i++) {
                const struct candidate *candidate = &candidates.items[i];
                const char *why = useless(candidate, before, wanted);
                struct error error;
                struct run *run;

                if (why != NULL) {
                        remove_file(directory, candidate->name, LOG_LEVEL_INFO, why);
                        continue;
                }
                run = open_next(directory, candidate, before, wanted, &error);
                if (run == NULL) {
                        remove_file(directory, candidate->name, LOG_LEVEL_WARNING, error.text);
                        continue;
                }
                runs[(*n)++] = run;
                before = &run_header(run)->range;
        }
        free(candidates.items);
        if (*n > 0)
                return runs;
        free(runs);
        return NULL;
}

size_t
state_directory_discard(struct state_directory *directory, int32_t partition, int *is_done)
{
        struct candidates candidates = list(directory, partition);
        size_t n = candidates.n;

        *is_done = candidates.is_complete;
        for (size_t i = 0; i < n; i++) {
                if (unlinkat(directory->fd, candidates.items[i].name, 0) != 0 && errno != ENOENT)
                        *is_done = 0;
        }
        free(candidates.items);
        return n;
}

void
state_directory_remove(struct state_directory *directory, const struct run *run)
{
        (void)unlinkat(directory->fd, run_name(run), 0);
}
