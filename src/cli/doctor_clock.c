#include "cli/doctor.h"

#include <inttypes.h>
#include <sysexits.h>

#include "base/number.h"

/* The difference between the clocks of this machine and of the broker that appended a test delivery. */

#define TOLERANCE_PART 10 /* a skew above this part of the tolerance warns */
/* By message.timestamp.after.max.ms, which is an hour unless the brokers or the topics have another one. */
#define KAFKA_LIMIT_MS 3600000

void
doctor_check_clock(struct doctor *doctor)
{
        const struct config *config = doctor->config;
        uint64_t tolerance_ms = UINT64_MAX;
        int64_t skew_ms = doctor->skew_ms < 0 ? -doctor->skew_ms : doctor->skew_ms;
        char limit[NUMBER_TEXT_SIZE];

        doctor_begin(doctor, "clock", "%s", "");
        if (!doctor->knows_skew) {
                doctor_skip(doctor, "a broker's clock is only known from the record of a test delivery");
                return;
        }
        for (size_t s = 0; s < config->n_sources; s++) {
                if (config->sources[s].tolerance_ms < tolerance_ms)
                        tolerance_ms = config->sources[s].tolerance_ms;
        }
        (void)number_format_duration(tolerance_ms / TOLERANCE_PART, limit);
        if (skew_ms > KAFKA_LIMIT_MS) {
                doctor_fail(doctor, EX_OSERR,
                            "the broker's clock is %" PRId64
                            " min %s this machine's: one of them is wrong, and "
                            "routers whose clock is an hour ahead of the broker's cannot publish",
                            skew_ms / 60000, doctor->skew_ms > 0 ? "ahead of" : "behind");
                doctor_remedy(doctor,
                              "set the clock that is wrong, and synchronise both by NTP: timedatectl on "
                              "each; then restart what runs where it was wrong");
        } else if ((uint64_t)skew_ms > tolerance_ms / TOLERANCE_PART)
                doctor_warn(doctor,
                            "the broker's clock is %" PRId64
                            " ms %s this machine's, more than a tenth of tolerance "
                            "(%s): deliveries may be refused as stale; synchronise both by NTP (timedatectl)",
                            skew_ms, doctor->skew_ms > 0 ? "ahead of" : "behind", limit);
        else
                doctor_pass(doctor, "differs from the broker's by %" PRId64 " ms at most", skew_ms);
}

void
doctor_clock_learn(struct doctor *doctor, const rd_kafka_message_t *message, int64_t sent_ms,
                   int64_t answered_ms)
{
        rd_kafka_timestamp_type_t type;
        int64_t stamped_ms = rd_kafka_message_timestamp(message, &type);

        if (type != RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME)
                return;
        doctor->knows_skew = 1;
        if (stamped_ms < sent_ms)
                doctor->skew_ms = stamped_ms - sent_ms;
        else if (stamped_ms > answered_ms)
                doctor->skew_ms = stamped_ms - answered_ms;
        else
                doctor->skew_ms = 0;
}
