/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/synthetic.h"

#include "evaluate/random.h"
#include "util/range-util.h"

#include <string.h>

#define PAGE 4096U

/* Names as on a Debian desktop: directories, and the names of files in each. */
typedef struct Kind {
    const char *format; /* printf format for a number and a word */
    unsigned share;     /* percent of all files */
} Kind;

static const Kind kinds[] = {
        {"/usr/lib/x86_64-linux-gnu/lib%2$s-%1$u.so.0.4000.%1$u", 16},
        {"/usr/lib/x86_64-linux-gnu/%2$s-3.0/modules/im-%2$s-%1$u.so", 4},
        {"/usr/share/icons/Adwaita/48x48/%2$s/%2$s-symbolic-%1$u.png", 22},
        {"/usr/share/icons/hicolor/scalable/apps/org.%2$s.Application%1$u.svg", 10},
        {"/usr/share/applications/org.%2$s.desktop-%1$u.desktop", 8},
        {"/usr/share/locale/de/LC_MESSAGES/%2$s-%1$u.mo", 6},
        {"/usr/share/fonts/truetype/%2$s/%2$s%1$u-Regular.ttf", 4},
        {"/usr/share/%2$s/%1$u/defaults.conf", 8},
        {"/usr/lib/python3/dist-packages/%2$s/__pycache__/module%1$u.cpython-311.pyc", 6},
        {"/etc/xdg/%2$s/autostart/%1$u.desktop", 5},
        {"/home/user/.config/%2$s/profile-%1$u.xml", 5},
        {"/home/user/.cache/%2$s/%1$04x%1$04x%1$04x.cache-8", 4},
        {"/usr/share/glib-2.0/%2$s%1$u", 2},
};

static const char *const words[] = {
        "gtk",    "gdk",    "xfce",    "thunar", "panel",  "session", "dbus",       "pango",
        "cairo",  "glib",   "gio",     "mime",   "mesa",   "pulse",   "wnck",       "notify",
        "polkit", "udisks", "tumbler", "exo",    "garcon", "vte",     "fontconfig", "harfbuzz",
};

static void path_of_file(size_t i, char *buf, size_t size)
{
    const char *word = words[(i / 7) % ELEMENTSOF(words)];
    unsigned r = (unsigned)(i * 37 % 100);
    const Kind *k = kinds;

    while (r >= k->share) {
        r -= k->share;
        k++;
    }
    snprintf(buf, size, k->format, (unsigned)i, word);
}

/* Returns a property that is the same in all sessions: a number in 0..2^32-1 for each pair of
 * `thing` and `property`. */
static uint32_t world(const SyntheticParameters *p, uint64_t thing, uint64_t property)
{
    Random r = {p->seed * UINT64_C(0x9e3779b97f4a7c15) ^ thing * 131 ^ property << 40};

    random_uint64(&r);
    return (uint32_t)(random_uint64(&r) >> 32);
}

static bool is_directory(const SyntheticParameters *p, size_t i)
{
    return i >= p->n_applications && world(p, i, 1) % 8 == 0;
}

static int add_file(const SyntheticParameters *p, Trace *t, size_t i, Random *random, uint32_t *ret)
{
    bool directory = is_directory(p, i);
    char path[256];
    uint32_t node, pages;
    TraceFile *f;
    int r;

    if (i < p->n_applications)
        snprintf(path, sizeof(path), "/usr/bin/%s-%zu", words[i % ELEMENTSOF(words)], i);
    else
        path_of_file(i, path, sizeof(path));
    if (directory)
        strcat(path, ".d");
    r = trace_add_path(t, path, &node);
    if (r >= 0)
        r = trace_add_file(t, node, 0, directory, ret);
    if (r < 0)
        return r;
    f = &t->files[*ret];
    f->inode = 1000 + world(p, i / 16, 2) % 1000000 + i % 16;
    f->mtime_nsec = (INT64_C(1700000000) + world(p, i / 64, 3) % 10000000) * (int64_t)NSEC_PER_SEC;
    if (directory)
        return 0;
    pages = 1 + world(p, i, 4) % 8;
    if (world(p, i, 5) % 4 == 0)
        pages += world(p, i, 6) % 400;
    f->size_bytes = (uint64_t)pages * PAGE - world(p, i, 7) % PAGE;

    /* A file has one range, or a few ranges if it is large. Some ranges differ from session to
     * session. */
    for (uint32_t at = 0, n = 0; at < pages && n < 12; n++) {
        uint32_t length = 1 + world(p, i * 16 + n, 8) % 32;

        if (random_below(random, 100) < 3)
            length += 1 + random_below(random, 8);
        length = MIN(length, pages - at);
        r = range_set_insert_span(&f->resident, (uint64_t)at * PAGE,
                                  (uint64_t)(at + length) * PAGE);
        if (r < 0)
            return r;
        at += length + 1 + world(p, i * 16 + n, 9) % 96;
    }
    return 0;
}

static int add_volume(const SyntheticParameters *p, Trace *t, Random *random)
{
    _cleanup_range_set_ RangeSet metadata = {0};
    TraceVolume v = {
            .uuid = (char *)"2c1b4d1e-90a5-4a0e-8f43-7f1d7a3c6f10",
            .fstype = (char *)"ext4",
            .subvolume = (char *)"",
            .mountpoint = (char *)"/",
            .device = (char *)"sda2",
            .scheduler = (char *)"mq-deadline",
            .device_class = DEVICE_CLASS_HDD,
            .rotational = true,
            .size_bytes = UINT64_C(20) << 30,
            .metadata_source = METADATA_SOURCE_CACHESTAT,
    };
    size_t n = p->n_files / 8;
    uint64_t at = 0;
    uint32_t id;

    for (size_t i = 0; i < n; i++) {
        uint64_t length = 1 + world(p, i, 20) % 16;
        int r;

        at += 1 + world(p, i, 21) % (2 * v.size_bytes / PAGE / 3 / (n + 1));
        if (random_below(random, 100) < 3)
            length++;
        r = range_set_insert_span(&metadata, at * PAGE, (at + length) * PAGE);
        if (r < 0)
            return r;
        at += length + 2;
    }
    v.metadata = metadata;
    return trace_add_volume(t, &v, &id);
}

/* Draws a file that the application uses: in one case of four one of the 200 files that all
 * applications use, otherwise one of a stretch of consecutive files, which overlaps with the
 * stretch of the next application. */
static size_t file_of(const SyntheticParameters *p, size_t application, Random *random)
{
    size_t rest = p->n_files - p->n_applications;
    size_t stretch = MAX(2 * rest / MAX(p->n_applications, (size_t)1), (size_t)1);

    if (random_below(random, 4) == 0)
        return p->n_applications + random_below(random, (uint32_t)MIN(rest, (size_t)200));
    return p->n_applications +
           (application * (stretch / 2 + 1) + random_below(random, (uint32_t)stretch)) % rest;
}

static int add_accesses(const SyntheticParameters *p, Trace *t, const uint32_t *ids,
                        const uint32_t *applications, Random *random)
{
    usec_t at = 0, step = 10 * USEC_PER_SEC / (p->n_accesses + 1);
    size_t rest = p->n_files - p->n_applications;

    for (size_t i = 0; i < p->n_accesses; i++) {
        size_t e = i * p->n_applications /
                   p->n_accesses; /* the applications start one after the other */
        TraceAccess a = {.application = applications[e]};
        size_t f = i * rest / p->n_accesses + p->n_applications;

        at += random_below(random, (uint32_t)(2 * step + 1)) / USEC_PER_MSEC * USEC_PER_MSEC;
        a.at = at;
        if (i == 0 || e != (i - 1) * p->n_applications / p->n_accesses) {
            a.kind = ACCESS_EXEC;
            f = e;
        } else if (rest >= p->n_accesses ||
                   i * rest / p->n_accesses == (i - 1) * rest / p->n_accesses)
            f = file_of(p, e, random); /* drawn; the other accesses take the files in order */
        if (ids[f] == TRACE_NONE)
            continue;
        a.file = ids[f];
        if (random_below(random, 100) == 0)
            a.application = TRACE_NONE;
        if (a.application == TRACE_NONE)
            t->n_unknown_application++;
        if (t->files[a.file].directory && random_below(random, 2))
            a.kind = ACCESS_READDIR;

        int r = trace_add_access(t, &a);

        if (r < 0)
            return r;
    }
    t->duration = at + USEC_PER_SEC;
    return 0;
}

/* Adds files with names that occur in no other session. One application opens each of them. */
static int add_own_files(const SyntheticParameters *p, Trace *t, const uint32_t *applications)
{
    for (unsigned i = 0; i < p->own_files; i++) {
        TraceAccess a = {.at = t->duration, .application = applications[i % p->n_applications]};
        char path[128];
        uint32_t node;
        int r;

        snprintf(path, sizeof(path), "/home/user/.cache/tmp-%llx-%u",
                 (unsigned long long)p->session, i);
        r = trace_add_path(t, path, &node);
        if (r >= 0)
            r = trace_add_file(t, node, 0, false, &a.file);
        if (r >= 0)
            r = trace_add_access(t, &a);
        if (r < 0)
            return r;
    }
    return 0;
}

int synthetic_trace(const SyntheticParameters *p, Trace **ret)
{
    Random random = {p->seed ^ (p->session + 1) * UINT64_C(0xd1342543de82ef95)};
    _cleanup_trace_ Trace *t = trace_new(p->stage);
    _cleanup_free_ uint32_t *ids = calloc(p->n_files + 1, sizeof(uint32_t));
    _cleanup_free_ uint32_t *applications = calloc(p->n_applications + 1, sizeof(uint32_t));
    int r;

    if (!t || !ids || !applications)
        return -ENOMEM;
    if (p->n_applications == 0 || p->n_applications >= p->n_files)
        return -EINVAL;
    free(t->boot_id);
    if (asprintf(&t->boot_id, "%016llx%016llx", (unsigned long long)p->seed,
                 (unsigned long long)p->session) < 0) {
        t->boot_id = NULL;
        return -ENOMEM;
    }
    t->uid = p->uid;
    t->flags = p->flags;
    t->start_realtime = p->start_realtime;
    t->start_boottime = 12 * USEC_PER_SEC;
    t->process_source = PROCESS_SOURCE_CONNECTOR;
    r = add_volume(p, t, &random);
    for (size_t i = 0; r >= 0 && i < p->n_files; i++) {
        bool loose = i >= p->n_applications && world(p, i, 10) % 100 < p->loose_percent;

        ids[i] = TRACE_NONE;
        if (!loose || random_below(&random, 2))
            r = add_file(p, t, i, &random, &ids[i]);
    }
    for (size_t i = 0; r >= 0 && i < p->n_applications; i++) {
        TraceLifetime l = {.pid = 1000 + (uint32_t)i, .uid = p->uid, .end = USEC_INFINITY};

        r = trace_add_application(t, ids[i], &applications[i]);
        l.application = applications[i];
        l.start = i * 10 * USEC_PER_SEC / p->n_applications;
        if (i % 3 == 0)
            l.end = l.start + USEC_PER_SEC;
        if (r >= 0)
            r = trace_add_lifetime(t, &l);
    }
    if (r >= 0)
        r = add_accesses(p, t, ids, applications, &random);
    if (r >= 0)
        r = add_own_files(p, t, applications);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(t);
    return 0;
}

SyntheticParameters synthetic_login(uint64_t session)
{
    return (SyntheticParameters){
            .seed = 1,
            .session = session,
            .stage = STAGE_LOGIN,
            .uid = 1000,
            .start_realtime = (UINT64_C(1790000000) + session * 86400) * USEC_PER_SEC,
            .n_files = 8000,
            .n_applications = 150,
            .n_accesses = 20000,
            .loose_percent = 10,
            .own_files = 50,
    };
}
