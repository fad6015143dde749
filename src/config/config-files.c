/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Finds the configuration files, reads them in their order, and splits them into lines; see
 * config.h. The keys are in config.c. */

#include "base/atomic-file.h"
#include "base/directory.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/rooted.h"
#include "base/time-util.h"
#include "config/config-internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <ini.h>

#define CONFIG_FILE_MAX (1024U * 1024)
#define BYTE_ORDER_MARK "\xef\xbb\xbf" /* in UTF-8 */

/* Highest precedence first. */
static const char *const directories[] = {
        "/etc/headstart",
        "/run/headstart",
        "/usr/local/lib/headstart",
        "/usr/lib/headstart",
};

/* --- one file --------------------------------------------------------------------------------- */

typedef struct Reader {
    Config *config;
    ConfigSources *sources; /* or NULL */
    const char *file;
    const char *next; /* the rest of the text */
    unsigned line;    /* the number of the line that was read last */
    bool failed;      /* memory ran out */
    config_warning_t warn;
    void *userdata;
} Reader;

static void _printf_(3, 4) warn_line(const Reader *x, unsigned line, const char *format, ...)
{
    char message[256];
    va_list ap;

    if (!x->warn)
        return;
    va_start(ap, format);
    vsnprintf(message, sizeof(message), format, ap);
    va_end(ap);
    x->warn(x->userdata, x->file, line, message);
}

/* Reads the next line from memory; inih calls it in place of fgets(3). inih passes no line numbers
 * to its handler, so this function counts the lines. It drops a line that does not fit inih's
 * buffer, because inih would read it as two lines. */
static char *next_line(char *str, int num, void *stream)
{
    Reader *x = stream;

    while (*x->next) {
        size_t l = strcspn(x->next, "\n");
        const char *line = x->next;

        x->next += l + (line[l] == '\n');
        x->line++;
        if (l + 2 > (size_t)num) {
            warn_line(x, x->line, "line longer than %d characters, ignoring", num - 2);
            continue;
        }
        memcpy(str, line, l);
        str[l] = '\n';
        str[l + 1] = 0;

        /* inih treats an indented line as a further value of the key above; here it is a key of its
         * own, so the indentation is removed. */
        size_t blank = strspn(str, " \t");
        memmove(str, str + blank, l + 2 - blank);

        /* inih reports only the first line that is neither a section, a comment nor an
         * assignment. */
        if (!strchr("[;#\n\r", str[0]) && !strpbrk(str, "=:")) {
            warn_line(x, x->line, "neither a section nor an assignment, ignoring");
            continue;
        }
        if (str[0] == '[' && !strchr(str, ']')) {
            /* The following lines belong to no section. */
            warn_line(x, x->line, "section without ], ignoring");
            memcpy(str, "[]\n", sizeof("[]\n"));
        }
        return str;
    }
    return NULL;
}

static int set_source(Reader *x, size_t index)
{
    ConfigSource *source = x->sources ? x->sources->keys + index : NULL;
    char *file;

    if (!source)
        return 0;
    file = strdup(x->file);
    if (!file)
        return -ENOMEM;
    free(source->file);
    *source = (ConfigSource){.file = file, .line = x->line};
    return 0;
}

/* inih calls this function for each assignment. Returns 1, or 0 to stop inih. */
static int on_assignment(void *userdata, const char *section, const char *name, const char *value)
{
    Reader *x = userdata;
    const char *reason = NULL;
    size_t index;
    int r = config_set(x->config, section, name, value, &index, &reason);

    if (r == -ENOENT && !*section)
        warn_line(x, x->line, "key %s before the first section, ignoring", name);
    else if (r == -ENOENT)
        warn_line(x, x->line, "unknown key %s in section [%s], ignoring", name, section);
    else if (r < 0)
        warn_line(x, x->line, "%s=%s: %s, ignoring", name, value, reason);
    else if (set_source(x, index) < 0) {
        x->failed = true;
        return 0;
    }
    return 1;
}

/* --- which files ------------------------------------------------------------------------------ */

/* Reads one file. Returns 1 if it was read, 0 if it does not exist, or a negative errno, such as
 * -ENOMEM. A file that cannot be read is reported, and counts as read. */
static int read_file(int root_fd, const char *path, const Reader *template)
{
    _cleanup_free_ char *text = NULL;
    _cleanup_close_ int fd = -EBADF;
    Reader x = *template;
    struct stat st;
    size_t size;
    int r;

    x.file = path;
    fd = rooted_open(root_fd, path, O_PATH | O_CLOEXEC);
    if (fd == -ENOENT || fd == -ENOTDIR) {
        /* A dangling link masks the file, as a link to /dev/null does. */
        fd = rooted_open(root_fd, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        return fd >= 0;
    }
    if (fd >= 0 && fstat(fd, &st) < 0)
        return -errno;
    if (fd >= 0 && S_ISCHR(st.st_mode)) /* /dev/null masks */
        return 1;
    if (fd >= 0 && !S_ISREG(st.st_mode))
        r = -EBADMSG;
    else if (fd < 0)
        r = fd;
    else
        r = rooted_read(root_fd, path, CONFIG_FILE_MAX, &text, &size);
    if (r == -ENOMEM)
        return r;
    if (r < 0)
        warn_line(&x, 0, "%s, ignoring", r == -EBADMSG ? "not a regular file" : error_text(r));
    else if (strlen(text) != size)
        warn_line(&x, 0, "not a text file, ignoring");
    else {
        x.next = text + (strncmp(text, BYTE_ORDER_MARK, 3) == 0 ? 3 : 0);
        /* next_line() drops every line on which inih could fail. */
        (void)ini_parse_stream(next_line, &x, on_assignment, &x);
    }
    return x.failed ? -ENOMEM : 1;
}

typedef struct DropIn {
    char *name;
    unsigned directory; /* index in `directories`: the lower one wins */
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

void config_sources_done(ConfigSources *s)
{
    for (size_t i = 0; i < ELEMENTSOF(s->keys); i++)
        free(s->keys[i].file);
    *s = (ConfigSources){0};
}

int config_load(int root_fd, config_warning_t warn, void *userdata, Config *ret,
                ConfigSources *ret_sources)
{
    _cleanup_(config_sources_done) ConfigSources sources = {0};
    _cleanup_(drop_ins_done) DropIns drop_ins = {0};
    Config c = config_default();
    const Reader reader = {.config = &c,
                           .sources = ret_sources ? &sources : NULL,
                           .warn = warn,
                           .userdata = userdata};
    char path[PATH_MAX];
    int r = 0;

    for (size_t i = 0; i < ELEMENTSOF(directories) && r == 0; i++) {
        snprintf(path, sizeof(path), "%s/headstart.conf", directories[i]);
        r = read_file(root_fd, path, &reader);
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
            continue; /* masked by a file of a directory with higher precedence */
        snprintf(path, sizeof(path), "%s/headstart.conf.d/%s", directories[d->directory], d->name);
        r = read_file(root_fd, path, &reader);
        if (r < 0)
            return r;
    }
    c.session_budget.total_percent = c.budget.total_percent;
    c.session_budget.free_percent = c.budget.free_percent;
    c.session_budget.cached_percent = c.budget.cached_percent;
    *ret = c;
    if (ret_sources) {
        *ret_sources = sources;
        sources = (ConfigSources){0};
    }
    return 0;
}

/* --- their changes ---------------------------------------------------------------------------- */

/* Of a symlink, the later change of the link and of its target counts. The target of a mask,
 * /dev/null, is as new as the boot and does not count. */
static uint64_t changed_at(int root_fd, const char *path)
{
    static const int flags[] = {O_PATH | O_NOFOLLOW, O_PATH};
    uint64_t newest = 0;

    for (size_t i = 0; i < ELEMENTSOF(flags); i++) {
        _cleanup_close_ int fd = rooted_open(root_fd, path, flags[i] | O_CLOEXEC);
        struct stat st;

        if (fd >= 0 && fstat(fd, &st) == 0 && !S_ISCHR(st.st_mode))
            newest = MAX(newest, timespec_nsec(&st.st_mtim));
    }
    return newest;
}

uint64_t config_changed_nsec(int root_fd)
{
    _cleanup_(drop_ins_done) DropIns drop_ins = {0};
    uint64_t newest = 0;
    char path[PATH_MAX];

    for (unsigned i = 0; i < ELEMENTSOF(directories); i++) {
        snprintf(path, sizeof(path), "%s/headstart.conf", directories[i]);
        newest = MAX(newest, changed_at(root_fd, path));
        /* The time of the directory changes when a drop-in is removed. */
        snprintf(path, sizeof(path), "%s/headstart.conf.d", directories[i]);
        newest = MAX(newest, changed_at(root_fd, path));
        if (list_drop_ins(root_fd, i, &drop_ins) < 0)
            return UINT64_MAX;
    }
    for (size_t i = 0; i < drop_ins.n; i++) {
        const DropIn *d = &drop_ins.items[i];

        snprintf(path, sizeof(path), "%s/headstart.conf.d/%s", directories[d->directory], d->name);
        newest = MAX(newest, changed_at(root_fd, path));
    }
    return newest;
}
