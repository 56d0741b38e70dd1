#include <check.h>
#include <string.h>

#include "base/crc32c.h"
#include "suites.h"

/* The two ways to compute it, of which a processor uses one. */
#define crc32c_add crc32c_add_again
#include "../../src/base/crc32c.c"
#undef crc32c_add

#define SIZE 4096

/* RFC 3720, appendix B.4. */
START_TEST(test_examples_of_the_rfc)
{
        static const uint8_t read_pdu[48] = {0x01, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                                             0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00,
                                             0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00,
                                             0x00, 0x18, 0x28, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                                             0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
        uint8_t data[32];

        memset(data, 0, sizeof(data));
        ck_assert_uint_eq(crc32c_add(0, data, sizeof(data)), 0x8a9136aa);
        memset(data, 0xff, sizeof(data));
        ck_assert_uint_eq(crc32c_add(0, data, sizeof(data)), 0x62a8ab43);
        for (unsigned i = 0; i < sizeof(data); i++)
                data[i] = (uint8_t)i;
        ck_assert_uint_eq(crc32c_add(0, data, sizeof(data)), 0x46dd794e);
        for (unsigned i = 0; i < sizeof(data); i++)
                data[i] = (uint8_t)(31 - i);
        ck_assert_uint_eq(crc32c_add(0, data, sizeof(data)), 0x113fdb5c);
        ck_assert_uint_eq(crc32c_add(0, read_pdu, sizeof(read_pdu)), 0xd9963a56);
        ck_assert_uint_eq(~add_by_table(~0u, read_pdu, sizeof(read_pdu)), 0xd9963a56);
}
END_TEST

/* Each length and alignment, whole and in two parts. */
START_TEST(test_table_and_instruction_agree)
{
        uint8_t data[SIZE];
        uint32_t seed = 1;

        for (unsigned i = 0; i < SIZE; i++) {
                seed = seed * 1103515245 + 12345;
                data[i] = (uint8_t)(seed >> 16);
        }
        for (unsigned at = 0; at < 16; at++) {
                for (unsigned len = 0; len < 200; len++) {
                        uint32_t crc = crc32c_add(0, data + at, len);

                        ck_assert_uint_eq(~add_by_table(~0u, data + at, len), crc);
                        ck_assert_uint_eq(crc32c_add(crc32c_add(0, data + at, len / 3), data + at + len / 3,
                                                     len - len / 3),
                                          crc);
#if defined(__x86_64__)
                        if (__builtin_cpu_supports("sse4.2"))
                                ck_assert_uint_eq(~add_by_instruction(~0u, data + at, len), crc);
#endif
                }
        }
        ck_assert_uint_eq(~add_by_table(~0u, data, SIZE), crc32c_add(0, data, SIZE));
        ck_assert_uint_eq(crc32c_add_again(7, data, SIZE), crc32c_add(7, data, SIZE));
}
END_TEST

Suite *
suite_crc32c(void)
{
        Suite *suite = suite_create("crc32c");
        TCase *tcase = tcase_create("crc32c");

        tcase_add_test(tcase, test_examples_of_the_rfc);
        tcase_add_test(tcase, test_table_and_instruction_agree);
        suite_add_tcase(suite, tcase);
        return suite;
}
