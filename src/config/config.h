/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads headstart.conf and its drop-ins with the rules of systemd's configuration files
 * ("CONFIGURATION DIRECTORIES AND PRECEDENCE" of systemd-system.conf(5)):
 *
 *   - headstart.conf is read from the first of /etc/headstart, /run/headstart,
 *     /usr/local/lib/headstart and /usr/lib/headstart that contains it.
 *   - Drop-ins are the files *.conf in the directory headstart.conf.d of each of these four.
 *     They are read after headstart.conf, sorted by file name whatever their directory, so the
 *     later name wins. If several directories contain a file of the same name, only the one in the
 *     first directory is read. If it is empty or a link to /dev/null, it masks the others.
 *
 * Add a key here when code uses it, and document it in headstart.conf(5) and
 * data/headstart.conf. */

#include "base/time-util.h"
#include "base/vocabulary.h"
#include "plan/budget.h"

#include <stdbool.h>

#define CONFIG_EXCLUDE_MAX 4096U /* bytes of all prefixes, with a NUL */

/* The longest accepted half-life. The sums of the model do not overflow with it. */
#define CONFIG_HALFLIFE_MAX (UINT64_C(36500) * 24 * USEC_PER_HOUR)

/* The shortest and the longest accepted cycle. */
#define CONFIG_CYCLE_MIN (1 * USEC_PER_SEC)
#define CONFIG_CYCLE_MAX (1 * USEC_PER_HOUR)

/* The longest accepted deadline. The limit is low because a gated boot waits for the deadline. */
#define CONFIG_DEADLINE_MAX (60 * USEC_PER_SEC)

#define CONFIG_CONTROL_AUTO UINT32_MAX

/* LaunchReplay= */
typedef enum LaunchMode {
    LAUNCH_MODE_NO,
    LAUNCH_MODE_YES,  /* the launch set of each application that starts is read */
    LAUNCH_MODE_AUTO, /* only the sets of applications that are predicted to gain */
} LaunchMode;

typedef struct Config {
    /* [Model] */
    usec_t halflife_usec; /* an observation of this age counts half (thesis 4.4); > 0 */
    /* [Memory] */
    BudgetParameters budget; /* percentages from -100 to 100 */
    /* [Replay] */
    Policy boot_policy;   /* _POLICY_INVALID: auto */
    Policy login_policy;  /* _POLICY_INVALID: auto */
    usec_t deadline_usec; /* longest wait of a gated boot */
    /* with a number N, one of N boots or logins is a control session; 0: none is;
     * CONFIG_CONTROL_AUTO: the history determines N (measure/benefit.h) */
    uint32_t control_interval;
    /* [Session] */
    usec_t cycle_usec; /* time between two predictions */
    bool predict;
    bool scan;
    bool battery;
    LaunchMode launch_replay;
    uint64_t min_size_bytes;          /* applications that use fewer bytes are ignored */
    usec_t save_interval_usec;        /* USEC_INFINITY: save only at the end of a session */
    BudgetParameters session_budget;  /* with the percentages of [Memory] */
    int maximum_waste_percent;        /* 0 to 100; 100: no bound (predict/selection.h) */
    char exclude[CONFIG_EXCLUDE_MAX]; /* prefixes, each after a blank; "!" marks an exception */
} Config;

#define CONFIG_KEYS 19

/* The place where the value of a key was set last. If `file` is NULL, the value is the default. */
typedef struct ConfigSource {
    char *file; /* the path below the root */
    unsigned line;
} ConfigSource;

typedef struct ConfigSources {
    ConfigSource keys[CONFIG_KEYS];
} ConfigSources;

void config_sources_done(ConfigSources *s);

/* Receives every line that is ignored because it cannot be used. `file` is the path below the root,
 * `line` counts from 1 (0: the whole file), and `message` has no newline. */
typedef void (*config_warning_t)(void *userdata, const char *file, unsigned line,
                                 const char *message);

/* Returns the defaults, which data/headstart.conf shows as comments. */
Config config_default(void);

/* Starts with the defaults and reads the files below root_fd (a directory, or AT_FDCWD for "/").
 * Bad lines, unknown keys and files that cannot be read are reported to `warn` (may be NULL) and
 * ignored. Returns 0, -ENOMEM, or another negative errno. *ret and *ret_sources are written only on
 * success. ret_sources may be NULL; otherwise the caller frees *ret_sources. */
int config_load(int root_fd, config_warning_t warn, void *userdata, Config *ret,
                ConfigSources *ret_sources);

/* Returns the time of the last change of any of these files, or of a directory of drop-ins, in
 * nanoseconds of the wall clock; 0 if there is none. Returns UINT64_MAX if memory runs out. */
uint64_t config_changed_nsec(int root_fd);

/* Return section and name of a key by its index, which is below CONFIG_KEYS. */
const char *config_section(size_t index);
const char *config_key(size_t index);

/* Formats the key's value as a configuration file states it. The caller frees the result. Returns
 * NULL if memory runs out. */
char *config_format(const Config *c, size_t index);

/* Parses a budget as a configuration file states it: "auto", "thesis" or a byte count > 0. Sets the
 * formula and the fixed number of bytes, not the percentages. Returns 0, -EINVAL or -ERANGE; *b is
 * untouched on failure. */
int config_parse_budget(const char *s, BudgetParameters *b);

/* Parses "auto" (_POLICY_INVALID) or a policy that this stage accepts; only the boot accepts
 * "gate". Returns 0 or -EINVAL. */
int config_parse_policy(const char *s, Stage stage, Policy *ret);
