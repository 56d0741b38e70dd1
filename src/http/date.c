#include "http/date.h"

#include <time.h>

#include "base/clock.h"

#define DATE_SIZE 30 /* Sun, 06 Nov 1994 08:49:37 GMT */

/* Written once a second, not once an answer. */
const char *
date_now(void)
{
        static _Thread_local char text[DATE_SIZE];
        static _Thread_local time_t written;
        time_t now = (time_t)(clock_now_ms() / 1000);
        struct tm tm;

        if (now != written && gmtime_r(&now, &tm) != NULL) {
                (void)strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm);
                written = now;
        }
        return text;
}
