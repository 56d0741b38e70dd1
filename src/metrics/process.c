#include "metrics/process.h"

#include <dirent.h>
#include <inttypes.h>
#include <sys/resource.h>
#include <unistd.h>

#include <event2/event.h>
#include <librdkafka/rdkafka.h>
#include <openssl/crypto.h>

#include "metrics/exposition.h"

static void
render_memory(FILE *out)
{
        const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
        uint64_t total, resident;
        FILE *in = fopen("/proc/self/statm", "re");
        int n;

        if (in == NULL)
                return;
        n = fscanf(in, "%" SCNu64 " %" SCNu64, &total, &resident);
        (void)fclose(in);
        if (n != 2)
                return;
        exposition_head(out, "process_resident_memory_bytes", "gauge", "Memory that is held in RAM.");
        fprintf(out, "process_resident_memory_bytes %" PRIu64 "\n", resident * page);
        exposition_head(out, "process_virtual_memory_bytes", "gauge", "Memory that is addressed.");
        fprintf(out, "process_virtual_memory_bytes %" PRIu64 "\n", total * page);
}

long
process_count_descriptors(void)
{
        DIR *dir = opendir("/proc/self/fd");
        const struct dirent *entry;
        long n = -1;

        if (dir == NULL)
                return -1;
        while ((entry = readdir(dir)) != NULL)
                n += entry->d_name[0] != '.';
        (void)closedir(dir);
        return n;
}

static void
render_descriptors(FILE *out)
{
        struct rlimit limit;
        long n = process_count_descriptors();

        if (n >= 0) {
                exposition_head(out, "process_open_fds", "gauge", "Descriptors that are open.");
                fprintf(out, "process_open_fds %ld\n", n);
        }
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
                exposition_head(out, "process_max_fds", "gauge", "Descriptors that may be open.");
                fprintf(out, "process_max_fds %" PRIu64 "\n", (uint64_t)limit.rlim_cur);
        }
}

static double
seconds(struct timeval time)
{
        return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static void
render_times(int64_t start_s, FILE *out)
{
        struct rusage usage;

        if (getrusage(RUSAGE_SELF, &usage) == 0) {
                exposition_head(out, "process_cpu_seconds_total", "counter", "Time of CPUs that was used.");
                fprintf(out, "process_cpu_seconds_total %.6f\n",
                        seconds(usage.ru_utime) + seconds(usage.ru_stime));
        }
        exposition_head(out, "process_start_time_seconds", "gauge",
                        "When the process started, since the epoch.");
        fprintf(out, "process_start_time_seconds %" PRId64 "\n", start_s);
}

static void
render_build(FILE *out)
{
        exposition_head(out, "gatepost_build_info", "gauge", "1, with the versions of what is running.");
        fprintf(out,
                "gatepost_build_info{version=\"%s\",librdkafka=\"%s\",openssl=\"%s\",libevent=\"%s\"} 1\n",
                PACKAGE_VERSION, rd_kafka_version_str(), OpenSSL_version(OPENSSL_VERSION_STRING),
                event_get_version());
}

void
process_render(int64_t start_s, FILE *out)
{
        render_build(out);
        render_times(start_s, out);
        render_memory(out);
        render_descriptors(out);
}
