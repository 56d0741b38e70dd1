#include "base/json_memory.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/pool.h"

/* An allocation; yajl receives a pointer to data. */
struct json_memory_block {
        LIST_ENTRY(json_memory_block) entry;
        alignas(max_align_t) char data[];
};

static struct json_memory_block *
block_of(void *data)
{
        return (struct json_memory_block *)(void *)((char *)data - offsetof(struct json_memory_block, data));
}

static void
release(void *arg, void *data)
{
        (void)arg;
        if (data == NULL)
                return;
        LIST_REMOVE(block_of(data), entry);
        pool_free(block_of(data));
}

/* Resize a block that is not in the list, or allocate one if block is NULL, and put it into the list. */
static void *
resize_block(struct json_memory *memory, struct json_memory_block *block, size_t size)
{
        struct json_memory_block *resized = NULL;

        if (size <= SIZE_MAX - sizeof(*block))
                resized = pool_resize(block, sizeof(*block) + size);
        if (resized == NULL) {
                pool_free(block);
                longjmp(memory->failed, 1);
        }
        LIST_INSERT_HEAD(&memory->blocks, resized, entry);
        return resized->data;
}

static void *
allocate(void *arg, size_t size)
{
        return resize_block(arg, NULL, size);
}

static void *
reallocate(void *arg, void *data, size_t size)
{
        if (data == NULL)
                return resize_block(arg, NULL, size);
        LIST_REMOVE(block_of(data), entry);
        return resize_block(arg, block_of(data), size);
}

void
json_memory_init(struct json_memory *memory)
{
        LIST_INIT(&memory->blocks);
        memory->functions = (yajl_alloc_funcs){allocate, reallocate, release, memory};
}

void
json_memory_clear(struct json_memory *memory)
{
        struct json_memory_block *block;

        while ((block = LIST_FIRST(&memory->blocks)) != NULL)
                release(memory, block->data);
}
