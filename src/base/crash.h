#ifndef BASE_CRASH_H
#define BASE_CRASH_H

/*
 * Places at which a process can be made to die as by SIGKILL, for showing that it may die there. Compiled in by
 * `configure --enable-crash-points` only. The environment variable GATEPOST_CRASH_POINT chooses one: `NAME`, or `NAME:N` for
 * the Nth time that the process comes by.
 */
#ifdef GATEPOST_CRASH_POINTS
void crash_point(const char *name);
#else
#define crash_point(name) ((void)0)
#endif

#endif
