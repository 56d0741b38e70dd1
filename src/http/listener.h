#ifndef HTTP_LISTENER_H
#define HTTP_LISTENER_H

#include <stddef.h>
#include <sys/socket.h>

#include "base/compiler.h"
#include "base/error.h"

#define LISTENER_NAME_SIZE 128

/**
 * listener_open(address, len, error):
 * A non-blocking listening socket. Port 0 takes a free one; an IPv6 address takes IPv6 only. A Unix-domain socket gets
 * mode 0660, and replaces one that nobody listens on any more, but nothing else. Returns it, or -1 with the reason.
 */
int listener_open(const struct sockaddr *address, socklen_t len, struct error *error) MUST_CHECK;

/* Close it, and remove a Unix-domain socket's file, unless another process listens there by now. -1 is harmless. */
void listener_close(int fd);

/*
 * Whether the socket was shut down: by shutdown(2) through another descriptor of it, or by a tool as `ss -K`. Nothing can
 * connect to it any more, and accept() fails with EINVAL.
 */
int listener_is_shut_down(int fd);

/* What it is bound to: 127.0.0.1:43211, [::1]:43211 or unix:/path. Returns name. */
char *listener_name(int fd, char *name, size_t size);

#endif
