#ifndef HTTP_ROOM_H
#define HTTP_ROOM_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * Room for the bodies of requests, which servers in several threads may share. A byte takes room from its coming until its
 * request is answered; so do the buffers of a body in small chunks (framing_slack()).
 */
struct http_room {
        atomic_uint_fast64_t used;
        atomic_uint_fast64_t max;
};

#endif
