/*
 * A library to preload: epoll cannot watch IPv6 connections, as if the user had no watches left (epoll(7),
 * max_user_watches).
 */
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define N_DESCRIPTORS 4096

static volatile char is_unwatched[N_DESCRIPTORS];

int
accept4(int listener, __SOCKADDR_ARG address, socklen_t *restrict len, int flags)
{
        __typeof__(&accept4) real = (__typeof__(&accept4))dlsym(RTLD_NEXT, "accept4");
        int fd = real(listener, address, len, flags);

        if (fd >= 0 && fd < N_DESCRIPTORS)
                is_unwatched[fd] =
                    address.__sockaddr__ != NULL && address.__sockaddr__->sa_family == AF_INET6;
        return fd;
}

int
epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
        __typeof__(&epoll_ctl) real = (__typeof__(&epoll_ctl))dlsym(RTLD_NEXT, "epoll_ctl");

        if (operation == EPOLL_CTL_ADD && fd >= 0 && fd < N_DESCRIPTORS && is_unwatched[fd]) {
                errno = ENOSPC;
                return -1;
        }
        return real(epoll, operation, fd, event);
}
