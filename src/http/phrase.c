#include "http/phrase.h"

#include <stddef.h>

#include "base/compiler.h"

const char *
phrase_for(int status)
{
        static const struct {
                int status;
                const char *phrase;
        } known[] = {
            {200, "OK"},
            {201, "Created"},
            {202, "Accepted"},
            {204, "No Content"},
            {400, "Bad Request"},
            {401, "Unauthorized"},
            {403, "Forbidden"},
            {404, "Not Found"},
            {405, "Method Not Allowed"},
            {408, "Request Timeout"},
            {409, "Conflict"},
            {413, "Content Too Large"},
            {414, "URI Too Long"},
            {417, "Expectation Failed"},
            {421, "Misdirected Request"},
            {422, "Unprocessable Content"},
            {429, "Too Many Requests"},
            {500, "Internal Server Error"},
            {501, "Not Implemented"},
            {503, "Service Unavailable"},
        };

        for (size_t i = 0; i < ARRAY_LEN(known); i++) {
                if (known[i].status == status)
                        return known[i].phrase;
        }
        return "Unknown";
}
