#include "cli/quarantine_append.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/kafka_access.h"
#include "cli/quarantine_outlook.h"
#include "cli/terminal.h"
#include "kafka/message.h"
#include "kafka/producer.h"

#define POLL_MS 200
#define CONNECT_TIMEOUT_MS 2000      /* then the first record waits for what is missing */
#define MAX_UNACKNOWLEDGED (4 << 20) /* bytes of bodies; more go on when acks come */

struct work {
        struct quarantine_append *append;
        struct outlook *outlook;
        struct producer *producer; /* NULL: a dry run */
        int wake[2];
        size_t unacknowledged; /* bytes of bodies */
        int is_denied;         /* the account may not write there */
        struct terminal_progress progress;
};

/* Say what happened to one, which is known now. */
static void
settle(struct work *work, struct releasing *releasing, enum outcome outcome, const char *reason)
{
        releasing->outcome = outcome;
        if (reason != NULL)
                releasing->reason = mem_strdup(reason);
        terminal_progress_step(&work->progress);
        if (!work->append->is_quiet)
                outcome_print_text(releasing, work->append->quarantine->config);
}

static void
on_report(void *record_arg, const char *reason, int may_be_there, void *arg)
{
        struct releasing *releasing = record_arg;
        struct work *work = arg;

        (void)may_be_there;
        work->unacknowledged -= releasing->len;
        if (reason == NULL)
                settle(work, releasing, OUTCOME_RELEASED, NULL);
        else
                settle(work, releasing, OUTCOME_FAILED, reason);
        if (reason != NULL &&
            strcmp(reason, rd_kafka_err2str(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED)) == 0)
                work->is_denied = 1;
}

/* Wait a while for acks, and report them. */
static void
wait_for_acks(struct work *work)
{
        struct pollfd wake = {.fd = work->wake[0], .events = POLLIN};
        char bytes[64];

        if (poll(&wake, 1, POLL_MS) > 0) {
                while (read(work->wake[0], bytes, sizeof(bytes)) > 0)
                        ;
        }
        producer_serve(work->producer);
        (void)fflush(stdout);
}

static rd_kafka_headers_t *
make_headers(const rd_kafka_message_t *message, const struct release_headers *release)
{
        rd_kafka_headers_t *original, *headers = rd_kafka_headers_new(16);
        const char *name;
        const void *value;
        size_t len;

        if (rd_kafka_message_headers(message, &original) == RD_KAFKA_RESP_ERR_NO_ERROR) {
                for (size_t i = 0; rd_kafka_header_get_all(original, i, &name, &value, &len) == 0; i++) {
                        if (release_keeps_header(name))
                                (void)rd_kafka_header_add(headers, name, -1, value,
                                                          value == NULL ? -1 : (ssize_t)len);
                }
        }
        (void)rd_kafka_header_add(headers, RECORD_RELEASED, -1, release->released, -1);
        if (release->signature[0] != '\0')
                (void)rd_kafka_header_add(headers, RECORD_RELEASE_SIGNATURE, -1, release->signature, -1);
        return headers;
}

/* Append one, waiting for room. */
static void
append(struct work *work, const rd_kafka_message_t *message, const struct release_headers *release,
       struct releasing *releasing)
{
        struct span key = {message->key, message->key_len};
        void *body = message->len == 0 ? NULL : mem_alloc(message->len);
        struct error error;

        if (body != NULL)
                memcpy(body, message->payload, message->len);
        while (work->unacknowledged >= MAX_UNACKNOWLEDGED)
                wait_for_acks(work);
        while (producer_append(work->producer, key, body, message->len, make_headers(message, release),
                               releasing, &error) != 0) {
                struct error broken;

                if (producer_outstanding(work->producer) == 0 ||
                    producer_is_broken(work->producer, &broken)) {
                        free(body);
                        settle(work, releasing, OUTCOME_FAILED, error.text);
                        return;
                }
                wait_for_acks(work);
        }
        releasing->len = message->len;
        work->unacknowledged += message->len;
        producer_serve(work->producer);
}

static int
compare_with_releasing(const void *id, const void *releasing)
{
        return release_id_compare(id, &((const struct releasing *)releasing)->record->id);
}

static enum range_answer
on_record(const rd_kafka_message_t *message, size_t index, struct error *error, void *arg)
{
        struct work *work = arg;
        struct release_id id = {message->partition, message->offset};
        struct releasing *releasing = bsearch(&id, work->append->all, work->append->n,
                                              sizeof(*work->append->all), compare_with_releasing);
        struct release_headers release;

        (void)index;
        if (releasing == NULL || releasing->outcome != OUTCOME_PENDING)
                return RANGE_GO_ON;
        if (outlook_sign(work->append->quarantine->config, message, &id, &release) != 0 ||
            outlook_find(work->outlook, message, &release, releasing) != 0) {
                (void)error_set_openssl(error, "the record could not be decided");
                return RANGE_FAIL;
        }
        if (work->producer == NULL)
                settle(work, releasing, OUTCOME_POSSIBLE, NULL);
        else
                append(work, message, &release, releasing);
        return RANGE_GO_ON;
}

/* From the first of those to be released in each partition to the last. */
static struct range *
make_ranges(const struct quarantine_append *append_all)
{
        const struct quarantine *quarantine = append_all->quarantine;
        struct range *ranges = mem_alloc(quarantine->n_ranges * sizeof(*ranges));

        for (size_t p = 0; p < quarantine->n_ranges; p++)
                ranges[p] = (struct range){.topic = quarantine->ranges[p].topic, .partition = (int32_t)p};
        for (size_t i = 0; i < append_all->n; i++) {
                const struct release_id *id = &append_all->all[i].record->id;
                struct range *range = &ranges[id->partition];

                if (append_all->all[i].outcome != OUTCOME_PENDING)
                        continue;
                if (range->to == 0)
                        range->from = id->offset;
                range->to = id->offset + 1;
        }
        return ranges;
}

static int
release_all(struct work *work)
{
        struct quarantine_append *all = work->append;
        const struct quarantine *quarantine = all->quarantine;
        struct range *ranges = make_ranges(all);
        enum range_result result;
        struct error error;

        if (all->is_quiet || !isatty(STDOUT_FILENO)) /* else the lines there tell how far it is */
                terminal_progress_begin(&work->progress, "releasing", all->n);
        result = range_read(quarantine->config, quarantine->wish->bootstrap, ranges, quarantine->n_ranges,
                            on_record, work, &error);
        while (work->producer != NULL && producer_outstanding(work->producer) > 0)
                wait_for_acks(work);
        if (work->producer != NULL && producer_is_denied(work->producer))
                work->is_denied = 1;
        terminal_progress_end(&work->progress);
        free(ranges);
        for (size_t i = 0; i < all->n; i++) {
                if (all->all[i].outcome == OUTCOME_PENDING)
                        settle(work, &all->all[i], OUTCOME_FAILED,
                               result == RANGE_DONE ? "the record was deleted from quarantine meanwhile"
                                                    : error.text);
        }
        if (work->is_denied)
                return EX_NOPERM;
        return result == RANGE_DONE ? 0 : quarantine_failed(quarantine->wish, result, &error);
}

/* Returns 0, or an exit status after saying why. */
static int
open_work(struct work *work)
{
        const struct quarantine *quarantine = work->append->quarantine;
        struct error error;

        work->outlook = outlook_new(quarantine->config);
        if (work->outlook == NULL)
                return quarantine_refuse(quarantine->wish, EX_OSERR, "%s",
                                         (error_set_openssl(&error, "no judge of records"), error.text));
        if (work->append->is_dry)
                return 0;
        if (pipe2(work->wake, O_NONBLOCK | O_CLOEXEC) != 0)
                return quarantine_refuse(quarantine->wish, EX_OSERR, "pipe: %s", strerror(errno));
        work->producer = producer_new(quarantine->config, quarantine->wish->bootstrap, work->wake[1],
                                      on_report, work, &error);
        if (work->producer == NULL)
                return quarantine_refuse(quarantine->wish, EX_CONFIG, "%s", error.text);
        producer_connect(work->producer, CONNECT_TIMEOUT_MS);
        return 0;
}

int
quarantine_append_all(struct quarantine_append *append_all)
{
        struct work work = {.append = append_all, .wake = {-1, -1}};
        int status = open_work(&work);

        if (status == 0)
                status = release_all(&work);
        producer_free(work.producer);
        outlook_free(work.outlook);
        for (size_t i = 0; i < ARRAY_LEN(work.wake); i++) {
                if (work.wake[i] >= 0)
                        (void)close(work.wake[i]);
        }
        return status;
}
