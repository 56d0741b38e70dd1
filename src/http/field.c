#include "http/field.h"

#include <string.h>
#include <strings.h>

/* tchar, RFC 9110 section 5.6.2. */
static const char is_token_char[256] = {
    ['a' ... 'z'] = 1, ['A' ... 'Z'] = 1, ['0' ... '9'] = 1, ['!'] = 1, ['#'] = 1, ['$'] = 1,
    ['%'] = 1,         ['&'] = 1,         ['\''] = 1,        ['*'] = 1, ['+'] = 1, ['-'] = 1,
    ['.'] = 1,         ['^'] = 1,         ['_'] = 1,         ['`'] = 1, ['|'] = 1, ['~'] = 1,
};

size_t
field_token_len(const char *text, size_t len)
{
        size_t n = 0;

        while (n < len && is_token_char[(unsigned char)text[n]])
                n++;
        return n;
}

static int
is_space(char c)
{
        return c == ' ' || c == '\t';
}

void
field_trim(const char **text, size_t *len)
{
        while (*len > 0 && is_space(**text)) {
                (*text)++;
                (*len)--;
        }
        while (*len > 0 && is_space((*text)[*len - 1]))
                (*len)--;
}

const char *
field_parse(const char *line, size_t len, struct field *field)
{
        size_t name_len = field_token_len(line, len), value_len;
        const char *value;

        if (name_len == 0 || name_len >= len || line[name_len] != ':')
                return "a header line is malformed";
        value = line + name_len + 1;
        value_len = len - name_len - 1;
        field_trim(&value, &value_len);
        for (size_t i = 0; i < value_len; i++) {
                unsigned char c = (unsigned char)value[i];

                if ((c < 0x20 && c != '\t') || c == 0x7f)
                        return "a header has a control character";
        }
        *field = (struct field){line, name_len, value, value_len};
        return NULL;
}

static int
is_text(const char *text, size_t len, const char *wanted)
{
        return strlen(wanted) == len && strncasecmp(text, wanted, len) == 0;
}

int
field_is(const struct field *field, const char *name)
{
        return is_text(field->name, field->name_len, name);
}

int
field_value_is(const struct field *field, const char *value)
{
        return is_text(field->value, field->value_len, value);
}

int
field_may_trail(const struct field *field)
{
        static const char *const never[] = {
            "Connection", "Content-Length",    "Expect",  "Host",   "Max-Forwards",
            "TE",         "Transfer-Encoding", "Trailer", "Upgrade"};

        for (size_t i = 0; i < ARRAY_LEN(never); i++) {
                if (field_is(field, never[i]))
                        return 0;
        }
        return 1;
}
