/*
 * A library to preload that makes allocations fail. The program and the test share the file named by
 * FAIL_MALLOC_CONTROL, a struct control: the test selects the calls to count and to fail, sets armed, and
 * reads the results. Calls are counted by the loaded object that makes them, to distinguish failures in the
 * program, which it must survive, from failures within a library.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_OBJECTS 64
#define NAME_SIZE 32
#define EXPORTED __attribute__((visibility("default"), noinline))
#define CALLER ((uintptr_t)__builtin_return_address(0))

/* preload.py has the same layout. */
struct control {
        atomic_uint armed;
        uint32_t reserved;
        uint64_t first;         /* number of the first counted call that fails, from 1; 0: none */
        uint64_t n;             /* number of calls that fail */
        char object[NAME_SIZE]; /* calls from objects whose name begins so count; empty: all */
        atomic_uint_fast64_t n_counted;
        atomic_uint_fast64_t n_failed;
        char failed_in[NAME_SIZE]; /* object that made the first failed call */
        uint64_t failed_at;        /* return address of that call, relative to the object */
};

struct object {
        uintptr_t begin, end;
        uintptr_t base;
        char name[NAME_SIZE];
};

/* glibc's own names for its allocator. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static struct control *control;
static struct object objects[MAX_OBJECTS];
static size_t n_objects;

static int
note_object(struct dl_phdr_info *info, size_t size, void *arg)
{
        struct object *object = &objects[n_objects];
        const char *slash = strrchr(info->dlpi_name, '/');

        (void)size;
        (void)arg;
        if (n_objects == MAX_OBJECTS)
                return 1;
        object->base = info->dlpi_addr;
        object->begin = UINTPTR_MAX;
        for (int i = 0; i < info->dlpi_phnum; i++) {
                uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

                if (info->dlpi_phdr[i].p_type != PT_LOAD)
                        continue;
                if (begin < object->begin)
                        object->begin = begin;
                if (begin + info->dlpi_phdr[i].p_memsz > object->end)
                        object->end = begin + info->dlpi_phdr[i].p_memsz;
        }
        /* The program comes first, without a name. */
        (void)snprintf(object->name, NAME_SIZE, "%s",
                       n_objects == 0  ? program_invocation_short_name
                       : slash != NULL ? slash + 1
                                       : info->dlpi_name);
        n_objects++;
        return 0;
}

static const struct object *
find_object(uintptr_t address)
{
        for (size_t i = 0; i < n_objects; i++) {
                if (address >= objects[i].begin && address < objects[i].end)
                        return &objects[i];
        }
        return NULL;
}

__attribute__((constructor)) static void
prepare(void)
{
        const char *path = getenv("FAIL_MALLOC_CONTROL");
        int fd = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
        void *memory;

        if (fd < 0)
                return;
        memory = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        (void)close(fd);
        (void)dl_iterate_phdr(note_object, NULL);
        if (memory != MAP_FAILED)
                control = memory;
}

/* Return whether a call from this address fails. */
static int
fails(uintptr_t caller)
{
        const struct object *object;
        uint64_t number;

        if (control == NULL || !atomic_load(&control->armed))
                return 0;
        object = find_object(caller);
        if (control->object[0] != '\0' &&
            (object == NULL || strncmp(object->name, control->object, strlen(control->object)) != 0))
                return 0;
        number = atomic_fetch_add(&control->n_counted, 1) + 1;
        if (control->first == 0 || number < control->first || number - control->first >= control->n)
                return 0;
        if (atomic_fetch_add(&control->n_failed, 1) == 0 && object != NULL) {
                memcpy(control->failed_in, object->name, NAME_SIZE);
                control->failed_at = caller - object->base;
        }
        errno = ENOMEM;
        return 1;
}

EXPORTED void *
malloc(size_t size)
{
        return fails(CALLER) ? NULL : __libc_malloc(size);
}

EXPORTED void *
calloc(size_t n, size_t size)
{
        return fails(CALLER) ? NULL : __libc_calloc(n, size);
}

EXPORTED void *
realloc(void *memory, size_t size)
{
        return fails(CALLER) ? NULL : __libc_realloc(memory, size);
}

EXPORTED void *
reallocarray(void *memory, size_t n, size_t size)
{
        size_t total;

        if (fails(CALLER))
                return NULL;
        if (__builtin_mul_overflow(n, size, &total)) {
                errno = ENOMEM;
                return NULL;
        }
        return __libc_realloc(memory, total);
}

EXPORTED void *
aligned_alloc(size_t alignment, size_t size)
{
        return fails(CALLER) ? NULL : __libc_memalign(alignment, size);
}

EXPORTED int
posix_memalign(void **memory, size_t alignment, size_t size)
{
        void *made = fails(CALLER) ? NULL : __libc_memalign(alignment, size);

        if (made == NULL)
                return ENOMEM;
        *memory = made;
        return 0;
}

/* Allocations within these glibc functions count as their caller's. */

static char *
copy(const char *text, size_t len)
{
        char *made = __libc_malloc(len + 1);

        if (made == NULL)
                return NULL;
        memcpy(made, text, len);
        made[len] = '\0';
        return made;
}

EXPORTED char *
strdup(const char *text)
{
        return fails(CALLER) ? NULL : copy(text, strlen(text));
}

EXPORTED char *
strndup(const char *text, size_t max)
{
        return fails(CALLER) ? NULL : copy(text, strnlen(text, max));
}

static int
print(char **text, const char *format, va_list args)
{
        va_list again;
        int len;

        va_copy(again, args);
        len = vsnprintf(NULL, 0, format, again);
        va_end(again);
        *text = len < 0 ? NULL : __libc_malloc((size_t)len + 1);
        return *text == NULL ? -1 : vsnprintf(*text, (size_t)len + 1, format, args);
}

EXPORTED int
vasprintf(char **text, const char *format, va_list args)
{
        *text = NULL;
        return fails(CALLER) ? -1 : print(text, format, args);
}

EXPORTED int
asprintf(char **text, const char *format, ...)
{
        va_list args;
        int len;

        *text = NULL;
        if (fails(CALLER))
                return -1;
        va_start(args, format);
        len = print(text, format, args);
        va_end(args);
        return len;
}
