#ifndef BASE_CRASH_H
#define BASE_CRASH_H

/*
 * Points at which a process can be made to die as by SIGKILL, to test that it survives dying there. Compiled
 * in only by `configure --enable-crash-points`. The environment variable GATEPOST_CRASH_POINT chooses one:
 * `NAME`, or `NAME:N` for the Nth time that the process reaches it.
 */
#ifdef GATEPOST_CRASH_POINTS
void crash_point(const char *name);
#else
#define crash_point(name) ((void)0)
#endif

#endif
