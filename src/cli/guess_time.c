#include "cli/guess_time.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum form { AS_IT_IS, LEFT_OUT, NO_STOP, IN_SECONDS, N_FORMS };

void
guess_times_init(struct guess_times *times, const char *header, uint64_t reach)
{
        size_t len = strspn(header, "0123456789");

        *times = (struct guess_times){header, -1, len == 13, reach};
        if (header[len] != '\0' || (len != 10 && len != 13))
                return;
        times->seconds = strtoll(header, NULL, 10) / (times->in_ms ? 1000 : 1);
}

/* After those, the seconds around the header's, and then its milliseconds. */
size_t
guess_times_count(const struct guess_times *times)
{
        return times->seconds < 0 ? IN_SECONDS : N_FORMS + 2 * times->reach + 1000;
}

/* How far the second at an index is from the header's: the nearest first, the earlier of two before the later. */
static int64_t
distance_at(size_t index)
{
        size_t i = index - N_FORMS;
        int64_t distance = (int64_t)(i / 2 + 1);

        return i % 2 == 0 ? -distance : distance;
}

static int
is_second(const struct guess_times *times, size_t index)
{
        return index < N_FORMS + 2 * times->reach;
}

static unsigned
ms_at(const struct guess_times *times, size_t index)
{
        return (unsigned)(index - N_FORMS - 2 * times->reach);
}

size_t
guess_times_head(const struct guess_times *times, size_t index, char head[GUESS_TIME_SIZE])
{
        switch (index) {
        case AS_IT_IS:
                (void)snprintf(head, GUESS_TIME_SIZE, "%s.", times->header);
                break;
        case LEFT_OUT:
                head[0] = '\0';
                break;
        case NO_STOP:
                (void)snprintf(head, GUESS_TIME_SIZE, "%s", times->header);
                break;
        case IN_SECONDS:
                (void)snprintf(head, GUESS_TIME_SIZE, "%" PRId64 ".", times->seconds);
                break;
        default:
                if (is_second(times, index))
                        (void)snprintf(head, GUESS_TIME_SIZE, "%010" PRId64 ".",
                                       times->seconds + distance_at(index));
                else
                        (void)snprintf(head, GUESS_TIME_SIZE, "%" PRId64 "%03u.", times->seconds,
                                       ms_at(times, index));
        }
        return strlen(head);
}

char *
guess_times_what(const struct guess_times *times, size_t index, char text[GUESS_TIME_SIZE])
{
        int64_t distance;

        switch (index) {
        case AS_IT_IS:
                text[0] = '\0';
                break;
        case LEFT_OUT:
                (void)snprintf(text, GUESS_TIME_SIZE, "the timestamp was left out of what was signed");
                break;
        case NO_STOP:
                (void)snprintf(text, GUESS_TIME_SIZE,
                               "the full stop between timestamp and body was left out of what was signed");
                break;
        case IN_SECONDS:
                (void)snprintf(text, GUESS_TIME_SIZE,
                               "the header's timestamp is in milliseconds, and seconds were signed");
                break;
        default:
                if (!is_second(times, index)) {
                        (void)snprintf(text, GUESS_TIME_SIZE,
                                       "the timestamp that was signed is in milliseconds, %" PRId64 "%03u",
                                       times->seconds, ms_at(times, index));
                        break;
                }
                distance = distance_at(index);
                (void)snprintf(text, GUESS_TIME_SIZE,
                               "another timestamp was signed, %010" PRId64 ", %" PRId64 " s %s",
                               times->seconds + distance, distance < 0 ? -distance : distance,
                               distance < 0 ? "earlier" : "later");
        }
        return text;
}
