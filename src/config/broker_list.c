#include "config/config.h"

#include <string.h>
#include <strings.h>

#include "base/number.h"

/* The list of brokers, HOST:PORT,HOST:PORT: librdkafka would take other text for a name, and resolve it. */

#define IPV6_CHARS "0123456789abcdefABCDEF:."
#define HOST_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]%"

/* Return why an entry is invalid, or NULL if it is valid. */
static const char *
broker_fault(const char *broker, size_t len)
{
        const char *end = broker + len, *colon = memrchr(broker, ':', len),
                   *bracket = memchr(broker, ']', len);
        uint64_t port;
        char digits[8];
        struct error error;

        if (len == 0)
                return "there is an empty entry in the list";
        if (len == 8 && strncasecmp(broker, "embedded", 8) == 0)
                return "did you mean embedded? It is written in lower case and alone";
        if (memmem(broker, len, "://", 3) != NULL)
                return "write HOST:PORT; security.protocol says whether to use TLS";
        if (strcspn(broker, " \t;") < len)
                return "brokers are separated by commas: HOST:PORT,HOST:PORT";
        if (strspn(broker, HOST_CHARS) < len || (bracket == NULL && *broker == '['))
                return "write HOST:PORT";
        if (*broker == '[' && strchr("]%", broker[1 + strspn(broker + 1, IPV6_CHARS)]) == NULL)
                return "only an IPv6 address is in brackets; write HOST:PORT";
        if (colon == NULL || (bracket != NULL && colon < bracket))
                return NULL; /* the default port */
        if (bracket == NULL && memchr(broker, ':', (size_t)(colon - broker)) != NULL)
                return "write an IPv6 address in brackets: [::1]:9092";
        if (colon == broker)
                return "the host is missing";
        if ((size_t)(end - colon) > sizeof(digits))
                return "the port is not between 1 and 65535";
        memcpy(digits, colon + 1, (size_t)(end - colon - 1));
        digits[end - colon - 1] = '\0';
        return number_parse(digits, 1, UINT16_MAX, &port, &error) == 0
                   ? NULL
                   : "the port is not between 1 and 65535";
}

const char *
config_brokers_fault(const char *list, const char **broker, size_t *len)
{
        const char *comma;

        for (const char *next = list; next != NULL; next = comma == NULL ? NULL : comma + 1) {
                const char *fault, *end;

                next += strspn(next, " \t");
                comma = strchr(next, ',');
                end = comma == NULL ? next + strlen(next) : comma;
                while (end > next && (end[-1] == ' ' || end[-1] == '\t'))
                        end--;
                *broker = next;
                *len = (size_t)(end - next);
                fault = broker_fault(next, *len);
                if (fault == NULL)
                        continue;
                if (strchr(list, '@') != NULL)
                        *len = 0;
                return fault;
        }
        return NULL;
}
