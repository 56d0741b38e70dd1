#include "spool/config_checks.h"

#include "http/tls.h"
#include "kafka/clients_check.h"
#include "spool/spool_place.h"

struct config *
config_checks_load(const char *file, struct findings *findings)
{
        struct config *config = config_load_reporting(file, findings);

        if (config == NULL)
                return NULL;
        tls_check_strength(config, findings);
        tls_check_dates(config, findings);
        clients_check(config, findings);
        spool_place_check(config, findings);
        return config;
}
