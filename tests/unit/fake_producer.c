#include "fake_producer.h"

#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kafka/producer.h"

#define MAX_OUTSTANDING 100

_Atomic(enum fake_fate) fake_fates[FAKE_KEYS];
_Atomic unsigned fake_appended[FAKE_KEYS], fake_acknowledged[FAKE_KEYS], fake_most_outstanding;
_Atomic int fake_forgets;

static atomic_int is_used;

/* The only producer. */
static struct {
        int wake_fd;
        producer_report *report;
        void *arg;
        struct {
                unsigned key;
                enum fake_fate fate;
                void *record_arg;
        } outstanding[MAX_OUTSTANDING];
        unsigned n;
} fake;

struct producer *__real_producer_new(const struct config *config, const char *bootstrap,
                                     struct producer_manner manner, int wake_fd, producer_report *report,
                                     void *arg, struct error *error);
int __real_producer_append(struct producer *producer, struct producer_record *record, struct error *error);
void __real_producer_serve(struct producer *producer);
int __real_producer_is_broken(const struct producer *producer, struct error *error);
void __real_producer_free(struct producer *producer);

void
fake_producer_start(void)
{
        for (unsigned i = 0; i < FAKE_KEYS; i++) {
                atomic_store(&fake_fates[i], FAKE_ACKNOWLEDGED);
                atomic_store(&fake_appended[i], 0);
                atomic_store(&fake_acknowledged[i], 0);
        }
        atomic_store(&fake_most_outstanding, 0);
        atomic_store(&fake_forgets, 0);
        atomic_store(&is_used, 1);
}

void
fake_producer_stop(void)
{
        ck_assert_uint_eq(fake.n, 0);
        atomic_store(&is_used, 0);
}

struct producer *
__wrap_producer_new(const struct config *config, const char *bootstrap, struct producer_manner manner,
                    int wake_fd, producer_report *report, void *arg, struct error *error)
{
        if (!atomic_load(&is_used))
                return __real_producer_new(config, bootstrap, manner, wake_fd, report, arg, error);
        fake.wake_fd = wake_fd;
        fake.report = report;
        fake.arg = arg;
        fake.n = 0;
        return (struct producer *)&fake;
}

static void
wake(void)
{
        (void)!write(fake.wake_fd, "f", 1);
}

int
__wrap_producer_append(struct producer *producer, struct producer_record *record, struct error *error)
{
        char key[16] = "";
        enum fake_fate fate;
        unsigned i;

        if (!atomic_load(&is_used))
                return __real_producer_append(producer, record, error);
        ck_assert_uint_lt(record->key.len, sizeof(key));
        memcpy(key, record->key.data, record->key.len);
        i = (unsigned)strtoul(key, NULL, 10);
        ck_assert_uint_lt(i, FAKE_KEYS);
        rd_kafka_headers_destroy(record->headers);
        fate = atomic_load(&fake_fates[i]);
        atomic_fetch_add(&fake_appended[i], 1);
        if (fate == FAKE_TOO_LARGE || fate == FAKE_NO_ROOM) {
                record->is_final = fate == FAKE_TOO_LARGE;
                return error_set(error, fate == FAKE_TOO_LARGE ? "too large" : "no room");
        }
        ck_assert_uint_lt(fake.n, MAX_OUTSTANDING);
        fake.outstanding[fake.n].key = i;
        fake.outstanding[fake.n].fate = fate;
        fake.outstanding[fake.n++].record_arg = record->arg;
        if (fake.n > atomic_load(&fake_most_outstanding))
                atomic_store(&fake_most_outstanding, fake.n);
        if (!record->keeps_body)
                free(record->body);
        wake();
        return 0;
}

static void
report(void *record_arg, enum fake_fate fate)
{
        struct producer_outcome outcome = {.failure = fate == FAKE_ACKNOWLEDGED ? NULL
                                                      : fate == FAKE_REFUSED    ? "refused"
                                                                                : "failed",
                                           .may_be_there = fate == FAKE_HELD,
                                           .is_final = fate == FAKE_REFUSED};

        fake.report(record_arg, &outcome, fake.arg);
}

void
__wrap_producer_serve(struct producer *producer)
{
        unsigned n_held = 0;

        if (!atomic_load(&is_used)) {
                __real_producer_serve(producer);
                return;
        }
        for (unsigned i = 0; i < fake.n; i++) {
                if (fake.outstanding[i].fate == FAKE_HELD) {
                        fake.outstanding[n_held++] = fake.outstanding[i];
                        continue;
                }
                if (fake.outstanding[i].fate == FAKE_ACKNOWLEDGED)
                        atomic_fetch_add(&fake_acknowledged[fake.outstanding[i].key], 1);
                report(fake.outstanding[i].record_arg, fake.outstanding[i].fate);
        }
        fake.n = n_held;
}

int
__wrap_producer_is_broken(const struct producer *producer, struct error *error)
{
        return atomic_load(&is_used) ? 0 : __real_producer_is_broken(producer, error);
}

void
__wrap_producer_free(struct producer *producer)
{
        if (!atomic_load(&is_used)) {
                __real_producer_free(producer);
                return;
        }
        if (producer == NULL)
                return;
        for (unsigned i = 0; i < fake.n; i++) {
                if (atomic_load(&fake_forgets))
                        free(fake.outstanding[i].record_arg); /* the real one leaks it */
                else
                        report(fake.outstanding[i].record_arg, FAKE_HELD);
        }
        fake.n = 0;
}
