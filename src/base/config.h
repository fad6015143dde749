/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* headstart.conf and its drop-ins, in the order of systemd's configuration files ("CONFIGURATION
 * DIRECTORIES AND PRECEDENCE" of systemd-system.conf(5)):
 *
 *   - headstart.conf: the first of /etc/headstart, /run/headstart, /usr/local/lib/headstart,
 *     /usr/lib/headstart that has one; the others are not read.
 *   - headstart.conf.d, files *.conf, of all four: sorted by file name, whatever the directory, and
 * read after headstart.conf, so that the later name wins. Of one name in several directories only
 *     the one in the first directory (of the order above) is read; a link to /dev/null, or an
 *     empty file, masks it.
 *
 * A key is added here when something uses it, and documented in headstart.conf(5) and
 * data/headstart.conf. */

#include "base/time-util.h"
#include "base/vocabulary.h"

#include <stdbool.h>

#define CONFIG_EXCLUDE_MAX 4096U /* bytes of all prefixes, with a NUL */

/* The shortest and the longest cycle that are accepted. */
#define CONFIG_CYCLE_MIN (1 * USEC_PER_SEC)
#define CONFIG_CYCLE_MAX (1 * USEC_PER_HOUR)

/* The longest deadline that is accepted: it holds the boot. */
#define CONFIG_DEADLINE_MAX (60 * USEC_PER_SEC)

typedef enum ConfigBudgetMode {
    CONFIG_BUDGET_AUTO,   /* from MemAvailable */
    CONFIG_BUDGET_THESIS, /* max(0, total * MemTotal + free * MemFree) + cached * MemCached
                           * (thesis 4.3.2)
                           */
    CONFIG_BUDGET_BYTES,  /* as many as the administrator says */
    _CONFIG_BUDGET_MAX,
    _CONFIG_BUDGET_INVALID = -EINVAL,
} ConfigBudgetMode;

typedef struct ConfigBudget {
    ConfigBudgetMode mode;
    uint64_t bytes; /* with CONFIG_BUDGET_BYTES */
} ConfigBudget;

typedef struct Config {
    /* [Model] */
    usec_t halflife_usec; /* an observation of that age counts half (thesis 4.4); > 0 */
    /* [Memory] */
    ConfigBudget budget;
    int mem_total_percent; /* of the thesis's formula, -100..100 each */
    int mem_free_percent;
    int mem_cached_percent;
    /* [Replay] */
    Policy boot_policy;        /* _POLICY_INVALID: auto */
    Policy login_policy;       /* the same */
    usec_t deadline_usec;      /* a gated boot waits at most that long */
    uint32_t control_interval; /* one boot of that many is a control session; 0: none */
    /* [Session] */
    usec_t cycle_usec; /* between two predictions */
    bool predict;
    bool scan;
    bool battery;
    uint64_t min_size_bytes;   /* of an application's maps */
    usec_t save_interval_usec; /* USEC_INFINITY: only at the end of a session */
    ConfigBudget session_budget;
    char exclude[CONFIG_EXCLUDE_MAX]; /* prefixes, a blank before each; "!": an exception */
} Config;

#define CONFIG_KEYS 17

/* Where the value of a key was set last; file NULL: nowhere, it is the default. */
typedef struct ConfigSource {
    char *file; /* the path below the root */
    unsigned line;
} ConfigSource;

typedef struct ConfigSources {
    ConfigSource keys[CONFIG_KEYS];
} ConfigSources;

void config_sources_done(ConfigSources *s);

/* Called for every line that cannot be used and is ignored. `file` is the path below the root,
 * `line` counts from 1 (0: the whole file), `message` has no newline. */
typedef void (*config_warning_t)(void *userdata, const char *file, unsigned line,
                                 const char *message);

/* The defaults: what data/headstart.conf shows as comments. */
Config config_default(void);

/* Defaults, then the files below root_fd (a directory, or AT_FDCWD for "/"). Bad lines, unknown
 * keys and files that cannot be read are reported through `warn` (may be NULL) and ignored. 0 or
 * -ENOMEM; *ret and *ret_sources (may be NULL, else the caller frees it) are written only on
 * success. */
int config_load(int root_fd, config_warning_t warn, void *userdata, Config *ret,
                ConfigSources *ret_sources);

/* Section and name of a key, by its index below CONFIG_KEYS. */
const char *config_section(size_t index);
const char *config_key(size_t index);

/* Its value as a file would have it. The caller frees it. NULL if out of memory. */
char *config_format(const Config *c, size_t index);

/* A budget as in the file: "auto", "thesis" or a byte count > 0. 0, -EINVAL, -ERANGE; *ret is
 * untouched on failure. */
int config_parse_budget(const char *s, ConfigBudget *ret);

/* "auto" (_POLICY_INVALID) or a policy that this stage can have: "gate" is for boot only. 0 or
 * -EINVAL. */
int config_parse_policy(const char *s, Stage stage, Policy *ret);
