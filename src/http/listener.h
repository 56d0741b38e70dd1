#ifndef HTTP_LISTENER_H
#define HTTP_LISTENER_H

#include <stddef.h>
#include <sys/socket.h>

#include "base/compiler.h"
#include "base/error.h"

#define LISTENER_NAME_SIZE 128

/**
 * listener_open(address, len, error):
 * Open a non-blocking listening socket. Port 0 picks a free port; an IPv6 address accepts IPv6 only. A
 * Unix-domain socket gets mode 0660; it replaces a socket file that nobody listens on, but no other file.
 * Returns the socket, or -1 with the reason.
 */
int listener_open(const struct sockaddr *address, socklen_t len, struct error *error) MUST_CHECK;

/* Close a socket; remove a Unix-domain socket's file unless another process listens there. -1 is harmless. */
void listener_close(int fd);

/*
 * Returns 1 when the socket was shut down, by shutdown(2) through another descriptor or by a tool such as `ss
 * -K`. Clients can no longer connect to it, and accept() fails with EINVAL.
 */
int listener_is_shut_down(int fd);

/* Write the address of a socket: 127.0.0.1:43211, [::1]:43211 or unix:/path. Returns name. */
char *listener_name(int fd, char *name, size_t size);

#endif
