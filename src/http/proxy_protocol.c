#include "http/proxy_protocol.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/compiler.h"

#define VERSION_2 0x20
#define COMMAND_LOCAL 0
#define COMMAND_PROXY 1
#define TCP_OVER_IPV4 0x11
#define TCP_OVER_IPV6 0x21
#define IPV4_ADDRESSES_LEN 12 /* source, destination, two ports */
#define IPV6_ADDRESSES_LEN 36

static const uint8_t signature[12] = {'\r', '\n', '\r', '\n', '\0', '\r', '\n', 'Q', 'U', 'I', 'T', '\n'};

int
proxy_header_begins(const char first[PROXY_BEGIN_LEN])
{
        return memcmp(first, signature, PROXY_BEGIN_LEN) == 0 || memcmp(first, "PROXY", PROXY_BEGIN_LEN) == 0;
}

int
proxy_header_is_line(const char *line, size_t len)
{
        static const char *const families[] = {"PROXY TCP", "PROXY UNKNOWN"};

        for (size_t i = 0; i < ARRAY_LEN(families); i++) {
                size_t family_len = strlen(families[i]);

                if (len >= family_len && memcmp(line, families[i], family_len) == 0)
                        return 1;
        }
        return 0;
}

static size_t
rest_of(const struct proxy_header *header)
{
        return (size_t)header->data[14] << 8 | header->data[15];
}

/* Check the first 16 bytes. */
static int
is_well_formed(const struct proxy_header *header)
{
        const uint8_t *data = header->data;
        unsigned command = data[12] & 0x0f;

        return memcmp(data, signature, sizeof(signature)) == 0 && (data[12] & 0xf0) == VERSION_2 &&
               (command == COMMAND_LOCAL || command == COMMAND_PROXY) && rest_of(header) <= PROXY_REST_MAX;
}

/*
 * Read until the header has `len` bytes. Returns 1, 0 when more is needed, or -1 when the connection has
 * ended.
 */
static int
read_up_to(struct proxy_header *header, int fd, size_t len)
{
        ssize_t n;

        if (header->len >= len)
                return 1;
        n = recv(fd, header->data + header->len, len - header->len, 0);
        if (n > 0)
                header->len += (size_t)n;
        else if (n == 0 || (errno != EAGAIN && errno != EINTR))
                return -1;
        return header->len == len;
}

int
proxy_header_read(struct proxy_header *header, int fd)
{
        int result = read_up_to(header, fd, PROXY_HEADER_LEN);

        if (result != 1)
                return result;
        if (!is_well_formed(header))
                return -1;
        return read_up_to(header, fd, PROXY_HEADER_LEN + rest_of(header));
}

int
proxy_header_client(const struct proxy_header *header, struct address *client)
{
        const uint8_t *addresses = header->data + PROXY_HEADER_LEN;

        if ((header->data[12] & 0x0f) == COMMAND_LOCAL)
                return 0;
        if (header->data[13] == TCP_OVER_IPV4) {
                if (rest_of(header) < IPV4_ADDRESSES_LEN)
                        return -1;
                address_from_ipv4(addresses, client);
                return 1;
        }
        if (header->data[13] == TCP_OVER_IPV6) {
                if (rest_of(header) < IPV6_ADDRESSES_LEN)
                        return -1;
                memcpy(client->bytes, addresses, sizeof(client->bytes));
                return 1;
        }
        return 0;
}

const char *
proxy_header_fault(const struct proxy_header *header)
{
        return proxy_header_is_line((const char *)header->data, header->len)
                   ? "a header of version 1 of the PROXY protocol"
                   : "no valid header of the PROXY protocol";
}
