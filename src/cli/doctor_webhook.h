#ifndef CLI_DOCTOR_WEBHOOK_H
#define CLI_DOCTOR_WEBHOOK_H

#include "cli/doctor.h"
#include "cli/service_answer.h"

/*
 * Return what to do with the id of a webhook that `subscriptions ensure` adds for a source, as the end of a
 * remedy, or "". To be freed.
 */
char *doctor_doubled_ids(const struct doctor *doctor, const struct config_source *source);

/*
 * Report which of n webhooks, which lead to a source and are accepted there, deliver the same events: with
 * two delivery-ids, by which neither the router nor a consumer recognises them.
 */
void doctor_doubled_check(struct doctor *doctor, const struct config_source *source,
                          const struct subscription_view *const *views, size_t n);

/*
 * Note that a webhook, the path of whose URL leads to no source, has events in common with one of these: a
 * proxy that changes the path may lead it to the source. Returns whether it has.
 */
int doctor_doubled_note(struct doctor *doctor, const struct config_source *source,
                        const struct subscription_view *const *views, size_t n,
                        const struct subscription_view *stray);

/*
 * Report that the service cannot deliver to the URL of a webhook: this receiver's certificate is for another
 * host, or the URL has another scheme than the listener. Note that it was not tried, if so.
 */
void doctor_webhook_url_check(struct doctor *doctor, const struct config_source *source, const char *webhook);

#endif
