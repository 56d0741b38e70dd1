#include "http/tls_check.h"

#include <stdio.h>

#include "base/clock.h"
#include "http/tls.h"

static void
print(const struct config *config, const char *severity, const struct error *error)
{
        fprintf(stderr, "%s:%zu: %stls_certificate_file: %s\n", config->file, config->tls_line, severity,
                error->text);
}

int
tls_check_strength(const struct config *config)
{
        struct error error;
        struct tls *tls;

        if (config->certificate == NULL)
                return 0;
        tls = tls_new(config->certificate, &error);
        if (tls == NULL)
                print(config, "", &error);
        tls_free(tls);
        return tls == NULL ? -1 : 0;
}

int
tls_check_dates(const struct config *config)
{
        enum certificate_state state;
        struct error error;

        if (config->certificate == NULL)
                return 0;
        state = certificate_state(config->certificate, clock_now_ms() / 1000, &error);
        if (state != CERTIFICATE_VALID)
                print(config, state == CERTIFICATE_ENDING ? "warning: " : "", &error);
        return state == CERTIFICATE_UNUSABLE ? -1 : 0;
}
