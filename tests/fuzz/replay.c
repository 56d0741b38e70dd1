/*
 * Run inputs through a fuzzer's target, without libFuzzer, so that every compiler can test earlier findings again.
 * An input that is a finding ends the process; the last name on stdout is that of the input.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define INPUT_MAX (1 << 20)

/* Return the content of the file, allocated in its size: a sanitizer notices when more is read. */
static uint8_t *
read_input(const char *name, size_t *len)
{
        static uint8_t buffer[INPUT_MAX];
        FILE *file = fopen(name, "rb");
        uint8_t *data = NULL;

        if (file != NULL) {
                *len = fread(buffer, 1, sizeof(buffer), file);
                data = malloc(*len);
                fclose(file);
        }
        for (size_t i = 0; data != NULL && i < *len; i++)
                data[i] = buffer[i];
        return data;
}

int
main(int argc, char *argv[])
{
        for (int i = 1; i < argc; i++) {
                size_t len;
                uint8_t *data = read_input(argv[i], &len);

                if (data == NULL) {
                        perror(argv[i]);
                        return EXIT_FAILURE;
                }
                (void)printf("%s\n", argv[i]);
                (void)fflush(stdout);
                (void)LLVMFuzzerTestOneInput(data, len);
                free(data);
        }
        (void)printf("%d inputs\n", argc - 1);
        return argc > 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
