#ifndef DAEMON_STATUS_H
#define DAEMON_STATUS_H

#include "daemon/parts.h"

/* Say in the log how everything stands: a line for the process and for each part; threads say theirs a moment later. */
void status_log(const struct parts *parts);

#endif
