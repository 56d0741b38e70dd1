#ifndef BASE_ACCOUNT_H
#define BASE_ACCOUNT_H

#include "base/compiler.h"
#include "base/error.h"

#define ACCOUNT_SERVICE_USER "gatepost" /* the user of the systemd units */

/**
 * account_become(name, error):
 * Let a process of root become a user, with the groups that it is a member of, for good: files then open as
 * they do for the daemon. NULL stands for the user of the systemd units, or for root where there is no such
 * user. Return 1 if the user has changed, 0 if there was nothing to do, or -1 with the reason: there is no
 * such user, or the process is not root. Call it before any file is opened.
 */
int account_become(const char *name, struct error *error) MUST_CHECK;

#endif
