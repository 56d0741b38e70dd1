#include "cli/doctor.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cli/doctor_daemon.h"
#include "cli/status.h"

/* Whether the limits by address count a proxy, or one is configured, which must be another. */
static int
is_mistake(const struct config *config)
{
        return config->n_trusted_proxies > 0 || config->trusts_unix_sockets ||
               config->max_refusals_per_address > 0 || config->max_connections_per_address > 0;
}

static void
report(struct doctor *doctor, const char *address, double age_s)
{
        int is_unix = strcmp(address, "unix") == 0;
        char age[NUMBER_TEXT_SIZE], text[800];

        (void)number_format_duration(age_s < 1 ? 1000 : (uint64_t)age_s * 1000, age);
        (void)snprintf(text, sizeof(text),
                       "deliveries come through this proxy, the last %s ago, which is no trusted_proxy: its "
                       "X-Forwarded-For is ignored, and all clients have its address in the log and in the "
                       "limits by address; set trusted_proxy in [receiver] to %.50s%s, then: systemctl "
                       "reload @UNIT@",
                       age, address, is_unix ? "" : ", or to the network of your proxies");
        doctor_begin(doctor, "proxy", "%s", address);
        if (is_mistake(doctor->config))
                doctor_warn(doctor, "%s", text);
        else
                doctor_note(doctor, "%s", text);
}

/* The report of the daemon from before the test delivery does not tell how that one came. */
void
doctor_check_proxy(struct doctor *doctor)
{
        struct json_value *status;
        const struct json_value *proxy;
        const char *address;

        if (json_tree_get(doctor->status, "untrustedProxy") == NULL)
                return; /* not a receiver, or an older daemon */
        status = doctor_daemon_status(doctor);
        proxy = json_tree_get(status, "untrustedProxy");
        address = json_tree_text(proxy, "address");
        if (address != NULL && doctor_is_recent(proxy) && doctor_daemon_other(doctor, status) == NULL)
                report(doctor, address, doctor_seconds_since(proxy, "timeSeconds"));
        json_tree_free(status);
}
