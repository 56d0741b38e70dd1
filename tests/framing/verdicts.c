/*
 * framing-verdicts: print the messages that framing.c finds. Each line of stdin has the bytes of a connection
 * in hexadecimal; each line of stdout has the result as JSON. --cases prints the cases of cases.c instead;
 * --seeds DIRECTORY writes them to files, as seeds for the fuzzer, which uses the first byte as a parameter.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/mem.h"
#include "cases.h"
#include "messages.h"

static void
put_hex(struct json_writer *json, const char *name, const void *bytes, size_t len)
{
        char *text = mem_alloc(2 * len + 1);

        bytes_to_hex(bytes, len, text);
        json_member(json, name, text);
        free(text);
}

static void
put_headers(struct json_writer *json, const struct message *message)
{
        json_open_array(json, "headers");
        for (size_t i = 0; i < message->head.n_fields; i++) {
                const struct head_span *field = &message->head.fields[i];

                json_open_object(json, NULL);
                put_hex(json, "name", message->text + field->name, field->name_len);
                put_hex(json, "value", message->text + field->value, field->value_len);
                json_close_object(json);
        }
        json_close_array(json);
}

static void
put_message(struct json_writer *json, const struct message *message, const char *bytes)
{
        const char *line = bytes + message->start, *target = strchr(line, ' ') + 1;

        json_open_object(json, NULL);
        json_number(json, "start", (int64_t)message->start);
        json_number(json, "end", (int64_t)message->end);
        put_hex(json, "method", message->head.method, strlen(message->head.method));
        put_hex(json, "target", target, strcspn(target, " "));
        put_headers(json, message);
        put_hex(json, "body", message->body, message->body_len);
        json_close_object(json);
}

static void
judge(struct json_writer *json, const char *bytes, size_t len)
{
        static const struct framing_limits limits = FRAMING_CASES_LIMITS;
        struct messages messages;

        messages_read(&limits, bytes, len, 1, &messages);
        json_open_array(json, "messages");
        for (size_t i = 0; i < messages.n; i++)
                put_message(json, &messages.list[i], bytes);
        json_close_array(json);
        json_number(json, "status", messages.status);
        json_member(json, "reason", messages.reason);
        messages_clear(&messages);
}

static int
judge_line(const char *line)
{
        size_t len = strcspn(line, "\n") / 2;
        char *bytes = mem_alloc(len + 1);
        int result = bytes_from_hex(line, (uint8_t *)bytes, len);
        struct json_writer *json = json_new(0);

        json_open_object(json, NULL);
        judge(json, bytes, len);
        json_close_object(json);
        json_print(json);
        free(bytes);
        return result;
}

static void
print_cases(void)
{
        for (size_t i = 0; i < n_framing_cases; i++) {
                struct json_writer *json = json_new(0);

                json_open_object(json, NULL);
                json_member(json, "section", framing_cases[i].section);
                put_hex(json, "bytes", framing_cases[i].bytes, framing_cases[i].len);
                json_number(json, "messages", framing_cases[i].n_messages);
                json_number(json, "status", framing_cases[i].status);
                json_close_object(json);
                json_print(json);
        }
}

static int
write_seeds(const char *directory)
{
        for (size_t i = 0; i < n_framing_cases; i++) {
                char *path = mem_printf("%s/case-%03zu", directory, i);
                FILE *file = fopen(path, "w");

                free(path);
                if (file == NULL)
                        return -1;
                (void)fputc((int)(i % 32), file);
                (void)fwrite(framing_cases[i].bytes, 1, framing_cases[i].len, file);
                if (fclose(file) != 0)
                        return -1;
        }
        return 0;
}

int
main(int argc, char **argv)
{
        char *line = NULL;
        size_t size = 0;
        int result = 0;

        if (argc > 1 && strcmp(argv[1], "--cases") == 0) {
                print_cases();
                return EXIT_SUCCESS;
        }
        if (argc > 2 && strcmp(argv[1], "--seeds") == 0)
                return write_seeds(argv[2]) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
        while (result == 0 && getline(&line, &size, stdin) > 0)
                result = judge_line(line);
        free(line);
        return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
