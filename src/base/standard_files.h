#ifndef BASE_STANDARD_FILES_H
#define BASE_STANDARD_FILES_H

/**
 * standard_files_hold():
 * See to it that descriptors 0, 1 and 2 are in use, before anything is opened. Where a program is started with one of
 * them closed, the first file or connection to be opened would get it, and what is printed would be written there. Reading
 * from a closed standard input and writing to a closed standard output still fail.
 */
void standard_files_hold(void);

#endif
