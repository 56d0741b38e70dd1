#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "config/certificate.h"
#include "scratch.h"
#include "suites.h"

#define NOW INT64_C(1795000000) /* 2026-11-18T11:06:40Z */
#define DAY INT64_C(86400)

static EVP_PKEY *key, *other_key;

static void
set_up(void)
{
        scratch_setup();
        key = EVP_EC_gen("P-256");
        other_key = EVP_EC_gen("P-256");
}

static void
tear_down(void)
{
        EVP_PKEY_free(key);
        EVP_PKEY_free(other_key);
        scratch_teardown();
}

/* Append a certificate for the key, valid between two times, to the file. */
static void
write_certificate(BIO *out, int64_t begin_s, int64_t end_s)
{
        X509 *one = X509_new();

        ck_assert_int_eq(X509_set_version(one, X509_VERSION_3), 1);
        ck_assert_int_eq(ASN1_INTEGER_set(X509_get_serialNumber(one), 7), 1);
        ck_assert_int_eq(X509_NAME_add_entry_by_txt(X509_get_subject_name(one), "CN", MBSTRING_ASC,
                                                    (const unsigned char *)"gateway", -1, -1, 0),
                         1);
        ck_assert_int_eq(X509_set_issuer_name(one, X509_get_subject_name(one)), 1);
        ck_assert_ptr_nonnull(ASN1_TIME_set(X509_getm_notBefore(one), (time_t)begin_s));
        ck_assert_ptr_nonnull(ASN1_TIME_set(X509_getm_notAfter(one), (time_t)end_s));
        ck_assert_int_eq(X509_set_pubkey(one, key), 1);
        ck_assert_int_gt(X509_sign(one, key, EVP_sha256()), 0);
        ck_assert_int_eq(PEM_write_bio_X509(out, one), 1);
        X509_free(one);
}

static const char *
keep(BIO *out, const char *name, mode_t mode)
{
        char *text;
        long len = BIO_get_mem_data(out, &text);
        const char *path = scratch_file(name, text, (size_t)len, mode);

        BIO_free(out);
        return path;
}

/* Write a file with a certificate, and with a second one if more_end_s is not 0. */
static const char *
certificate_file(int64_t begin_s, int64_t end_s, int64_t more_end_s)
{
        BIO *out = BIO_new(BIO_s_mem());

        (void)BIO_puts(out, "Certificate:\n    Data: what openssl writes before it\n");
        write_certificate(out, begin_s, end_s);
        if (more_end_s != 0)
                write_certificate(out, begin_s, more_end_s);
        return keep(out, "certificate.pem", 0644);
}

static const char *
key_file(EVP_PKEY *which, const char *passphrase, mode_t mode)
{
        BIO *out = BIO_new(BIO_s_mem());

        ck_assert_int_eq(PEM_write_bio_PrivateKey(out, which, passphrase == NULL ? NULL : EVP_aes_256_cbc(),
                                                  (const unsigned char *)passphrase,
                                                  passphrase == NULL ? 0 : (int)strlen(passphrase), NULL,
                                                  NULL),
                         1);
        return keep(out, "key.pem", mode);
}

static struct certificate *
read_one(int64_t begin_s, int64_t end_s, int64_t more_end_s)
{
        struct error error;
        struct certificate *certificate =
            certificate_read(certificate_file(begin_s, end_s, more_end_s), &error);

        ck_assert_msg(certificate != NULL, "%s", error.text);
        return certificate;
}

START_TEST(test_certificate_is_read_with_its_chain_and_key)
{
        struct certificate *certificate = read_one(NOW, NOW + 50 * DAY, NOW + 40 * DAY);
        struct error error;

        ck_assert_int_eq(sk_X509_num(certificate->chain), 1);
        ck_assert_int_eq(certificate_read_key(certificate, key_file(key, NULL, 0600), &error), 0);
        ck_assert_ptr_nonnull(certificate->key);
        ck_assert_int_eq(certificate_read_authorities(certificate,
                                                      certificate_file(NOW, NOW + DAY, NOW + DAY), &error),
                         0);
        ck_assert_int_eq(sk_X509_num(certificate->authorities), 2);
        certificate_free(certificate);
        certificate_free(NULL);
}
END_TEST

START_TEST(test_earliest_expiry_in_a_chain_counts)
{
        struct certificate *certificate = read_one(NOW, NOW + 50 * DAY, NOW + 40 * DAY);

        ck_assert_int_eq(certificate->not_before_s, NOW);
        ck_assert_int_eq(certificate->not_after_s, NOW + 40 * DAY);
        certificate_free(certificate);
}
END_TEST

static const struct {
        int64_t at_s; /* of a certificate that is valid from NOW for 50 days */
        enum certificate_state state;
        int64_t days;
        const char *words;
} times[] = {
    {NOW - 1, CERTIFICATE_UNUSABLE, 50, "not valid before 2026-11-18T11:06:40Z"},
    {NOW, CERTIFICATE_VALID, 50, NULL},
    {NOW + 20 * DAY, CERTIFICATE_VALID, 30, NULL},
    {NOW + 20 * DAY + 1, CERTIFICATE_ENDING, 29, "expires at 2027-01-07T11:06:40Z"},
    {NOW + 48 * DAY + 1, CERTIFICATE_ENDING, 1, "expires at"},
    {NOW + 50 * DAY, CERTIFICATE_ENDING, 0, "expires at"},
    {NOW + 50 * DAY + 1, CERTIFICATE_UNUSABLE, -1, "expired at 2027-01-07T11:06:40Z"},
};

START_TEST(test_certificate_state_depends_on_the_time)
{
        struct certificate *certificate = read_one(NOW, NOW + 50 * DAY, 0);
        struct error error = {""};

        ck_assert_int_eq(certificate_state(certificate, times[_i].at_s, &error), times[_i].state);
        ck_assert_int_eq(certificate_days_left(certificate, times[_i].at_s), times[_i].days);
        if (times[_i].words != NULL)
                ck_assert_msg(strstr(error.text, times[_i].words) != NULL, "%s", error.text);
        certificate_free(certificate);
}
END_TEST

START_TEST(test_file_without_certificates_is_refused)
{
        static const char cut[] = "-----BEGIN CERTIFICATE-----\nMIIB\n";
        struct error error;

        ck_assert_ptr_null(certificate_read(scratch_path("none"), &error));
        ck_assert_ptr_nonnull(strstr(error.text, "cannot open"));
        ck_assert_ptr_null(certificate_read(scratch_file("text", "nothing\n", 8, 0644), &error));
        ck_assert_ptr_nonnull(strstr(error.text, "no certificate"));
        ck_assert_ptr_null(certificate_read(scratch_file("cut", cut, strlen(cut), 0644), &error));
        ck_assert_ptr_nonnull(strstr(error.text, "no certificate"));
        ck_assert_ptr_null(certificate_read(key_file(key, NULL, 0600), &error));
        ck_assert_ptr_nonnull(strstr(error.text, "no certificate"));
        ck_assert_ptr_null(certificate_read("/", &error));
        ck_assert_ptr_nonnull(strstr(error.text, "regular file"));
}
END_TEST

START_TEST(test_fifo_is_refused_without_blocking)
{
        struct error error;

        ck_assert_int_eq(mkfifo(scratch_path("fifo"), 0600), 0);
        ck_assert_ptr_null(certificate_read(scratch_path("fifo"), &error));
        ck_assert_ptr_nonnull(strstr(error.text, "regular file"));
}
END_TEST

START_TEST(test_chain_with_a_broken_certificate_is_refused)
{
        BIO *out = BIO_new(BIO_s_mem());
        struct error error;

        write_certificate(out, NOW, NOW + DAY);
        (void)BIO_puts(out, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
        ck_assert_ptr_null(certificate_read(keep(out, "broken.pem", 0644), &error));
        ck_assert_msg(strstr(error.text, "certificate 2 in ") != NULL, "%s", error.text);
}
END_TEST

static void
expect_key_refused(const char *path, const char *words)
{
        struct certificate *certificate = read_one(NOW, NOW + DAY, 0);
        struct error error;

        ck_assert_int_eq(certificate_read_key(certificate, path, &error), -1);
        ck_assert_msg(strstr(error.text, words) != NULL, "%s", error.text);
        ck_assert_ptr_null(strstr(error.text, "BEGIN"));
        certificate_free(certificate);
}

START_TEST(test_unusable_key_is_refused)
{
        expect_key_refused(key_file(key, NULL, 0604), "others can read it");
        expect_key_refused(key_file(key, NULL, 0602), "others can write it");
        expect_key_refused(key_file(other_key, NULL, 0600), "does not belong to the first certificate");
        expect_key_refused(key_file(key, "a passphrase", 0600), "by a passphrase");
        expect_key_refused(scratch_file("empty", "", 0, 0600), "empty");
        expect_key_refused(scratch_file("text", "nothing", 7, 0600), "no private key");
        expect_key_refused(scratch_path("none"), "cannot open");
}
END_TEST

START_TEST(test_key_of_a_later_certificate_is_refused)
{
        EVP_PKEY *first = key;
        BIO *out = BIO_new(BIO_s_mem());
        struct certificate *certificate;
        struct error error;

        key = other_key;
        write_certificate(out, NOW, NOW + DAY);
        key = first;
        write_certificate(out, NOW, NOW + DAY);
        certificate = certificate_read(keep(out, "certificate.pem", 0644), &error);
        ck_assert_ptr_nonnull(certificate);
        ck_assert_int_eq(certificate_read_key(certificate, key_file(key, NULL, 0600), &error), -1);
        ck_assert_msg(strstr(error.text, "does not belong to the first certificate") != NULL, "%s",
                      error.text);
        certificate_free(certificate);
}
END_TEST

START_TEST(test_renewed_certificate_is_different)
{
        struct certificate *one = read_one(NOW, NOW + DAY, 0), *two = read_one(NOW, NOW + 2 * DAY, 0);

        ck_assert(certificate_is_same(one, one));
        ck_assert(!certificate_is_same(one, two));
        certificate_free(one);
        certificate_free(two);
}
END_TEST

START_TEST(test_configuration_loads_certificate_and_key)
{
        const char *path = certificate_file(NOW, NOW + 50 * DAY, 0), *key_path = key_file(key, NULL, 0600);
        char more[1024];
        struct loaded loaded;

        (void)snprintf(more, sizeof(more), "[receiver]\ntls_certificate_file = %s\ntls_key_file = %s\n", path,
                       key_path);
        loaded = scratch_load_more(more);
        ck_assert_str_eq(loaded.messages, "");
        ck_assert_ptr_nonnull(loaded.config->certificate->key);
        ck_assert_int_eq(loaded.config->certificate->not_after_s, NOW + 50 * DAY);
        scratch_release(&loaded);
        (void)key_file(other_key, NULL, 0600);
        scratch_expect_refused(more, "tls_key_file: ");
}
END_TEST

START_TEST(test_router_alone_ignores_tls_files)
{
        struct loaded loaded = scratch_load_more("[gatepost]\nroles = router\n[receiver]\n"
                                                 "tls_certificate_file = /nonexistent\ntls_key_file = /n\n");

        ck_assert_str_eq(loaded.messages, "");
        ck_assert_ptr_null(loaded.config->certificate);
        scratch_release(&loaded);
}
END_TEST

Suite *
suite_certificate(void)
{
        Suite *suite = suite_create("certificate");
        TCase *all = tcase_create("all");

        tcase_add_checked_fixture(all, set_up, tear_down);
        tcase_add_test(all, test_certificate_is_read_with_its_chain_and_key);
        tcase_add_test(all, test_earliest_expiry_in_a_chain_counts);
        tcase_add_loop_test(all, test_certificate_state_depends_on_the_time, 0,
                            (int)(sizeof(times) / sizeof(times[0])));
        tcase_add_test(all, test_file_without_certificates_is_refused);
        tcase_add_test(all, test_fifo_is_refused_without_blocking);
        tcase_add_test(all, test_chain_with_a_broken_certificate_is_refused);
        tcase_add_test(all, test_unusable_key_is_refused);
        tcase_add_test(all, test_key_of_a_later_certificate_is_refused);
        tcase_add_test(all, test_renewed_certificate_is_different);
        tcase_add_test(all, test_configuration_loads_certificate_and_key);
        tcase_add_test(all, test_router_alone_ignores_tls_files);
        suite_add_tcase(suite, all);
        return suite;
}
