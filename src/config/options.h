#ifndef CONFIG_OPTIONS_H
#define CONFIG_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

/* The table of all options. The parser, the dump, and the checks of the sample file and the man page read it. */
enum option_type {
        OPTION_NAME,         /* letters, digits, dot, hyphen, underscore; min to max of them */
        OPTION_NUMBER,       /* uint64_t */
        OPTION_SIZE,         /* uint64_t, bytes */
        OPTION_DURATION,     /* uint64_t, milliseconds */
        OPTION_SWITCH,       /* int; on or off */
        OPTION_REQUIRED,     /* int; required or off */
        OPTION_ROLES,        /* unsigned */
        OPTION_LEVEL,        /* enum log_level */
        OPTION_LISTEN,       /* repeatable */
        OPTION_PROXY,        /* addresses, a network of them, or unix; repeatable */
        OPTION_ADMIN,        /* a listen address, or off */
        OPTION_PATH,         /* of a URL */
        OPTION_HEADER,       /* a prefix of header names */
        OPTION_SECRET,       /* repeatable */
        OPTION_SECRET_FILE,  /* repeatable */
        OPTION_WEBHOOK_ID,   /* repeatable */
        OPTION_POINTER,      /* struct pointer */
        OPTION_KEY,          /* the key rule */
        OPTION_URL,          /* https, or http to a loopback host */
        OPTION_API_KEY,      /* of the service */
        OPTION_FILE,         /* a file that is looked into later, or elsewhere */
        OPTION_PRIVATE_FILE, /* a file with a secret that is used elsewhere */
};

enum option_flag {
        OPTION_REPEATABLE = 1,
        OPTION_RESTART = 2, /* SIGHUP does not take over what it is now: that needs a restart */
};

struct option_row {
        const char *section;
        const char *name;
        enum option_type type;
        const char *fallback; /* the default; NULL: none, or one that depends on others (then help says so) */
        uint64_t min;
        uint64_t max;
        size_t offset;  /* in struct config, or in struct config_source for [source NAME] */
        unsigned flags; /* of option_flag */
        const char *help;
};

size_t options_count(void);
const struct option_row *options_at(size_t index);

/* NULL when there is none of that name. */
const struct option_row *options_find(const char *section, const char *name);

/* The closest names, for suggestions; NULL when none is close. */
const char *options_suggest(const char *section, const char *name);
const char *options_suggest_section(const char *section);

/* The section that has an option of that very name, or NULL. */
const char *options_section_of(const char *name);

int options_is_section(const char *section);

/* Whether a section takes options by names of its own: [events], [kafka]. */
int options_is_free_form(const char *section);

#endif
