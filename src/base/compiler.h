#ifndef BASE_COMPILER_H
#define BASE_COMPILER_H

/* The result must not be ignored. */
#define MUST_CHECK __attribute__((warn_unused_result))

/* Check the arguments from `first` on against the printf format at `position`. */
#define PRINTF_LIKE(position, first) __attribute__((__format__(__printf__, position, first)))

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
