#ifndef CLI_SUBSCRIPTION_OTHERS_H
#define CLI_SUBSCRIPTION_OTHERS_H

#include "cli/subscription.h"

/*
 * Before a webhook is registered: warn of those in the list at other URLs that have requested events which
 * none at this URL has yet. A proxy may lead both to one receiver.
 */
void subscription_others_warn(const struct subscription_views *list, const struct subscription_args *args);

#endif
