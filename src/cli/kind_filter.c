#include "cli/kind_filter.h"

#include <string.h>

int
kind_filter_matches(const char *asked, const char *kind, size_t len)
{
        size_t asked_len = strlen(asked);

        if (strcmp(asked, "*") == 0)
                return 1;
        if (asked_len >= 2 && strcmp(asked + asked_len - 2, ".*") == 0)
                return len >= asked_len && memcmp(asked, kind, asked_len - 1) == 0;
        return len == asked_len && memcmp(asked, kind, len) == 0;
}

int
kind_filter_concerns(const char *asked, const struct topic_table *topics, const struct topic_rule *rule)
{
        size_t len = strlen(asked);

        if (kind_filter_matches(asked, rule->pattern, strlen(rule->pattern)))
                return 1;
        if (strchr(asked, '*') == NULL)
                return topic_table_find(topics, asked, len) == rule;
        /* A pattern within the rule's: a.b.* within a.* */
        return len >= 2 && strcmp(asked + len - 2, ".*") == 0 &&
               kind_filter_matches(rule->pattern, asked, len);
}
