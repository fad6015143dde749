/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* headstart.conf and its drop-ins, found as systemd finds its own (systemd.unit(5),
 * "CONFIGURATION DIRECTORIES AND PRECEDENCE" of systemd-system.conf(5)):
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

typedef enum ConfigBudget {
    CONFIG_BUDGET_AUTO,   /* from MemAvailable */
    CONFIG_BUDGET_THESIS, /* max(0, total * MemTotal + free * MemFree) + cached * MemCached
                           * (thesis 4.3.2)
                           */
    CONFIG_BUDGET_BYTES,  /* what the administrator says */
    _CONFIG_BUDGET_MAX,
    _CONFIG_BUDGET_INVALID = -EINVAL,
} ConfigBudget;

typedef struct Config {
    /* [Model] */
    usec_t half_life; /* after so much time an observation counts half (thesis 4.4); > 0 */
    /* [Memory] */
    ConfigBudget budget;
    uint64_t budget_bytes; /* CONFIG_BUDGET_BYTES */
    int mem_total_percent; /* the thesis's formula, -100..100 each */
    int mem_free_percent;
    int mem_cached_percent;
    /* [Replay] */
    Policy boot_policy;        /* _POLICY_INVALID: auto */
    Policy login_policy;       /* the same */
    usec_t deadline;           /* of the gate */
    uint32_t control_interval; /* one of so many boots is a control session; 0: none */
    /* [Session] */
    usec_t cycle; /* between two predictions */
    bool predict;
    bool scan;
    bool battery;
    uint64_t min_size_bytes; /* of an application's maps */
    usec_t save_interval;    /* USEC_INFINITY: at the end only */
    ConfigBudget session_budget;
    uint64_t session_budget_bytes;    /* CONFIG_BUDGET_BYTES */
    char exclude[CONFIG_EXCLUDE_MAX]; /* prefixes, a blank before each; "!": an exception */
} Config;

/* Called for every line that cannot be used; it is ignored then. `file` is the path below the root,
 * `line` counts from 1 (0: the whole file), `message` has no newline. */
typedef void (*config_warning_t)(void *userdata, const char *file, unsigned line,
                                 const char *message);

/* The defaults: what data/headstart.conf shows as comments. */
Config config_default(void);

/* Defaults, then the files below root_fd (a directory, or AT_FDCWD for "/"). Bad lines, unknown
 * keys and files that cannot be read are reported through `warn` (may be NULL) and ignored.
 * 0 or -ENOMEM; *ret is written only on success. */
int config_load(int root_fd, config_warning_t warn, void *userdata, Config *ret);

/* A budget as in the file: "auto", "thesis" or a byte count > 0. 0, -EINVAL, -ERANGE; outputs
 * untouched on failure; *ret_bytes is written for CONFIG_BUDGET_BYTES only. */
int config_parse_budget(const char *s, ConfigBudget *ret_mode, uint64_t *ret_bytes);

/* "auto" (_POLICY_INVALID) or a policy that this stage can have: "gate" is for boot only. 0 or
 * -EINVAL. */
int config_parse_policy(const char *s, Stage stage, Policy *ret);
