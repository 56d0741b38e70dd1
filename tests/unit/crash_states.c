#include "crash_states.h"

#include <check.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "disk.h"
#include "scratch.h"
#include "spool/segment.h"
#include "spool/spool_directory.h"
#include "spool_run.h"

/* A name in the directory. */
enum entry { ENTRY_NONE, ENTRY_SEGMENT, ENTRY_ASIDE };

/* A file at some point of the run. */
struct model {
        enum entry entry, synced_entry;
        uint8_t *bytes;
        size_t size, synced;
        size_t gap_from, gap_to; /* a sync of this has failed */
};

/* A file in a state. */
struct state {
        enum entry entry;
        uint8_t *bytes;
        size_t size;
        uint64_t hash;
};

struct checker {
        struct model models[DISK_MAX_FILES];
        struct state states[DISK_MAX_FILES], written[DISK_MAX_FILES];
        uint8_t wanted[RUN_DELIVERIES]; /* answered, and not drained */
        const char *path;
        int fd;
        uint64_t seed;
        uint64_t *hashes; /* of the states that were checked */
        struct crash_found found;
};

static uint32_t
draw(struct checker *checker, size_t below)
{
        checker->seed = checker->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (uint32_t)((checker->seed >> 33) % below);
}

static void
apply(struct checker *checker, const struct disk_op *op)
{
        struct model *model = &checker->models[op->file];

        switch (op->kind) {
        case DISK_CREATE:
                model->entry = ENTRY_SEGMENT;
                break;
        case DISK_WRITE:
                model->bytes = mem_resize(model->bytes, op->offset + op->len, 1);
                memcpy(model->bytes + op->offset, op->bytes, op->len);
                model->size = op->offset + op->len;
                break;
        case DISK_SYNC:
                model->synced = model->size;
                break;
        case DISK_SYNC_FAILED:
                if (model->gap_to == 0)
                        model->gap_from = model->synced;
                model->gap_to = model->size;
                break;
        case DISK_SYNC_DIRECTORY:
                for (unsigned f = 0; f < disk_n_files; f++)
                        checker->models[f].synced_entry = checker->models[f].entry;
                break;
        case DISK_REMOVE:
                model->entry = ENTRY_NONE;
                break;
        case DISK_RENAME:
                model->entry = ENTRY_ASIDE;
                break;
        case DISK_ANSWER: /* it may have been drained before the thread has noted its answer */
                if (checker->wanted[op->answer] == 0)
                        checker->wanted[op->answer] = 1;
                break;
        case DISK_DRAINED:
                checker->wanted[op->answer] = 2;
                break;
        }
}

/* Fill in what a block holds that was not written: zeros, random bytes, or what another segment has there. */
static void
spoil(struct checker *checker, const struct model *model, uint8_t *bytes, size_t from, size_t to,
      unsigned how)
{
        const struct model *other = &checker->models[draw(checker, disk_n_files)];

        memset(bytes + from, 0, to - from);
        if (how == 1) {
                for (size_t i = from; i < to; i++)
                        bytes[i] = (uint8_t)draw(checker, 256);
        } else if (how == 2 && other != model && model->synced > 0 && other->size > from) {
                memcpy(bytes + from, other->bytes + from, (other->size < to ? other->size : to) - from);
        }
}

/* Spoil some blocks. */
static void
spoil_blocks(struct checker *checker, const struct model *model, uint8_t *bytes, size_t from, size_t to)
{
        size_t block = draw(checker, 2) ? 512 : 4096;
        unsigned how = draw(checker, 3), share = 1 + draw(checker, 3);

        for (size_t at = from, end; at < to; at = end) {
                end = (at / block + 1) * block < to ? (at / block + 1) * block : to;
                if (draw(checker, 4) < share)
                        spoil(checker, model, bytes, at, end, how);
        }
}

/* Choose what a crash leaves of the bytes that were not synced. Return the size of the file. */
static size_t
tear(struct checker *checker, const struct model *model, uint8_t *bytes)
{
        size_t left = model->size - model->synced, synced = model->synced;

        if (model->size > 0)
                memcpy(bytes, model->bytes, model->size);
        if (model->gap_to > model->gap_from && draw(checker, 4) > 0)
                spoil_blocks(checker, model, bytes, model->gap_from, model->gap_to);
        if (left == 0)
                return model->size;
        switch (draw(checker, 8)) {
        case 0:
                return synced;
        case 1:
                return model->size;
        case 2:
                return synced + draw(checker, left);
        case 3:
                spoil(checker, model, bytes, synced, model->size, draw(checker, 3));
                return model->size;
        case 4: /* the beginning only; the size is of what was written */
                spoil(checker, model, bytes, synced + draw(checker, left), model->size, 0);
                return model->size;
        case 5:
                spoil_blocks(checker, model, bytes, synced, model->size);
                return synced + 1 + draw(checker, left);
        default:
                spoil_blocks(checker, model, bytes, synced, model->size);
                return model->size;
        }
}

/* Choose a state. Return its hash. */
static uint64_t
choose_state(struct checker *checker)
{
        uint64_t hash = 0;

        for (unsigned f = 0; f < disk_n_files; f++) {
                const struct model *model = &checker->models[f];
                struct state *state = &checker->states[f];

                state->entry = draw(checker, 2) ? model->entry : model->synced_entry;
                if (state->entry == ENTRY_NONE)
                        continue;
                state->bytes = mem_resize(state->bytes, model->size + 1, 1);
                state->size = tear(checker, model, state->bytes);
                state->hash = (uint64_t)state->size << 32 | crc32c_add(0, state->bytes, state->size);
                hash = (hash + f * 4 + state->entry) * UINT64_C(1099511628211) + state->hash;
                hash *= UINT64_C(1099511628211);
        }
        return hash;
}

/* Make the directory have the state, by changing the files that differ. */
static void
write_state(struct checker *checker)
{
        for (unsigned f = 0; f < disk_n_files; f++) {
                const struct state *state = &checker->states[f];
                struct state *written = &checker->written[f];
                char name[SPOOL_NAME_SIZE + 32];
                int fd;

                if (state->entry == written->entry &&
                    (state->entry == ENTRY_NONE || state->hash == written->hash))
                        continue;
                (void)snprintf(name, sizeof(name), "%s.damaged", disk_names[f]);
                if (written->entry == ENTRY_SEGMENT)
                        ck_assert_int_eq(unlinkat(checker->fd, disk_names[f], 0), 0);
                if (written->entry == ENTRY_ASIDE)
                        ck_assert_int_eq(unlinkat(checker->fd, name, 0), 0);
                *written = (struct state){.entry = state->entry, .hash = state->hash};
                if (state->entry == ENTRY_NONE)
                        continue;
                fd = openat(checker->fd, state->entry == ENTRY_ASIDE ? name : disk_names[f],
                            O_WRONLY | O_CREAT | O_EXCL, 0600);
                ck_assert_int_ge(fd, 0);
                ck_assert_int_eq(write(fd, state->bytes, state->size), (ssize_t)state->size);
                ck_assert_int_eq(close(fd), 0);
        }
}

/* Read a segment of a state. */
static void
read_segment(struct checker *checker, uint64_t number, uint8_t *seen, int *is_changed, int *is_damaged)
{
        char name[SPOOL_NAME_SIZE];
        struct error error;
        struct segment_reader *reader =
            segment_reader_open(checker->fd, spool_directory_name(number, name), &error);
        struct segment_summary summary;
        struct segment_record record;

        ck_assert_ptr_nonnull(reader);
        while (segment_reader_next(reader, &record) > 0) {
                int i = run_identify(&record);

                if (i >= 0)
                        seen[i] = 1;
                *is_changed |= i < 0;
        }
        segment_reader_summary(reader, &summary);
        *is_damaged |= summary.damaged_bytes > 0;
        segment_reader_close(reader);
}

/* Read a state as the drain does, and compare it with what was answered. */
static void
check_state(struct checker *checker)
{
        struct error error;
        struct spool_directory *directory = spool_directory_open(checker->path, 0, &error);
        struct spool_listing listing;
        uint8_t seen[RUN_DELIVERIES] = {0};
        int is_changed = 0, is_lost = 0, is_damaged = 0;

        ck_assert_int_eq(spool_directory_list(directory, 0, &listing, &error), 0);
        for (size_t s = 0; s < listing.n_segments; s++)
                read_segment(checker, listing.segments[s].number, seen, &is_changed, &is_damaged);
        spool_listing_free(&listing);
        spool_directory_close(directory);
        for (unsigned i = 0; i < RUN_DELIVERIES; i++)
                is_lost |= checker->wanted[i] == 1 && !seen[i];
        checker->found.lost += (size_t)is_lost;
        checker->found.changed += (size_t)is_changed;
        checker->found.damaged += (size_t)is_damaged;
}

/* Whether a crash leaves one state only. */
static int
is_certain(const struct checker *checker)
{
        for (unsigned f = 0; f < disk_n_files; f++) {
                const struct model *model = &checker->models[f];

                if (model->entry != model->synced_entry ||
                    (model->entry != ENTRY_NONE &&
                     (model->synced < model->size || model->gap_from < model->gap_to)))
                        return 0;
        }
        return 1;
}

static int
by_hash(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

static void
count_different(struct checker *checker)
{
        qsort(checker->hashes, checker->found.states, sizeof(*checker->hashes), by_hash);
        for (size_t i = 0; i < checker->found.states; i++)
                checker->found.different += i == 0 || checker->hashes[i] != checker->hashes[i - 1];
        free(checker->hashes);
}

/* Check states of a prefix, but none twice. */
static void
check_states(struct checker *checker, unsigned n)
{
        const uint64_t *hashes = checker->hashes + checker->found.states;
        size_t n_checked = 0;

        while (n-- > 0) {
                uint64_t hash = choose_state(checker);
                size_t i = 0;

                while (i < n_checked && hashes[i] != hash)
                        i++;
                if (i < n_checked)
                        continue;
                checker->hashes[checker->found.states++] = hash;
                n_checked++;
                write_state(checker);
                check_state(checker);
        }
}

static void
clean_up(struct checker *checker)
{
        for (unsigned f = 0; f < disk_n_files; f++) {
                checker->states[f].entry = ENTRY_NONE;
                free(checker->models[f].bytes);
        }
        write_state(checker);
        for (unsigned f = 0; f < disk_n_files; f++)
                free(checker->states[f].bytes);
        ck_assert_int_eq(close(checker->fd), 0);
        ck_assert_int_eq(rmdir(checker->path), 0);
}

struct crash_found
crash_states_check(unsigned variants, unsigned seed)
{
        static struct checker checker;

        checker = (struct checker){.path = scratch_path("state"), .seed = seed};
        checker.hashes = mem_alloc((disk_n_ops + 1) * variants * sizeof(*checker.hashes));
        ck_assert_int_eq(mkdir(checker.path, 0700), 0);
        checker.fd = open(checker.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        for (size_t p = 0; p < disk_n_ops; p++) {
                unsigned n;

                apply(&checker, &disk_ops[p]);
                n = is_certain(&checker) ? 1 : variants;
                if (disk_ops[p].kind == DISK_DRAINED || disk_ops[p].kind == DISK_ANSWER)
                        n = p + 1 < disk_n_ops && disk_ops[p + 1].kind == disk_ops[p].kind ? 1 : n / 4 + 1;
                check_states(&checker, n);
        }
        clean_up(&checker);
        count_different(&checker);
        return checker.found;
}
