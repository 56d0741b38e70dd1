#include "http/forwarded.h"

#include <string.h>

#include "http/field.h"

int
forwarded_trusts(const struct http_trust *trust, const struct address *peer)
{
        if (address_is_none(peer))
                return trust->unix_sockets;
        for (size_t i = 0; i < trust->n; i++) {
                if (network_contains(&trust->networks[i], peer))
                        return 1;
        }
        return 0;
}

/* An entry: an address, which may be in brackets and have a port. */
static int
parse_entry(const char *text, size_t len, struct address *address)
{
        const char *end;

        field_trim(&text, &len);
        if (len > 0 && *text == '[') {
                end = memchr(text, ']', len);
                return end == NULL ? -1 : address_parse(text + 1, (size_t)(end - text - 1), address);
        }
        if (address_parse(text, len, address) == 0)
                return 0;
        end = memchr(text, ':', len);
        return end == NULL ? -1 : address_parse(text, (size_t)(end - text), address);
}

struct address
forwarded_client(const struct http_trust *trust, const struct address *peer, const char *list, size_t len)
{
        struct address client = *peer, entry;

        while (len > 0 && forwarded_trusts(trust, &client)) {
                const char *comma = memrchr(list, ',', len);
                size_t start = comma == NULL ? 0 : (size_t)(comma - list) + 1;

                if (parse_entry(list + start, len - start, &entry) != 0)
                        break;
                client = entry;
                len = start == 0 ? 0 : start - 1;
        }
        return client;
}
