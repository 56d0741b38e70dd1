#include "scratch.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[64];
static char paths[16][160];
static size_t n_paths;

const char scratch_minimal[] = "[receiver]\n"
                               "listen = 127.0.0.1:8080\n"
                               "[source invoicing]\n"
                               "path = /webhooks/invoicing\n"
                               "secret = sixteen bytes or more of it\n"
                               "[kafka]\n"
                               "bootstrap.servers = kafka1:9092\n";
const char scratch_embedded[] = "[receiver]\n"
                                "listen = 127.0.0.1:0\n"
                                "[source invoicing]\n"
                                "path = /webhooks/invoicing\n"
                                "secret = sixteen bytes or more of it\n"
                                "[kafka]\n"
                                "bootstrap.servers = embedded\n";

void
scratch_setup(void)
{
        (void)snprintf(directory, sizeof(directory), "/tmp/gatepost-unit-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(directory));
        n_paths = 0;
}

static int
remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
        (void)status;
        (void)type;
        (void)walk;
        ck_assert_int_eq(remove(path), 0);
        return 0;
}

void
scratch_teardown(void)
{
        ck_assert_int_eq(nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

const char *
scratch_path(const char *name)
{
        char *path = paths[n_paths++];

        ck_assert_uint_lt(n_paths, sizeof(paths) / sizeof(paths[0]));
        (void)snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
        return path;
}

size_t
scratch_list(const char *path, const char *suffix, char **found, size_t max)
{
        DIR *entries = opendir(path);
        const struct dirent *entry;
        size_t n = 0;

        ck_assert_ptr_nonnull(entries);
        while (n < max && (entry = readdir(entries)) != NULL) {
                size_t len = strlen(entry->d_name);

                if (len > strlen(suffix) && strcmp(entry->d_name + len - strlen(suffix), suffix) == 0)
                        ck_assert_int_gt(asprintf(&found[n++], "%s/%s", path, entry->d_name), 0);
        }
        (void)closedir(entries);
        return n;
}

const char *
scratch_file(const char *name, const void *content, size_t len, mode_t mode)
{
        const char *path = scratch_path(name);
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(write(fd, content, len), (ssize_t)len);
        ck_assert_int_eq(fchmod(fd, mode), 0);
        (void)close(fd);
        return path;
}

char *
scratch_capture(void (*run)(void *arg), void *arg)
{
        FILE *file = tmpfile();
        int saved = dup(STDERR_FILENO);
        char *text;
        long len;

        ck_assert(file != NULL && saved >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
        run(arg);
        (void)fflush(stderr);
        ck_assert_int_ge(dup2(saved, STDERR_FILENO), 0);
        (void)close(saved);
        ck_assert(fseek(file, 0, SEEK_END) == 0 && (len = ftell(file)) >= 0);
        rewind(file);
        text = calloc(1, (size_t)len + 1);
        ck_assert(text != NULL && fread(text, 1, (size_t)len, file) == (size_t)len);
        (void)fclose(file);
        return text;
}

struct load_call {
        const char *path;
        struct config *config;
};

static void
call_load(void *arg)
{
        struct load_call *call = arg;

        call->config = config_load(call->path);
}

/* Cut the path and its colon from the beginning of each line. */
static void
cut_path(char *text, const char *path)
{
        size_t len = strlen(path) + 1;

        for (char *line = text; line != NULL && *line != '\0';) {
                if (strncmp(line, path, len - 1) == 0 && line[len - 1] == ':')
                        memmove(line, line + len, strlen(line + len) + 1);
                line = strchr(line, '\n');
                line = line == NULL ? NULL : line + 1;
        }
}

/* Put each remedy on the line of its message: one line for each finding. */
static void
join_remedies(char *text)
{
        for (char *at = strstr(text, "\n  remedy"); at != NULL; at = strstr(at, "\n  remedy"))
                *at = ';';
}

struct loaded
scratch_load_mode(const char *text, mode_t mode)
{
        struct load_call call = {scratch_file("gatepost.conf", text, strlen(text), mode), NULL};
        struct loaded loaded;

        loaded.messages = scratch_capture(call_load, &call);
        loaded.config = call.config;
        cut_path(loaded.messages, call.path);
        join_remedies(loaded.messages);
        return loaded;
}

struct loaded
scratch_load(const char *text)
{
        return scratch_load_mode(text, 0600);
}

struct loaded
scratch_load_more(const char *more)
{
        char text[8192];

        ck_assert_int_lt(snprintf(text, sizeof(text), "%s%s", scratch_minimal, more), (int)sizeof(text));
        return scratch_load(text);
}

void
scratch_release(struct loaded *loaded)
{
        config_free(loaded->config);
        free(loaded->messages);
}

size_t
scratch_count(const struct loaded *loaded)
{
        size_t n = 0;

        for (const char *p = loaded->messages; *p != '\0'; p++)
                n += *p == '\n';
        return n;
}

const char *
scratch_expect(const struct loaded *loaded, unsigned line, const char *words)
{
        static char text[1024];
        char prefix[16];
        size_t len = (size_t)snprintf(prefix, sizeof(prefix), "%u: ", line);

        for (const char *at = loaded->messages; *at != '\0'; at = strchr(at, '\n') + 1) {
                if (strncmp(at, prefix, len) != 0)
                        continue;
                (void)snprintf(text, sizeof(text), "%.*s", (int)strcspn(at, "\n"), at);
                if (strstr(text, words) != NULL)
                        return text;
        }
        ck_abort_msg("no message '%s...%s...' in:\n%s", prefix, words, loaded->messages);
}

/* A reason can be read at a glance. */
static void
expect_short(const char *messages)
{
        for (const char *at = messages; *at != '\0'; at = strchr(at, '\n') + 1) {
                const char *remedy = strstr(at, ";  remedy: ");
                size_t len = strcspn(at, "\n");

                if (remedy != NULL && remedy < at + len)
                        len = (size_t)(remedy - at);
                ck_assert_msg(len <= 200, "too long: %.*s", (int)len, at);
        }
}

void
scratch_expect_refused(const char *more, const char *words)
{
        struct loaded loaded = scratch_load_more(more);
        unsigned line = SCRATCH_MINIMAL_LINES;

        for (const char *p = more; *p != '\0'; p++)
                line += *p == '\n';
        ck_assert_msg(loaded.config == NULL, "was accepted:\n%s", more);
        (void)scratch_expect(&loaded, line, words);
        ck_assert_msg(scratch_count(&loaded) == 1, "more than one message for:\n%s\n%s", more,
                      loaded.messages);
        expect_short(loaded.messages);
        scratch_release(&loaded);
}
