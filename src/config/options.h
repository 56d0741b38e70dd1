#ifndef CONFIG_OPTIONS_H
#define CONFIG_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

/*
 * The table of all options. The parser, the dump, and the tests of the sample file and the man page use it.
 */
enum option_type {
        OPTION_NAME,         /* min to max letters, digits, dots, hyphens, underscores */
        OPTION_NUMBER,       /* uint64_t */
        OPTION_SIZE,         /* uint64_t, bytes */
        OPTION_DURATION,     /* uint64_t, milliseconds */
        OPTION_SWITCH,       /* int; on or off */
        OPTION_REQUIRED,     /* int; required or off */
        OPTION_ROLES,        /* unsigned */
        OPTION_LEVEL,        /* enum log_level */
        OPTION_LISTEN,       /* repeatable */
        OPTION_PROXY,        /* an address, a network, or unix; repeatable */
        OPTION_ADMIN,        /* a listen address, or off */
        OPTION_PATH,         /* of a URL */
        OPTION_HEADER,       /* a prefix of header names */
        OPTION_SECRET,       /* repeatable */
        OPTION_SECRET_FILE,  /* repeatable */
        OPTION_WEBHOOK_ID,   /* repeatable */
        OPTION_POINTER,      /* struct pointer */
        OPTION_KEY,          /* the key rule */
        OPTION_CE_SOURCE,    /* a URI-reference of at most max bytes */
        OPTION_CE_TYPE,      /* a prefix of ce_type of at most max bytes */
        OPTION_CE_SCHEMA,    /* the beginning of a URI, of at most max bytes */
        OPTION_URL,          /* https, or http to a loopback host */
        OPTION_API_KEY,      /* of the service */
        OPTION_DIRECTORY,    /* a directory that the daemon writes to */
        OPTION_FILE,         /* a file that check.c or the command line reads */
        OPTION_API_KEY_FILE, /* a secret file that the command line reads */
};

enum option_flag {
        OPTION_REPEATABLE = 1,
        OPTION_RESTART = 2, /* a change needs a restart; SIGHUP does not apply it */
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

/* Return the option, or NULL. */
const struct option_row *options_find(const char *section, const char *name);

/* Return the closest name, or NULL if none is close. */
const char *options_suggest(const char *section, const char *name);
const char *options_suggest_section(const char *section);

/* Return the section that has an option of exactly this name, or NULL. */
const char *options_section_of(const char *name);

int options_is_section(const char *section);

/* Return whether a section has options of any name: [events], [kafka]. */
int options_is_free_form(const char *section);

#endif
