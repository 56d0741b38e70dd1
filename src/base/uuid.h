#ifndef BASE_UUID_H
#define BASE_UUID_H

#define UUID_SIZE 37 /* with its NUL */

/* Make a random UUID (RFC 9562, version 4). Ends the process when no random bytes are to be had. Returns id. */
char *uuid_make(char id[UUID_SIZE]);

#endif
