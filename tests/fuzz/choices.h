#ifndef TESTS_FUZZ_CHOICES_H
#define TESTS_FUZZ_CHOICES_H

#include <stddef.h>
#include <stdint.h>

/*
 * The fuzzer's input as a sequence of choices, one byte each. After the end of the input, every choice is 0.
 */
struct choices {
        const uint8_t *data;
        size_t len;
};

static inline unsigned
choose(struct choices *choices, unsigned n)
{
        if (choices->len == 0)
                return 0;
        choices->len--;
        return *choices->data++ % n;
}

/* Choose one of the texts. */
#define CHOOSE(choices, texts) (texts)[choose((choices), (unsigned)(sizeof(texts) / sizeof((texts)[0])))]

#endif
