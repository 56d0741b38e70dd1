#ifndef BASE_JSON_MEMORY_H
#define BASE_JSON_MEMORY_H

#include <setjmp.h>
#include <sys/queue.h>

#include <yajl/yajl_common.h>

/*
 * Memory for one yajl parser or generator. yajl does not check its allocations. So if one fails, control
 * returns by longjmp() to where the owner called setjmp():
 *
 *   json_memory_init(&memory);
 *   if (setjmp(memory.failed) == 0)
 *           ... yajl_alloc(callbacks, &memory.functions, arg) and all other calls of yajl ...
 *   json_memory_clear(&memory);
 */
struct json_memory {
        jmp_buf failed;
        yajl_alloc_funcs functions;
        LIST_HEAD(json_memory_blocks, json_memory_block) blocks;
};

void json_memory_init(struct json_memory *memory);

/* Release all memory that yajl has not released. */
void json_memory_clear(struct json_memory *memory);

#endif
