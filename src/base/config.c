/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/config.h"

#include "base/atomic-file.h"
#include "base/directory.h"
#include "base/macros.h"
#include "base/parse.h"
#include "base/rooted.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <ini.h>

#define CONFIG_FILE_MAX (1024U * 1024)

/* Highest precedence first. */
static const char *const directories[] = {
        "/etc/headstart",
        "/run/headstart",
        "/usr/local/lib/headstart",
        "/usr/lib/headstart",
};

Config config_default(void)
{
    return (Config){
            .half_life = 168 * USEC_PER_HOUR,
            .budget = CONFIG_BUDGET_AUTO,
            .mem_total_percent = -10,
            .mem_free_percent = 100,
            .mem_cached_percent = 30,
            .boot_policy = _POLICY_INVALID,
            .login_policy = _POLICY_INVALID,
            .deadline = 10 * USEC_PER_SEC,
            .control_interval = 0,
            .cycle = 20 * USEC_PER_SEC,
            .predict = true,
            .scan = true,
            .battery = false,
            .min_size_bytes = 2000000,
            .save_interval = USEC_PER_HOUR,
            .session_budget = CONFIG_BUDGET_AUTO,
    };
}

int config_parse_budget(const char *s, ConfigBudget *ret_mode, uint64_t *ret_bytes)
{
    uint64_t bytes;
    int r;

    if (strcmp(s, "auto") == 0) {
        *ret_mode = CONFIG_BUDGET_AUTO;
        return 0;
    }
    if (strcmp(s, "thesis") == 0) {
        *ret_mode = CONFIG_BUDGET_THESIS;
        return 0;
    }
    r = parse_bytes(s, &bytes);
    if (r < 0)
        return r;
    if (bytes == 0)
        return -EINVAL;
    *ret_mode = CONFIG_BUDGET_BYTES;
    *ret_bytes = bytes;
    return 0;
}

int config_parse_policy(const char *s, Stage stage, Policy *ret)
{
    Policy p;

    if (strcmp(s, "auto") == 0) {
        *ret = _POLICY_INVALID;
        return 0;
    }
    p = policy_from_string(s);
    if (p < 0 || (p == POLICY_GATE && stage != STAGE_BOOT))
        return -EINVAL;
    *ret = p;
    return 0;
}

/* --- one key a function; each returns NULL or what is wrong with the value -------------------- */

typedef const char *(*key_parser)(Config *c, const char *value);

static const char *parse_half_life(Config *c, const char *value)
{
    usec_t t;

    if (parse_timespan(value, &t) < 0 || t == 0 || t == USEC_INFINITY)
        return "not a time span above zero (as in 168h)";
    c->half_life = t;
    return NULL;
}

static const char *parse_budget(Config *c, const char *value)
{
    if (config_parse_budget(value, &c->budget, &c->budget_bytes) < 0)
        return "neither auto, thesis nor a number of bytes (as in 256M)";
    return NULL;
}

static const char *parse_share(int *percent, const char *value)
{
    if (parse_percent(value, percent) < 0)
        return "not a percentage from -100% to 100%";
    return NULL;
}

static const char *parse_mem_total(Config *c, const char *value)
{
    return parse_share(&c->mem_total_percent, value);
}

static const char *parse_mem_free(Config *c, const char *value)
{
    return parse_share(&c->mem_free_percent, value);
}

static const char *parse_mem_cached(Config *c, const char *value)
{
    return parse_share(&c->mem_cached_percent, value);
}

static const char *parse_boot_policy(Config *c, const char *value)
{
    if (config_parse_policy(value, STAGE_BOOT, &c->boot_policy) < 0)
        return "none of auto, off, metadata, concurrent, gate, idle";
    return NULL;
}

static const char *parse_login_policy(Config *c, const char *value)
{
    if (config_parse_policy(value, STAGE_LOGIN, &c->login_policy) < 0)
        return "none of auto, off, metadata, concurrent, idle";
    return NULL;
}

static const char *parse_deadline(Config *c, const char *value)
{
    usec_t t;

    /* Every wait is bounded, this one above all: it holds the boot. */
    if (parse_timespan(value, &t) < 0 || t > CONFIG_DEADLINE_MAX)
        return "not a time span of at most 60s";
    c->deadline = t;
    return NULL;
}

static const char *parse_control_interval(Config *c, const char *value)
{
    uint64_t n;

    if (parse_u64(value, &n) < 0 || n > UINT32_MAX)
        return "not a number of sessions";
    c->control_interval = (uint32_t)n;
    return NULL;
}

static const char *parse_cycle(Config *c, const char *value)
{
    usec_t t;

    if (parse_timespan(value, &t) < 0 || t < CONFIG_CYCLE_MIN || t > CONFIG_CYCLE_MAX)
        return "not a time span from 1s to 1h";
    c->cycle = t;
    return NULL;
}

static const char *parse_switch(bool *b, const char *value)
{
    if (parse_boolean(value, b) < 0)
        return "neither yes nor no";
    return NULL;
}

static const char *parse_predict(Config *c, const char *value)
{
    return parse_switch(&c->predict, value);
}

static const char *parse_scan(Config *c, const char *value)
{
    return parse_switch(&c->scan, value);
}

static const char *parse_battery(Config *c, const char *value)
{
    return parse_switch(&c->battery, value);
}

static const char *parse_min_size(Config *c, const char *value)
{
    uint64_t bytes;

    if (parse_bytes(value, &bytes) < 0)
        return "not a number of bytes (as in 2M)";
    c->min_size_bytes = bytes;
    return NULL;
}

static const char *parse_save_interval(Config *c, const char *value)
{
    usec_t t;

    if (parse_timespan(value, &t) < 0 || t < 60 * USEC_PER_SEC)
        return "neither a time span of at least 1min nor infinity";
    c->save_interval = t;
    return NULL;
}

static const char *parse_session_budget(Config *c, const char *value)
{
    if (config_parse_budget(value, &c->session_budget, &c->session_budget_bytes) < 0)
        return "neither auto, thesis nor a number of bytes (as in 256M)";
    return NULL;
}

/* As systemd's lists: several assignments add up, an empty one begins anew. */
static const char *parse_exclude(Config *c, const char *value)
{
    size_t l = strlen(c->exclude), n;

    if (!*value) {
        c->exclude[0] = 0;
        return NULL;
    }
    for (const char *w = value; *w; w += n, w += strspn(w, " \t")) {
        n = strcspn(w, " \t");
        if (w[*w == '!'] != '/')
            return "not a list of absolute paths, each with or without a ! before it";
    }
    n = strlen(value);
    if (l + n + 2 > sizeof(c->exclude))
        return "too many prefixes";
    c->exclude[l] = ' ';
    memcpy(c->exclude + l + 1, value, n + 1);
    return NULL;
}

static const struct {
    const char *section, *key;
    key_parser parse;
} keys[] = {
        {"Model", "HalfLife", parse_half_life},
        {"Memory", "Budget", parse_budget},
        {"Memory", "MemTotal", parse_mem_total},
        {"Memory", "MemFree", parse_mem_free},
        {"Memory", "MemCached", parse_mem_cached},
        {"Replay", "BootPolicy", parse_boot_policy},
        {"Replay", "LoginPolicy", parse_login_policy},
        {"Replay", "Deadline", parse_deadline},
        {"Replay", "ControlInterval", parse_control_interval},
        {"Session", "Cycle", parse_cycle},
        {"Session", "Predict", parse_predict},
        {"Session", "Scan", parse_scan},
        {"Session", "MinSize", parse_min_size},
        {"Session", "Budget", parse_session_budget},
        {"Session", "Exclude", parse_exclude},
        {"Session", "Battery", parse_battery},
        {"Session", "SaveInterval", parse_save_interval},
};

/* --- one file --------------------------------------------------------------------------------- */

typedef struct Reader {
    Config *config;
    const char *file;
    const char *next; /* what is still to be read */
    unsigned line;    /* of what was read last */
    config_warning_t warn;
    void *userdata;
} Reader;

static void _printf_(3, 4) warn_line(const Reader *r, unsigned line, const char *format, ...)
{
    char message[256];
    va_list ap;

    if (!r->warn)
        return;
    va_start(ap, format);
    vsnprintf(message, sizeof(message), format, ap);
    va_end(ap);
    r->warn(r->userdata, r->file, line, message);
}

/* fgets() over memory for inih, which tells its handler no line numbers, so they are counted here.
 * A line that does not fit inih's buffer would be taken for two: it is dropped. */
static char *next_line(char *str, int num, void *stream)
{
    Reader *r = stream;

    while (*r->next) {
        size_t l = strcspn(r->next, "\n");
        const char *line = r->next;

        r->next += l + (line[l] == '\n');
        r->line++;
        if (l + 2 > (size_t)num) {
            warn_line(r, r->line, "line longer than %d characters, ignoring", num - 2);
            continue;
        }
        memcpy(str, line, l);
        str[l] = '\n';
        str[l + 1] = 0;

        /* inih takes an indented line for one more value of the key above; for us it is a key. */
        size_t blank = strspn(str, " \t");
        memmove(str, str + blank, l + 2 - blank);

        /* What is no section, comment or assignment, inih reports for the first line only. */
        if (!strchr("[;#\n\r", str[0]) && !strpbrk(str, "=:")) {
            warn_line(r, r->line, "neither a section nor an assignment, ignoring");
            continue;
        }
        if (str[0] == '[' && !strchr(str, ']')) {
            /* What follows belongs to no section, least of all to the one before. */
            warn_line(r, r->line, "section without ], ignoring");
            strcpy(str, "[]\n");
        }
        return str;
    }
    return NULL;
}

static int take_value(void *userdata, const char *section, const char *name, const char *value)
{
    Reader *r = userdata;

    for (size_t i = 0; i < ELEMENTSOF(keys); i++)
        if (strcmp(keys[i].section, section) == 0 && strcmp(keys[i].key, name) == 0) {
            const char *wrong = keys[i].parse(r->config, value);

            if (wrong)
                warn_line(r, r->line, "%s=%s: %s, ignoring", name, value, wrong);
            return 1;
        }
    warn_line(r, r->line, "unknown key %s in section [%s], ignoring", name, section);
    return 1;
}

static void read_text(Config *c, const char *file, const char *text, config_warning_t warn,
                      void *userdata)
{
    Reader r = {.config = c, .file = file, .next = text, .warn = warn, .userdata = userdata};

    /* next_line() has let nothing through that inih could fail on. */
    (void)ini_parse_stream(next_line, &r, take_value, &r);
}

/* --- which files ------------------------------------------------------------------------------ */

/* 1: read, 0: not there. What is there but cannot be read is reported and counts as read. */
static int read_file(int root_fd, Config *c, const char *path, config_warning_t warn,
                     void *userdata)
{
    _cleanup_free_ char *text = NULL;
    Reader r = {.file = path, .warn = warn, .userdata = userdata};
    _cleanup_close_ int fd = -EBADF;
    struct stat st;
    size_t size;
    int k;

    fd = rooted_open(root_fd, path, O_PATH | O_CLOEXEC);
    if (fd == -ENOENT || fd == -ENOTDIR) {
        /* A link that leads nowhere masks as one to /dev/null does. */
        fd = rooted_open(root_fd, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        return fd >= 0;
    }
    if (fd >= 0 && fstat(fd, &st) < 0)
        return -errno;
    if (fd >= 0 && S_ISCHR(st.st_mode)) /* /dev/null masks */
        return 1;
    if (fd >= 0 && !S_ISREG(st.st_mode))
        k = -EBADMSG;
    else if (fd < 0)
        k = fd;
    else
        k = rooted_read(root_fd, path, CONFIG_FILE_MAX, &text, &size);
    if (k == -ENOMEM)
        return k;
    if (k < 0)
        warn_line(&r, 0, "%s, ignoring", k == -EBADMSG ? "not a regular file" : strerror(-k));
    else if (strlen(text) != size)
        warn_line(&r, 0, "not a text file, ignoring");
    else
        read_text(c, path, text, warn, userdata);
    return 1;
}

typedef struct DropIn {
    char *name;
    unsigned directory; /* index: the lower one wins */
} DropIn;

typedef struct DropIns {
    DropIn *items;
    size_t n, allocated;
} DropIns;

static void drop_ins_done(DropIns *d)
{
    for (size_t i = 0; i < d->n; i++)
        free(d->items[i].name);
    free(d->items);
    *d = (DropIns){0};
}

static int compare_drop_ins(const void *a, const void *b)
{
    const DropIn *x = a, *y = b;
    int k = strcmp(x->name, y->name);

    return k ? k : (x->directory > y->directory) - (x->directory < y->directory);
}

static int list_drop_ins(int root_fd, unsigned directory, DropIns *d)
{
    _cleanup_closedir_ DIR *dir = NULL;
    char path[PATH_MAX];
    const struct dirent *e;
    int r;

    snprintf(path, sizeof(path), "%s/headstart.conf.d", directories[directory]);
    r = directory_from_fd(rooted_open(root_fd, path, O_RDONLY | O_DIRECTORY), &dir);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    while (r == 0 && (e = directory_next(dir))) {
        size_t l = strlen(e->d_name);

        if (e->d_name[0] == '.' || l < 6 || strcmp(e->d_name + l - 5, ".conf") != 0)
            continue;
        r = grow_array(&d->items, &d->allocated, d->n + 1, sizeof(DropIn));
        if (r < 0)
            break;
        char *name = strdup(e->d_name);
        if (!name)
            r = -ENOMEM;
        else
            d->items[d->n++] = (DropIn){.name = name, .directory = directory};
    }
    return r;
}

int config_load(int root_fd, config_warning_t warn, void *userdata, Config *ret)
{
    _cleanup_(drop_ins_done) DropIns drop_ins = {0};
    Config c = config_default();
    char path[PATH_MAX];
    int r = 0;

    for (size_t i = 0; i < ELEMENTSOF(directories) && r == 0; i++) {
        snprintf(path, sizeof(path), "%s/headstart.conf", directories[i]);
        r = read_file(root_fd, &c, path, warn, userdata);
    }
    if (r < 0)
        return r;

    for (unsigned i = 0; i < ELEMENTSOF(directories); i++) {
        r = list_drop_ins(root_fd, i, &drop_ins);
        if (r < 0)
            return r;
    }
    if (drop_ins.n > 0)
        qsort(drop_ins.items, drop_ins.n, sizeof(DropIn), compare_drop_ins);
    for (size_t i = 0; i < drop_ins.n; i++) {
        const DropIn *d = drop_ins.items + i;

        if (i > 0 && strcmp(d[-1].name, d->name) == 0)
            continue; /* masked by the directory before */
        snprintf(path, sizeof(path), "%s/headstart.conf.d/%s", directories[d->directory], d->name);
        r = read_file(root_fd, &c, path, warn, userdata);
        if (r < 0)
            return r;
    }
    *ret = c;
    return 0;
}
