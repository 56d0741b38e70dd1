#ifndef TESTS_DISK_H
#define TESTS_DISK_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A recorder of what the spool does with its disk. It wraps openat, write, writev, fdatasync, fsync, unlinkat, renameat, pread, readdir
 * and fallocate of the program, and can make them fail. Only files in the recorded directory count. It also wraps the monotonic clock.
 */

enum disk_op_kind {
        DISK_CREATE,
        DISK_WRITE,
        DISK_SYNC,
        DISK_SYNC_FAILED,
        DISK_SYNC_DIRECTORY,
        DISK_REMOVE,
        DISK_RENAME, /* the file is put aside as damaged */
        DISK_ANSWER,
        DISK_DRAINED
};

struct disk_op {
        enum disk_op_kind kind;
        unsigned file;   /* number of the file, in the order of creation */
        uint64_t offset; /* of DISK_WRITE */
        size_t len;      /* likewise */
        uint8_t *bytes;  /* likewise */
        unsigned answer; /* of DISK_ANSWER and DISK_DRAINED: what the test has passed */
};

#define DISK_MAX_FILES 256

/* Everything since disk_record(). */
extern struct disk_op *disk_ops;
extern size_t disk_n_ops;
extern char disk_names[DISK_MAX_FILES][64];
extern unsigned disk_n_files;

/* Record what happens in a directory, from now on. */
void disk_record(const char *directory);

/* Record no more. */
void disk_stop(void);

/* Release the record. */
void disk_forget(void);

/* Note that the test has got an answer, or a delivery is in Kafka. */
void disk_note(enum disk_op_kind kind, unsigned answer);

/* Let the monotonic clock of the program run ahead by so much more. */
void disk_pass_time(int64_t ms);

/* Mutations: syncs of files, or of the directory, return 0 without effect. */
extern int disk_ignores_syncs;
extern int disk_ignores_directory_syncs;

/* writev() writes no more than this at once; 0: everything. */
extern size_t disk_writes_at_once;

/* Each fdatasync() first reads a byte from this descriptor; -1: it does not. */
extern int disk_syncs_wait_for;

/* The call with this number, counted from 0 since disk_record(), fails with this errno; -1: none. A write does half of it. */
extern long disk_fails_at;
extern int disk_fails_with;
extern long disk_n_calls;

/* Reading fails with EIO within these bytes of any file in the directory; 0, 0: nowhere. */
extern uint64_t disk_unreadable_from, disk_unreadable_to;

/* Each read that fails there takes this long; how many have failed. */
extern int disk_unreadable_takes_ms;
extern atomic_uint disk_n_unreadable;

/* A file with this name cannot be opened; NULL: each can. */
extern const char *_Atomic disk_unopenable;

/* No file can be deleted. */
extern int disk_undeletable;

/* A directory returns so many entries, and then fails with EIO; -1: it returns all. */
extern int disk_lists;

/* fallocate() finds so much room; -1: the true one. */
extern _Atomic int64_t disk_room;

/* Bytes that pread() has read. */
extern uint64_t disk_n_read;

#endif
